"""Starts the commands of hack/, each of which is a script of a few lines.

Promises: a Python that is too old, or one without the project's packages, ends with one line that names the
way out. This module runs on any Python 3.
"""

import importlib
import sys
from pathlib import Path

OLDEST = (3, 11)
ROOT = Path(__file__).resolve().parent.parent.parent


def start(command: str, module: str, *, remedy: str = "") -> None:
    """Run `main()` of a module as `hack/COMMAND`, and exit with what it returns.

    remedy: how to run a command that needs the project's packages; empty for one that needs none.
    """
    if sys.version_info < OLDEST:
        sys.exit(f"hack/{command} needs Python 3.11 or later; run it as: python3.11 hack/{command} ...")
    sys.path.insert(0, str(ROOT))  # the instruments share the support of the system tests
    try:
        main = importlib.import_module(module).main
    except ModuleNotFoundError as error:
        if not remedy:
            raise
        sys.exit(f"hack/{command} needs the project's packages ({error.name} is missing); run: {remedy}")
    sys.exit(main())
