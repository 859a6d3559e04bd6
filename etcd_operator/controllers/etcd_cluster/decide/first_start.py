"""The first start of a persistent cluster that is created on claims with data: again, or by an EtcdRestore.

Its cluster ID is on record at once, but no quorum has answered for this resource yet. That is no loss.
"""

from etcd_operator.controllers.etcd_cluster.decide.state import ClusterState

LONG_BOOTSTRAP = 60.0
"""Seconds after which a start takes long: something outside delays it, or data is missing."""

CREATING = "Creating"
"""The reason of Available, and of the plan, until a cluster has served."""


def is_resuming(state: ClusterState) -> bool:
    """Whether members of a cluster whose ID is on record start for the first time, and have no quorum yet.

    What the status reported before distinguishes a cluster that has served, and lost its quorum since. In an
    adoption, others may have served.
    """
    if state.has_quorum or state.age >= LONG_BOOTSTRAP or state.persisted.is_adopting:
        return False
    return is_resumed(state) and state.desired.available_reason in ("", CREATING)


def is_resumed(state: ClusterState) -> bool:
    """Whether the etcd cluster is older than the resource: its token is not made of the resource's UID."""
    bootstrap = state.persisted.bootstrap
    return bootstrap is not None and not bootstrap.token.startswith(state.desired.uid)


def awaited(state: ClusterState) -> str:
    """What is waited for. One sentence for the whole start: a status that changes at each step is a write."""
    names = ", ".join(member.name for member in state.members)
    return f"waiting for a quorum of {names} to serve on the data of their claims"
