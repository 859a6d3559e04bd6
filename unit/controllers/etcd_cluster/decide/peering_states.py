"""Clusters whose members connect to each other in different ways, with TLS or without."""

from dataclasses import replace

import msgspec

from etcd_operator.api.persisted import TlsRecord
from etcd_operator.api.tls import Auto, PeerMode, PeerTls, Tls
from etcd_operator.controllers.etcd_cluster.decide.desired import DesiredCluster
from etcd_operator.controllers.etcd_cluster.decide.kinds.persistent import PERSISTENT
from etcd_operator.controllers.etcd_cluster.decide.state import NO_TLS, ClusterState, TlsFacts
from unit.controllers.etcd_cluster.decide.builders import bootstrapped, changed, with_record

SECURED = TlsRecord(peer_ca="p")
DIALING, LEAVING = (msgspec.structs.replace(SECURED, peer_mode=mode) for mode in ("Dial", "Disabled"))
WANTED = Tls(peer=PeerTls(auto=Auto()))
CA = replace(NO_TLS, peer_ca="p", client_ca="c")

Found = PeerMode | tuple[PeerMode | None, str]
"""How a member connects to the others; with the scheme in etcd's list, if that is another one."""


def peering(state: ClusterState, *found: Found) -> ClusterState:
    """The members of a cluster that serves connect to each other like this."""
    urls: dict[str, str] = {}
    for member, each in zip(state.members, found, strict=True):
        mode, scheme = each if isinstance(each, tuple) else (each, "https" if each == "Require" else "http")
        urls[member.name] = f"{scheme}://{member.name}:2380"
        if state.kind is PERSISTENT:
            assert member.peer is not None
            assert mode is not None
            state = changed(state, member.name, peer=replace(member.peer, peers=mode))
        else:
            assert member.pod is not None
            state = changed(state, member.name, pod=replace(member.pod, peers=mode))
    return _listed(state, urls)


def _listed(state: ClusterState, urls: dict[str, str]) -> ClusterState:
    for member in state.members:
        assert member.entry is not None
        entry = replace(member.entry, peer_urls=(urls[member.name],))
        answer = member.answer
        if answer is not None:
            members = tuple(replace(each, peer_urls=(urls[each.name],)) for each in answer.members)
            answer = replace(answer, members=members)
        state = changed(state, member.name, entry=entry, answer=answer)
    return state


def switched(
    cluster: DesiredCluster, record: TlsRecord | None, *found: Found, wants: bool, tls: TlsFacts = CA
) -> ClusterState:
    """A cluster that is asked to use TLS between members, or not, and how its members do."""
    state = replace(bootstrapped(replace(cluster, tls=WANTED if wants else None)), budget=2, tls=tls)
    return with_record(peering(state, *found), tls=record)
