"""`etcd-operator read-survivor`: serve the data of a member that restarted without a quorum."""

import argparse
import os
from pathlib import Path

from etcd_operator.commands import flags, outcome
from etcd_operator.pods.contract import METRICS_PORT, READER_PORT, READER_TOKEN_VARIABLE

HELP = "serve the data of a member without a quorum (runs in pods of members, where the operator adds it)"
DESCRIPTION = f"""\
Read the data directory of an etcd that restarted without a quorum, and serve its database over HTTP. Nothing
is written to the directory. Clients send the token that is in the variable {READER_TOKEN_VARIABLE}. \
The process ends
after five minutes without a request (exit code 0), or when the etcd follows a leader (exit code 4).
"""
EXAMPLES = f"""\
Example:
  {READER_TOKEN_VARIABLE}=secret etcd-operator read-survivor --data-dir /var/lib/etcd
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The flags."""
    parser.add_argument("--data-dir", required=True, type=Path, help="the data directory of the etcd")
    parser.add_argument(
        "--metrics-port",
        type=int,
        default=METRICS_PORT,
        help=f"port of the etcd's metrics page (default: {METRICS_PORT})",
    )
    parser.add_argument(
        "--port", type=int, default=READER_PORT, help=f"port of the HTTP API (default: {READER_PORT})"
    )
    parser.add_argument(
        "--tls-dir",
        type=Path,
        metavar="DIR",
        help="serve over TLS, with server.crt and server.key in this folder",
    )
    flags.add_log_format(parser)


def run(options: argparse.Namespace) -> int:
    """Run until nobody needs it; the exit code."""
    import time
    from functools import partial

    from etcd_operator.observability.logs import configure
    from etcd_operator.programs.survivor_reader.process import serve
    from etcd_operator.programs.survivor_reader.reading import DataReader, metrics_page

    token = os.environ.get(READER_TOKEN_VARIABLE, "")
    if not token:
        outcome.report(f"the variable {READER_TOKEN_VARIABLE} is not set")
        return outcome.WRONG_USAGE
    configure(form=options.log_format)
    page = partial(metrics_page, options.metrics_port)
    reader = DataReader(data_dir=options.data_dir, page=page, wait=time.sleep)
    try:
        return serve(reader, token, port=options.port, tls=options.tls_dir)
    except OSError as error:
        outcome.report(f"cannot listen on port {options.port}: {error.strerror}")
        return outcome.FAILED
