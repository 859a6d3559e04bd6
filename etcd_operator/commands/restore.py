"""`etcd-operator restore`: restore a backup or a plain snapshot to the data directory of a member."""

import argparse
import re
import time
import uuid
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from etcd_operator.commands import flags, outcome, progress
from etcd_operator.commands.flags import PLACES, open_backup
from etcd_operator.commands.outcome import Outcome, UsageError
from etcd_operator.commands.progress import served
from etcd_operator.formats import counted

if TYPE_CHECKING:
    from etcd_operator.archive.programs import Etcdutl
    from etcd_operator.archive.restorable import Restorable, Snapshot
    from etcd_operator.archive.restore import NewMember

HELP = "restore a backup or a snapshot to a data directory"
DESCRIPTION = """\
Restore a backup, or a plain snapshot as `etcdctl snapshot save` writes it, to the data directory of one
member of a new cluster. Run the command once for each member. It requires etcdutl, of the minor version of
the backup or newer. The directory appears only when it is complete; a directory with data is never changed.
Revisions of the new cluster are 1,000,000,000 higher than those of the backup, so that clients notice the
restore. Exit code 3 means that the backup is damaged.
"""
EXAMPLES = f"""\
{PLACES}
Examples:
  etcd-operator restore ./backups/one.db --data-dir /var/lib/etcd
  etcd-operator restore 's3://my-bucket/etcd/one.db?region=eu-west-1' --data-dir /var/lib/etcd --name m0 \\
      --initial-cluster m0=http://10.0.0.1:2380,m1=http://10.0.0.2:2380,m2=http://10.0.0.3:2380 \\
      --initial-cluster-token restored-1 --initial-advertise-peer-urls http://10.0.0.1:2380
"""

_CHECKED = {
    "manifest": "all hashes match",
    "hash": "it has no manifest, but etcd's hash at its end matches",
    "none": "it has neither a manifest nor etcd's hash, so only its structure was checked",
}
_SHA256 = re.compile(r"[0-9a-f]{64}")
_DEFAULT_NAME = "default"
_DEFAULT_URL = "http://localhost:2380"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The flags."""
    parser.add_argument("url", metavar="URL", help="the backup, or a snapshot")
    parser.add_argument(
        "--data-dir",
        type=Path,
        metavar="DIR",
        help="the data directory; it must be missing or empty, and not be a mount point",
    )
    parser.add_argument(
        "--skip-existing",
        action="store_true",
        help="do nothing, successfully, if the data directory has data",
    )
    parser.add_argument(
        "--check", action="store_true", help="only read the snapshot and check it; without --data-dir"
    )
    parser.add_argument(
        "--scratch-dir",
        type=Path,
        metavar="DIR",
        help="where the snapshot is kept until it is restored (default: beside the data directory)",
    )
    # For the pod that the operator makes: a volume may come with data that another restore has left.
    parser.add_argument("--skip-restored", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--progress-port", type=int, default=0, help=argparse.SUPPRESS)
    parser.add_argument(
        "--sha256",
        metavar="HEX",
        default="",
        help="accept only the snapshot with this SHA-256, as --check --json prints it",
    )
    flags.add_programs(parser, "etcdutl")
    flags.add_keys(parser)
    _add_members(parser)
    outcome.add_arguments(parser, with_report=True)


@outcome.concluded
def run(options: argparse.Namespace) -> Outcome:
    """Run the command."""
    from etcd_operator.archive import programs
    from etcd_operator.archive.authenticity import require_authentic
    from etcd_operator.archive.restorable import find
    from etcd_operator.archive.restore import is_filled, is_restored, require_absent, restore

    begin = time.monotonic()
    if options.sha256 and not _SHA256.fullmatch(options.sha256):
        raise UsageError("--sha256 is not a SHA-256: 64 hexadecimal digits in lower case")
    if options.check == (options.data_dir is not None):
        raise UsageError("pass --data-dir DIR, or --check to change nothing")
    if options.check:
        return _check(options)
    member = member_of(options)
    is_done = (options.skip_existing and is_filled(options.data_dir)) or (
        options.skip_restored and is_restored(options.data_dir, member)
    )
    if is_done:
        return Outcome(
            text=f"{options.data_dir} has data already: nothing was done",
            document={"dataDir": str(options.data_dir), "skipped": True},
        )
    require_absent(options.data_dir)
    ring = flags.keys(options)
    tool = programs.find_tool(flags.programs(options))
    place = open_backup(options.url)
    source = find(place.store, place.name, sha256=options.sha256)
    require_authentic(place.name, source.manifest, ring)
    if source.manifest is not None:
        tool.require(source.manifest.etcd_version)
    scratch = options.scratch_dir
    with served(options.progress_port, progress.of(options, "fetching", source.size)) as shown:
        found = restore(
            source,
            options.data_dir,
            member,
            ring,
            tool,
            scratch=scratch,
            writes_marker=options.skip_restored,
            on_stage=shown.restart,
            on_progress=shown,
        )
    return _outcome(options, source, found, member, tool, time.monotonic() - begin)


def _check(options: argparse.Namespace) -> Outcome:
    """Read everything, write nothing."""
    import msgspec

    from etcd_operator.archive.restorable import find

    ring = flags.keys(options)
    place = open_backup(options.url)
    source = find(place.store, place.name, sha256=options.sha256)
    with served(options.progress_port, progress.of(options, "checking", source.size)) as shown:
        found = source.check(ring, on_progress=shown)
    contents = f"revision {found.revision}, {counted(found.keys, 'key')}, {_CHECKED[found.check]}"
    document = {"name": source.name, "snapshot": msgspec.to_builtins(found)}
    return Outcome(text=f"{source.name} can be restored: {contents}", document=document)


def _outcome(
    options: argparse.Namespace,
    source: "Restorable",
    found: "Snapshot",
    member: "NewMember",
    tool: "Etcdutl",
    seconds: float,
) -> Outcome:
    import msgspec

    document: dict[str, object] = {
        "name": source.name,
        "dataDir": str(options.data_dir),
        "skipped": False,
        "member": member.name,
        "initialClusterToken": member.token,
        "revisionBump": member.revision_bump,
        "etcdutlVersion": tool.version,
        "snapshot": msgspec.to_builtins(found),
        "seconds": round(seconds, 3),
    }
    if source.manifest is not None:
        document["manifest"] = msgspec.to_builtins(source.manifest)
    contents = f"revision {found.revision}, {counted(found.keys, 'key')}"
    text = f"restored {source.name} to {options.data_dir}: {contents}, {_CHECKED[found.check]}"
    return Outcome(text=f"{text}; for etcd {_versions(found)}, in {seconds:.1f} s", document=document)


def _versions(found: "Snapshot") -> str:
    """The versions of etcd that start on the data."""
    from etcd_operator.versions import minors_that_start_on

    if not found.etcd_version:
        return "of its version"
    return minors_that_start_on(found.etcd_version)


def _add_members(parser: argparse.ArgumentParser) -> None:
    """The flags that name the members of the new cluster; they are those of etcd."""
    group = parser.add_argument_group("the new cluster")
    group.add_argument("--name", default=_DEFAULT_NAME, help="name of this member (default: %(default)s)")
    group.add_argument(
        "--initial-cluster",
        metavar="NAME=URL,...",
        help="peer URLs of all members, the same for each of them (default: this member alone)",
    )
    group.add_argument(
        "--initial-cluster-token",
        metavar="TOKEN",
        help="token of the new cluster: the same for each member, never used before (default for a single "
        "member: a random one)",
    )
    group.add_argument(
        "--initial-advertise-peer-urls",
        metavar="URL,...",
        help=f"peer URLs of this member (default: those in --initial-cluster, or {_DEFAULT_URL})",
    )
    group.add_argument(
        "--bump-revision",
        type=int,
        metavar="N",
        help="number to add to revisions: the same for each member, and larger than the number of writes "
        "since the backup (default: 1000000000)",
    )


def member_of(options: argparse.Namespace) -> "NewMember":
    """The member that the flags describe. Raises `UsageError`."""
    from etcd_operator.api.recoveries import REVISION_BUMP
    from etcd_operator.archive.restore import NewMember

    advertised = _urls(options.initial_advertise_peer_urls)
    if options.initial_cluster is None:
        members = {options.name: advertised or (_DEFAULT_URL,)}
    else:
        members = _members(options.initial_cluster)
    _check_members(options.name, members, advertised)
    if options.bump_revision is not None and options.bump_revision < 1:
        raise UsageError("--bump-revision has to be 1 or more: clients would miss changes")
    if options.initial_cluster_token is None and len(members) > 1:
        raise UsageError(
            "--initial-cluster has several members: pass the same new --initial-cluster-token for each"
        )
    return NewMember(
        name=options.name,
        initial_cluster=members,
        token=options.initial_cluster_token or uuid.uuid4().hex,
        revision_bump=REVISION_BUMP if options.bump_revision is None else options.bump_revision,
    )


def _check_members(name: str, members: dict[str, tuple[str, ...]], advertised: tuple[str, ...]) -> None:
    if name not in members:
        raise UsageError(f"--initial-cluster does not have the member {name}: add it, or correct --name")
    if advertised and set(advertised) != set(members[name]):
        raise UsageError(
            f"--initial-advertise-peer-urls are not those of {name} in --initial-cluster: correct one of them"
        )


def _members(text: str) -> dict[str, tuple[str, ...]]:
    members: dict[str, tuple[str, ...]] = {}
    for word in text.split(","):
        name, equals, url = word.partition("=")
        if not name or not equals:
            raise UsageError(f"--initial-cluster: {word!r} is not NAME=URL, like m0=http://10.0.0.1:2380")
        members[name] = (*members.get(name, ()), _url(url, "--initial-cluster"))
    return members


def _urls(text: str | None) -> tuple[str, ...]:
    flag = "--initial-advertise-peer-urls"
    return tuple(_url(url, flag) for url in text.split(",")) if text is not None else ()


def _url(text: str, flag: str) -> str:
    try:
        parts = urlsplit(text)
        is_valid = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port is not None
    except ValueError:
        is_valid = False
    if not is_valid or parts.path:
        raise UsageError(f"{flag}: {text!r} is not a peer URL, like http://10.0.0.1:2380")
    return text
