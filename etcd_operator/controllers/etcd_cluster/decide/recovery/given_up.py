"""Ephemeral members that are given up without a person, although their pods exist (`recovery.automatic`).

Nothing proves that they are lost. So a quorum of the old cluster that answers again ends the recovery, as
long as nothing of that cluster was changed.
"""

from dataclasses import replace

import msgspec

from etcd_operator.api.persisted import Recovery
from etcd_operator.controllers.etcd_cluster.decide.actions import Plan
from etcd_operator.controllers.etcd_cluster.decide.recovery.automatic import is_due, without_request
from etcd_operator.controllers.etcd_cluster.decide.recovery.loss import Left
from etcd_operator.controllers.etcd_cluster.decide.recovery.recovery_actions import DropSeed
from etcd_operator.controllers.etcd_cluster.decide.recovery.responders import is_led, responders
from etcd_operator.controllers.etcd_cluster.decide.recovery.seed import SEED_POLL, not_needed, record
from etcd_operator.controllers.etcd_cluster.decide.state import ClusterState


def without_silent(left: Left) -> Left | None:
    """What is left without the members that do not answer; None where they may not be given up."""
    if not is_due(left.state):
        return None
    answering = {name: member for name, member in left.remaining.items() if member.report is not None}
    silent = tuple(name for name in left.remaining if name not in answering and name in left.all_voters)
    given = replace(left, remaining=answering, silent=silent)
    return given if given.able else None


def loss_of(left: Left) -> str:
    """Who is lost or given up, for messages."""
    gone = ", ".join(name for name in left.lost_voters if name not in left.silent)
    if not left.silent:
        return f"{gone} lost for good, no quorum can return"
    given_up = f"{', '.join(left.silent)} {without_request(left.state)}"
    return f"{gone} lost for good, {given_up}" if gone else given_up


def returned(state: ClusterState, recovery: Recovery) -> Plan | None:
    """End a recovery that is not needed; None: it is, or it is too late."""
    seed = state.by_name.get(recovery.seed)
    is_final = seed is not None and seed.pod is not None and seed.pod.is_final_seed
    if not recovery.automatic or is_final or not is_led(state, responders(state)):
        return None
    message = not_needed(recovery)
    if seed is not None:
        drops = () if seed.is_terminating else (DropSeed(name=seed.name),)
        return Plan.act(*drops, reason="RecoveryEnding", message=message, requeue_after=SEED_POLL)
    # With a backup it would be the record of a cluster that was restored when it was created.
    ended = msgspec.structs.replace(recovery, replaces="", backup=None)
    return Plan.act(record(state, ended), reason="QuorumReturned", message=message)
