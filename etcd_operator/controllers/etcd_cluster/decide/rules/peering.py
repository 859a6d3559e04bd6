"""How members connect to each other, with TLS or without: recorded first, then carried out by restarts.

A peer port serves either with TLS or without, and a member needs certificates to reach one with TLS. So
between members without certificates and members that listen with TLS, all members have certificates, and
listen without TLS (`Dial`). From there on one member after another may listen with TLS (decision 047).
"""

import msgspec

from etcd_operator.api.persisted import TlsRecord
from etcd_operator.api.tls import PeerMode
from etcd_operator.controllers.etcd_cluster.decide import tls_record
from etcd_operator.controllers.etcd_cluster.decide.actions import Action, Plan
from etcd_operator.controllers.etcd_cluster.decide.certificates.acts import CreateAuthorities
from etcd_operator.controllers.etcd_cluster.decide.certificates.state import Phase
from etcd_operator.controllers.etcd_cluster.decide.desired import members_of
from etcd_operator.controllers.etcd_cluster.decide.facts.peering import (
    is_listed_with_tls,
    is_peering_as_recorded,
)
from etcd_operator.controllers.etcd_cluster.decide.state import ClusterState
from etcd_operator.controllers.etcd_cluster.decide.tls_record import (
    NONE,
    dropping,
    is_incomplete,
    may_add,
    of_earlier_version,
    planned,
)
from etcd_operator.controllers.shared.decide.holds import TLS_REFUSED


def change(state: ClusterState) -> Plan | None:
    """Record how members are to connect to each other. `upgrade.roll` restarts those that do so otherwise."""
    recorded, wanted = state.persisted.tls or NONE, members_of(state.desired.tls)
    if recorded.peer_secret is not None or wanted.peer_secret is not None:
        return None
    held = _elsewhere(state)
    if held is not None and _is_to_change(state, recorded, is_wanted=wanted.peer):
        return held
    if not _may_change(state):
        return None
    if not recorded.peer_ca:
        return _add(state, recorded) if wanted.peer else None
    mode = _more(state, recorded.peer_mode) if wanted.peer else _less(state, recorded.peer_mode)
    if mode is not None:
        return _recorded(state, msgspec.structs.replace(recorded, peer_mode=mode))
    is_ended = not wanted.peer and recorded.peer_mode == "Disabled" and _is_settled(state)
    return _forget(state, recorded) if is_ended else None


def _is_to_change(state: ClusterState, recorded: TlsRecord, *, is_wanted: bool) -> bool:
    if bool(recorded.peer_ca) != is_wanted or recorded.peer_mode != "Require":
        return True
    known = (member for member in state.members if member.peers is not None)
    return not all(is_peering_as_recorded(state, member) for member in known)


def _elsewhere(state: ClusterState) -> Plan | None:
    """Hold where a person has changed the peer URL of a member to another host: it would be changed back."""
    found = [member for member in state.members if member.is_listed_elsewhere and member.entry is not None]
    if not found:
        return None
    urls = ", ".join(f"{m.name} at {' '.join(m.entry.peer_urls)}" for m in found if m.entry is not None)
    return Plan.hold(
        TLS_REFUSED,
        f"etcd lists {urls}: these are not the hosts of these members, and TLS for peers cannot be changed; "
        "restore their former URLs with `etcdctl member update`",
    )


def _may_change(state: ClusterState) -> bool:
    """Whether all is known of all members, and none joins: one that joins was started by the record.

    As for clients, nothing is begun while members are missing or not healthy. What has begun is reverted at
    once, also if a member does not come back.
    """
    if is_incomplete(state):
        return False
    return all(
        member.peers is not None and member.entry is not None and not member.entry.is_learner
        for member in state.members
    )


def _add(state: ClusterState, recorded: TlsRecord) -> Plan | None:
    """Begin to add TLS. The CAs are made first, and may be there from an earlier time."""
    if state.persisted.upgrade is not None or not may_add(state):
        return None
    if not state.tls.peer_ca:
        return planned(CreateAuthorities(), message="creating the CAs of the cluster")
    return _recorded(state, msgspec.structs.replace(recorded, peer_ca=state.tls.peer_ca, peer_mode="Dial"))


def _more(state: ClusterState, mode: PeerMode) -> PeerMode | None:
    """The next step towards TLS; None if there is none now."""
    if mode == "Disabled":
        return "Dial"
    return "Require" if mode == "Dial" and _is_settled(state) else None


def _less(state: ClusterState, mode: PeerMode) -> PeerMode | None:
    """The next step away from TLS; None if there is none now.

    Not in the middle of a rotation: without TLS nothing would show which CAs a member has loaded.
    """
    if mode == "Require":
        phases = {each.record.phase for side, each in state.tls.sides if side == "peer"}
        return "Dial" if phases <= {Phase.STABLE} else None
    if mode == "Disabled" or any(m.peers == "Require" or is_listed_with_tls(m) for m in state.members):
        return None
    is_reverted = any(member.peers == "Disabled" for member in state.members)
    return "Disabled" if is_reverted or state.persisted.upgrade is None else None


def _forget(state: ClusterState, recorded: TlsRecord) -> Plan:
    """No member has certificates for peers any more, and none is issued."""
    record = msgspec.structs.replace(recorded, peer_ca="", peer_mode=NONE.peer_mode)
    if record.client_ca:
        return _recorded(state, record)  # the Secrets of members have certificates for clients, too
    return _recorded(state, record, dropping(state, is_mounted=False))


def _is_settled(state: ClusterState) -> bool:
    """Whether no member is being restarted, and all connect to each other as is on record."""
    return state.persisted.upgrade is None and all(
        is_peering_as_recorded(state, member) for member in state.members
    )


def refused(state: ClusterState) -> Plan | None:
    """Report pods whose TLS for peers cannot be changed."""
    recorded, wanted = state.persisted.tls or NONE, members_of(state.desired.tls)
    names = [member.name for member in state.members if member.pod is not None and member.peers is None]
    if not names or not state.kind.restarts_in_place or bool(recorded.peer_ca) == wanted.issued[0]:
        return None
    return Plan.hold(TLS_REFUSED, of_earlier_version(names, "their TLS for peers cannot be changed"))


def _recorded(state: ClusterState, record: TlsRecord, *before: Action) -> Plan:
    mode: PeerMode = record.peer_mode if record.peer_ca else "Disabled"
    message = f"recording how members connect to each other: tls.peer {mode}"
    return tls_record.recorded(state, record, *before, message=message)
