"""Whether members connect to each other as is on record, with TLS or without, and how one is started.

A member listens as etcd's list has its URL, because others reach it so. Only `Membership.readdress` changes
the list.
"""

from urllib.parse import urlsplit

from etcd_operator.controllers.etcd_cluster.decide.desired import DesiredCluster
from etcd_operator.controllers.etcd_cluster.decide.members import Member
from etcd_operator.controllers.etcd_cluster.decide.state import ClusterState


def is_peering_as_recorded(state: ClusterState, member: Member) -> bool:
    """Whether a member was started as is on record, and the others reach it so."""
    return member.peers == state.desired.secured.peer_mode and is_listed_as_recorded(state, member)


def is_listed_as_recorded(state: ClusterState, member: Member) -> bool:
    """Whether etcd's list has the URL of a member with TLS, or without, as is on record.

    So it has that of a member whose pod cannot be changed, and of one that is not listed yet.
    """
    if member.entry is None or member.peers is None:
        return True
    return is_listed_only(member, with_tls=state.desired.secured.has_secure_peers)


def started(state: ClusterState, name: str) -> DesiredCluster:
    """The cluster as a member is to be started that has data, or is listed: with the record, but for that.

    Where the list is not known, its claim or its pod shows how it is listed. All members have certificates
    while some may be listed with TLS.
    """
    desired, member = state.desired, state.by_name.get(name)
    is_secure = _is_reached_with_tls(member) if member is not None else None
    if is_secure is None or not desired.secured.issued[0]:
        return desired
    return desired.listening("Require" if is_secure else "Dial")


def _is_reached_with_tls(member: Member) -> bool | None:
    """None where nothing shows it."""
    if member.entry is not None:
        return is_listed_with_tls(member)
    if member.claim is not None:
        return member.claim.has_peer_tls
    return member.peers == "Require" if member.peers is not None else None


def is_listed_only(member: Member, *, with_tls: bool) -> bool:
    """Whether the others are to reach a member with TLS only, or without TLS only."""
    return _schemes(member) <= {"https" if with_tls else "http"}


def is_out_of_reach(member: Member) -> bool:
    """Whether etcd's list has another URL of a member than it listens at: others cannot connect to it.

    It connects to them, which is enough for the messages of both. Two such members are not in touch.
    """
    return member.peers is not None and is_listed_with_tls(member) != (member.peers == "Require")


def is_listed_with_tls(member: Member) -> bool:
    """Whether the others are to reach a member with TLS."""
    return "https" in _schemes(member)


def _schemes(member: Member) -> set[str]:
    urls = member.entry.peer_urls if member.entry is not None else ()
    return {urlsplit(url).scheme for url in urls}
