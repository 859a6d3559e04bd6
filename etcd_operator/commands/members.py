"""The flags that name the members of the cluster for which is restored; they are those of etcd."""

import argparse
import uuid
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from etcd_operator.commands.outcome import UsageError

if TYPE_CHECKING:
    from etcd_operator.archive.restore import NewMember

DEFAULT_NAME = "default"
DEFAULT_URL = "http://localhost:2380"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The flags."""
    group = parser.add_argument_group("the new cluster")
    group.add_argument("--name", default=DEFAULT_NAME, help="name of this member (default: %(default)s)")
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
        help=f"peer URLs of this member (default: those in --initial-cluster, or {DEFAULT_URL})",
    )
    group.add_argument(
        "--bump-revision",
        type=int,
        metavar="N",
        help="number to add to revisions: the same for each member, and larger than the number of writes "
        "since the backup (default: 1000000000)",
    )


def of(options: argparse.Namespace) -> "NewMember":
    """The member that the flags describe. Raises `UsageError`."""
    from etcd_operator.api.recoveries import REVISION_BUMP
    from etcd_operator.archive.restore import NewMember

    advertised = _urls(options.initial_advertise_peer_urls)
    if options.initial_cluster is None:
        members = {options.name: advertised or (DEFAULT_URL,)}
    else:
        members = _members(options.initial_cluster)
    _check(options.name, members, advertised)
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


def _check(name: str, members: dict[str, tuple[str, ...]], advertised: tuple[str, ...]) -> None:
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
