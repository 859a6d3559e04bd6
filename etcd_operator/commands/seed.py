"""`etcd-operator seed`: fetch the backup that the first member of a recovered cluster starts from."""

import argparse
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING

from etcd_operator.commands import flags, outcome
from etcd_operator.commands.outcome import Outcome
from etcd_operator.pods.contract import SEED_COMMAND_SKIP, SEED_COMMAND_VARIABLE

if TYPE_CHECKING:
    from etcd_operator.programs.backup_tool.seed import Fetched

HELP = "fetch the data for the first member of a recovered cluster (runs in pods that the operator creates)"
DESCRIPTION = f"""\
Fetch a backup of a cluster from its backup tool (`backup-tool`) or from where it is stored, or the data of a
survivor from the process that reads it (`read-survivor`), into a file that `etcdutl snapshot restore` reads.
The operator runs this in the first init container of a seed, the first member of a recovered cluster. With
the variable {SEED_COMMAND_VARIABLE}={SEED_COMMAND_SKIP} it does nothing: \
the kubelet may run init containers again when all is done.
"""
EXAMPLES = """\
Example:
  etcd-operator seed --tool db-backup-tool:19999 --token-file token --etcd-version 3.6.16 --file snapshot.db
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The flags."""
    parser.add_argument("--tool", metavar="HOST:PORT", default="", help="a backup tool or `read-survivor`")
    parser.add_argument(
        "--token-file",
        type=Path,
        metavar="FILE",
        help="file with the token that it requires",
    )
    parser.add_argument("--cacert", type=Path, metavar="FILE", help="reach it over TLS: its CA (PEM)")
    parser.add_argument(
        "--tls-server-name",
        default="",
        metavar="NAME",
        help="host name in its certificate, if it differs from the host in --tool",
    )
    parser.add_argument(
        "--from",
        dest="source",
        metavar="URL",
        default="",
        help="instead of --tool: the store, a URL that ends with /",
    )
    parser.add_argument("--folder", default="", help="the folder of the cluster, below --from")
    parser.add_argument("--name", default="", help="the backup (default: the newest intact one)")
    parser.add_argument("--sha256", default="", help="SHA-256 of the snapshot in the backup")
    flags.add_keys(parser)
    parser.add_argument("--etcd-version", required=True, help="version of etcd that is to start on the data")
    parser.add_argument("--file", required=True, type=Path, help="the file to be written")
    outcome.add_arguments(parser, with_report=True)


@outcome.concluded
def run(options: argparse.Namespace) -> Outcome:
    """Run the command."""
    if os.environ.get(SEED_COMMAND_VARIABLE) == SEED_COMMAND_SKIP:
        return Outcome(text="the data is restored already", document={"name": ""})
    import msgspec

    if (options.cacert or options.tls_server_name) and not options.tool:
        raise outcome.UsageError("--cacert and --tls-server-name are for --tool")
    fetched = _from_tool(options) if options.tool else _from_store(options)
    return Outcome(text=f"fetched {fetched.name}", document=msgspec.to_builtins(fetched))


def _from_tool(options: argparse.Namespace) -> "Fetched":
    from etcd_operator.clock import Clock
    from etcd_operator.pods.http_client import Server, Trust
    from etcd_operator.programs.backup_tool.seed import FromTool

    host, _, port = options.tool.rpartition(":")
    token = _read(options.token_file).decode("utf-8", "replace").strip() if options.token_file else ""
    if not port.isdecimal() or not token:
        raise outcome.UsageError(
            "--tool is HOST:PORT, like db-backup-tool:19999, and needs a --token-file that is not empty"
        )
    host = host.removeprefix("[").removesuffix("]")
    trust = None
    if options.tls_server_name and options.cacert is None:
        raise outcome.UsageError("--tls-server-name needs --cacert")
    if options.cacert is not None:
        trust = Trust(ca=_read(options.cacert), name=options.tls_server_name or host)
    server = Server(address=(host, int(port)), token=token, trust=trust)
    tool = FromTool(server=server, keys=flags.keys(options), clock=Clock(), wait=time.sleep)
    wanted = {"etcd_version": options.etcd_version, "name": options.name, "sha256": options.sha256}
    return tool.fetch(options.file, **wanted)


def _read(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise outcome.UsageError(f"{file}: {error.strerror}") from error


def _from_store(options: argparse.Namespace) -> "Fetched":
    from etcd_operator.clock import Clock
    from etcd_operator.programs.backup_tool.inventory import load
    from etcd_operator.programs.backup_tool.process import place
    from etcd_operator.programs.backup_tool.seed import from_store

    if not options.source.partition("?")[0].endswith("/") or not options.folder:
        raise outcome.UsageError("either --tool, or --from with / at its end and --folder")
    opened, folder = place(options.source, options.folder)
    store, keys = opened(), flags.keys(options)
    found = load(store, folder, now=Clock().now(), keys=keys)
    return from_store(store, found, options.file, keys, etcd_version=options.etcd_version)
