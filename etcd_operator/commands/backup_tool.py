"""`etcd-operator backup-tool`: take backups of one cluster again and again, and serve them."""

import argparse
import re
from pathlib import Path
from typing import Any

from etcd_operator.commands import flags, outcome
from etcd_operator.errors import OperatorError
from etcd_operator.pods.contract import BACKUP_TOOL_PORT, BACKUP_TOOL_PROBE_PORT

SCRATCH = Path("/tmp")  # noqa: S108 -- an emptyDir in the pod of the tool

HELP = "back up a cluster regularly and serve the backups (runs in pods that the operator creates)"
DESCRIPTION = """\
Take backups of one cluster at an interval, keep the newest ones, and serve them over HTTP. The operator runs
this in a pod for each coreos.com cluster with spec.backup.
"""
EXAMPLES = """\
Example:
  etcd-operator backup-tool --endpoint 127.0.0.1:2379 --to file:///var/etcd-backup/ --folder v1/default/db \\
      --owner 1b4e28ba-2fa1-11d2-883f-0016d3cca427 --interval 1800 --max-backups 3 --token-file token
"""

_ENDPOINT = re.compile(r"(?:\[[0-9a-fA-F:.]+\]|[^\s:/@\[\]]+):[0-9]{1,5}")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The flags."""
    parser.add_argument(
        "--endpoint", required=True, metavar="HOST:PORT", help="client address of the cluster or of a member"
    )
    parser.add_argument("--to", required=True, metavar="URL", help="the store, a URL that ends with /")
    parser.add_argument("--folder", required=True, help="the folder of this cluster, below --to")
    parser.add_argument(
        "--owner", required=True, metavar="UID", help="UID of the EtcdCluster: only its backups count"
    )
    parser.add_argument(
        "--exclusive",
        action="store_true",
        help="nothing outside of this namespace can write to --to: also count what earlier clusters of this "
        "name stored there",
    )
    parser.add_argument("--interval", required=True, type=_positive, help="seconds between two backups")
    parser.add_argument("--max-backups", required=True, type=_positive, help="how many backups are kept")
    parser.add_argument(
        "--token-file", required=True, type=Path, metavar="FILE", help="file with the token that clients send"
    )
    flags.add_keys(parser)
    parser.add_argument(
        "--tls-dir",
        type=Path,
        metavar="DIR",
        help="use TLS: a folder with ca.crt, tls.crt, tls.key to reach etcd, server.crt, server.key to serve",
    )
    parser.add_argument(
        "--scratch-dir", type=Path, default=SCRATCH, help=f"folder for one snapshot (default: {SCRATCH})"
    )
    parser.add_argument(
        "--port",
        type=int,
        default=BACKUP_TOOL_PORT,
        help=f"port of the HTTP API (default: {BACKUP_TOOL_PORT})",
    )
    parser.add_argument(
        "--probe-port",
        type=int,
        default=BACKUP_TOOL_PROBE_PORT,
        help=f"port of /healthz (default: {BACKUP_TOOL_PROBE_PORT})",
    )
    flags.add_log_format(parser)


def run(options: argparse.Namespace) -> int:
    """Run until a signal; the exit code."""
    from etcd_operator.observability.logs import configure
    from etcd_operator.programs.backup_tool.process import serve

    form: Any = options.log_format
    configure(form=form)
    try:
        return serve(_config(options))
    except OperatorError as error:
        outcome.report(" ".join(str(error).split()))
        return outcome.WRONG_USAGE if isinstance(error, outcome.UsageError) else outcome.FAILED


def _config(options: argparse.Namespace) -> Any:
    from etcd_operator.archive.manifest import OWNER_PATTERN
    from etcd_operator.programs.backup_tool.process import Config
    from etcd_operator.storage.protocol import check_prefix

    if not _ENDPOINT.fullmatch(options.endpoint):
        raise outcome.UsageError(f"--endpoint: {options.endpoint!r} is not HOST:PORT, like 127.0.0.1:2379")
    if not options.to.partition("?")[0].endswith("/"):
        raise outcome.UsageError("--to is a folder: end it with /")
    if not re.fullmatch(OWNER_PATTERN, options.owner) or not options.owner:
        raise outcome.UsageError(f"--owner: {options.owner!r} is not a UID")
    if not options.folder.strip("/"):
        raise outcome.UsageError("--folder: the folder of the cluster is missing")
    return Config(
        endpoint=options.endpoint,
        to=options.to,
        folder=check_prefix(options.folder).removesuffix("/"),
        owner=options.owner,
        is_exclusive=options.exclusive,
        interval=options.interval,
        max_backups=options.max_backups,
        token_file=options.token_file,
        encryption_keys=options.encryption_keys,
        tls_dir=options.tls_dir,
        scratch=options.scratch_dir,
        port=options.port,
        probe_port=options.probe_port,
    )


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("must be at least 1")
    return number
