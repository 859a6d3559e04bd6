"""Where members serve: the endpoints that clients use, and the URLs under which peers know each other."""

from collections.abc import Iterable
from typing import Any

from etcd_operator.controllers.etcd_cluster.decide.desired import DesiredCluster
from etcd_operator.controllers.etcd_cluster.decide.members import Member
from etcd_operator.controllers.etcd_cluster.dialects.base import Dialect
from etcd_operator.controllers.shared.manifests.urls import CLIENT_PORT, PEER_PORT, endpoint, url
from etcd_operator.errors import Unavailable


def client_endpoints(members: Iterable[Member]) -> dict[str, str]:
    """Where those members that have an address serve clients (`host:port`), by name."""
    found = {member.name: _endpoint(member) for member in members}
    return {name: at for name, at in found.items() if at}


def _endpoint(member: Member) -> str:
    pod = member.pod
    return endpoint(pod.ip, CLIENT_PORT) if pod is not None and pod.ip else member.endpoint


def client_endpoint(member: Member) -> str:
    """Where a member serves clients. Raises Unavailable if it has no address."""
    found = client_endpoints((member,))
    if not found:
        raise Unavailable(f"{member.name} has no address")
    return found[member.name]


def peer_url(dialect: Dialect[Any], desired: DesiredCluster, name: str) -> str:
    """The URL under which the other members of a cluster reach a member; etcd's list has it."""
    return url(dialect.member_host(desired, name), PEER_PORT)
