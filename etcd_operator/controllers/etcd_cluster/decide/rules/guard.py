"""Reasons to do nothing at all: these come before every other rule."""

from etcd_operator.controllers.etcd_cluster.decide.actions import Plan
from etcd_operator.controllers.etcd_cluster.decide.adoption.adopt_record import may_have_adopted
from etcd_operator.controllers.etcd_cluster.decide.facts.budget import missing_budget
from etcd_operator.controllers.etcd_cluster.decide.recovery.ending import cut_off
from etcd_operator.controllers.etcd_cluster.decide.state import ClusterState
from etcd_operator.controllers.etcd_cluster.decide.status import auth_enabled, named, of_another_operator
from etcd_operator.controllers.shared.decide.holds import CATCH_UP, RETRY_HELD

FORMER_RECHECK = 0.5
"""Seconds; usually the event of a deletion leads to a pass before."""


def deleting(state: ClusterState) -> Plan | None:
    """Kubernetes deletes what the cluster owns, by owner references."""
    if not state.desired.is_deleting:
        return None
    return Plan.hold("Deleting", "the cluster is being deleted")


def paused(state: ClusterState) -> Plan | None:
    """The user wants no acts; status is still written."""
    if not state.desired.is_paused:
        return None
    return Plan.hold("Paused", f"the cluster is paused: nothing is changed{cut_off(state)}")


def invalid(state: ClusterState) -> Plan | None:
    """A spec that cannot be acted on changes status only, never the running cluster."""
    if not state.desired.problem:
        return None
    return Plan.hold("InvalidSpec", state.desired.problem)


def stale(state: ClusterState) -> Plan | None:
    """A state older than our own last write is outdated; if it remains so, `unseen` reports that."""
    if state.is_fresh or state.unseen is not None:
        return None
    return Plan.wait("CatchingUp", "waiting for the cache to catch up", requeue_after=CATCH_UP)


def unseen(state: ClusterState) -> Plan | None:
    """What cannot be read must not look like what is absent."""
    if state.unseen is None:
        return None
    return Plan.hold(state.unseen.reason, state.unseen.message, requeue_after=RETRY_HELD)


def conflicting(state: ClusterState) -> Plan | None:
    """Somebody else's object has a name that this cluster needs."""
    if not state.conflict:
        return None
    return Plan.hold("NameConflict", state.conflict, requeue_after=RETRY_HELD)


def other_operator(state: ClusterState) -> Plan | None:
    """Another operator has members under this name: nothing may begin beside them.

    Its Services would lead its clients to members of ours as well, which have other data, or none.
    """
    if not state.objects_of_others or state.persisted.has_begun:
        return None
    return Plan.hold(*of_another_operator(state.objects_of_others), requeue_after=RETRY_HELD)


def former(state: ClusterState) -> Plan | None:
    """Nothing begins beside members of a former resource of this name.

    They may be left without an owner, and serve: see `rules.take_back`.
    """
    if not state.former or state.persisted.has_begun:
        return None
    names = named(state.former)
    message = f"waiting for the deletion of {names}, of a former resource of this name"
    return Plan.wait("PredecessorTerminating", message, requeue_after=FORMER_RECHECK)


def split(state: ClusterState) -> Plan | None:
    """Members of two clusters under one name: no act of ours can be right for both."""
    ids = set(state.cluster_ids)
    if state.persisted.is_bootstrapped:
        ids.add(state.persisted.cluster_id)
    recovery = state.persisted.recovery
    if recovery is not None:
        ids -= set(recovery.given_up_ids)  # see `recovery.situation`
    if len(ids) < 2:
        return None
    names = ", ".join(member.name for member in state.foreign)
    effect = f"clients no longer reach {names}, nothing else is changed" if names else "nothing is changed"
    return Plan.hold(
        "SplitBrain",
        f"members belong to different clusters ({', '.join(sorted(ids))}): {effect}; "
        "stop the members that do not belong to this cluster",
        requeue_after=RETRY_HELD,
    )


def locked(state: ClusterState) -> Plan | None:
    """Without a user the members cannot be read or changed; rules that need none come before."""
    if not state.persisted.is_bootstrapped or not state.requires_user:
        return None
    budget = missing_budget(state)
    if budget:
        return Plan.act(*budget, reason="Protecting", message="protecting the quorum from evictions")
    return Plan.hold(*auth_enabled(state), requeue_after=RETRY_HELD)


def unknown_members(state: ClusterState) -> Plan | None:
    """Quorum arithmetic over our own members only would be wrong: no membership change is safe."""
    if not state.unknown_members:
        return None
    names = ", ".join(f"{entry.name} ({entry.id})".strip() for entry in state.unknown_members)
    return Plan.hold(
        "UnknownMember",
        f"etcd lists members that the operator did not create ({names}): {_advice(state)}",
        requeue_after=RETRY_HELD,
    )


def _advice(state: ClusterState) -> str:
    """A resource that resumed on claims without initial members may have been adopting a cluster."""
    if may_have_adopted(state):
        return (
            "if this resource was created again during an adoption, set spec.adopt again, with the client "
            "URLs of these members; otherwise remove them with `etcdctl member remove`"
        )
    return "remove them with `etcdctl member remove`"
