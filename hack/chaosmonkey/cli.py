"""The command line: `hack/chaos`.

The log and the verdict are printed on stdout; exit status 0 means that everything survived, 1 that something
did not or that the run could not begin, 2 wrong usage.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from e2e.support.testbed import TestbedError
from e2e.support.waiting import NotInTimeError
from etcd_operator.errors import OperatorError
from localcluster.console import RefusalError

from . import session
from .options import parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run; 0 if everything survived."""
    options = parser().parse_args(arguments)
    try:
        verdict = session.run(options)
    except (RefusalError, TestbedError, OperatorError, NotInTimeError) as error:
        print(f"hack/chaos: {' '.join(str(error).split())}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("hack/chaos: interrupted, no verdict", file=sys.stderr)
        return 1
    print("\n".join(verdict.lines()), flush=True)
    return 0 if verdict.passed else 1
