"""Whether members connect to each other as is on record: with TLS or without."""

from urllib.parse import urlsplit

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
    return is_listed_with_tls(member) == state.desired.secured.has_secure_peers


def is_out_of_reach(member: Member) -> bool:
    """Whether etcd's list has another URL of a member than it listens at: others cannot connect to it.

    It connects to them, which is enough for the messages of both. Two such members are not in touch.
    """
    return member.peers is not None and is_listed_with_tls(member) != (member.peers == "Require")


def is_listed_with_tls(member: Member) -> bool:
    """Whether the others are to reach a member with TLS."""
    urls = member.entry.peer_urls if member.entry is not None else ()
    return any(urlsplit(url).scheme == "https" for url in urls)
