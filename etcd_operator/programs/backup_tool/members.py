"""The members of a cluster, found through one address.

A connection to a Service may end at any member, and the next one at another. So the members are asked by
addresses of their own: a client reaches each at the host of its peer URL.
"""

from urllib.parse import urlsplit

from etcd_operator.errors import OperatorError
from etcd_operator.etcd.channel import Channels
from etcd_operator.etcd.client import EtcdClient
from etcd_operator.formats import hex_id

PATIENCE = 5.0
"""Seconds that etcd may take to answer."""


def members(channels: Channels, endpoint: str) -> list[str]:
    """`host:port` of each voter, with the port of `endpoint`; none if nobody answers there."""
    port = endpoint.rpartition(":")[2]
    try:
        listed = EtcdClient(channels, endpoint, deadline=PATIENCE).member_list(linearizable=False)
    except OperatorError:
        return []
    urls = [member.peer_urls[0] for member in listed.members if member.peer_urls and not member.is_learner]
    hosts = [urlsplit(url).netloc.rpartition(":")[0] for url in urls]
    return list(dict.fromkeys(f"{host}:{port}" for host in hosts if host))


def cluster_id(channels: Channels, endpoint: str) -> str:
    """The ID of the etcd cluster that answers at `endpoint`; empty if nobody does."""
    try:
        return hex_id(EtcdClient(channels, endpoint, deadline=PATIENCE).status().cluster_id)
    except OperatorError:
        return ""
