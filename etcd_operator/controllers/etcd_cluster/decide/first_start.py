"""The first start of a cluster: its initial members, or what they resume from.

A persistent cluster may be created on claims with data: again, or by an EtcdRestore. Then its cluster ID is
on record at once, but no quorum has answered for this resource yet. That is no loss.
"""

from collections.abc import Iterable

from etcd_operator.api.persisted import Bootstrap, TlsRecord
from etcd_operator.controllers.etcd_cluster.decide.actions import Action, CreateMember, Plan, Remember
from etcd_operator.controllers.etcd_cluster.decide.desired import PersistedState
from etcd_operator.controllers.etcd_cluster.decide.polling import BOOTSTRAP_POLL
from etcd_operator.controllers.etcd_cluster.decide.starts import Bootstrapping
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


def create(bootstrap: Bootstrap, names: tuple[str, ...], tls: TlsRecord | None) -> Plan:
    """Record the bootstrap, then create its members of these names. tls: as recorded before."""
    persisted = PersistedState(bootstrap=bootstrap, next_ordinal=len(bootstrap.members), tls=tls)
    return Plan.act(
        Remember(persisted=persisted),
        *initial_members(bootstrap, names),
        reason="Creating",
        message=bootstrapping(bootstrap),
        requeue_after=BOOTSTRAP_POLL,
    )


def initial_members(bootstrap: Bootstrap, names: Iterable[str]) -> list[Action]:
    """The actions that create the initial members of these names."""
    start = Bootstrapping(members=bootstrap.members, token=bootstrap.token)
    return [CreateMember(name=name, start=start, version=bootstrap.version) for name in names]


def bootstrapping(bootstrap: Bootstrap) -> str:
    """One sentence for the whole bootstrap: a status that changes at each step is a write at each step."""
    return f"bootstrapping a cluster of {len(bootstrap.members)}"
