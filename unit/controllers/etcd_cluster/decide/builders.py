"""States for tests: `bootstrapped(voters=3)`, `bootstrapping(3)`, `persistent(size=5)`.

Every builder gives a state with nothing wrong; a test names only what differs.
"""

from dataclasses import replace
from typing import Any

import msgspec

from etcd_operator.api.persisted import Bootstrap
from etcd_operator.api.recoveries import Recovery, Survivor
from etcd_operator.controllers.etcd_cluster.decide.desired import DesiredCluster, PersistedState
from etcd_operator.controllers.etcd_cluster.decide.kinds.ephemeral import EPHEMERAL
from etcd_operator.controllers.etcd_cluster.decide.kinds.persistent import PERSISTENT
from etcd_operator.controllers.etcd_cluster.decide.kinds.protocol import Kind
from etcd_operator.controllers.etcd_cluster.decide.members import (
    ClaimFacts,
    Member,
    PeerFacts,
    PodFacts,
    PodProblem,
    quorum,
)
from etcd_operator.controllers.etcd_cluster.decide.replies import Answer
from etcd_operator.controllers.etcd_cluster.decide.state import ClusterState
from etcd_operator.etcd.values import EtcdMember, Refused

CLUSTER_ID = "cdf818194e3a8c32"
TOKEN = "uid-1"
VERSION = "3.6.16"
NAMES = ("db-0", "db-1", "db-2")
"""Of three persistent members."""


def desired(kind: Kind = PERSISTENT, **changes: Any) -> DesiredCluster:
    """Three members of the latest version."""
    asked = DesiredCluster(
        api_version="example/v1",
        namespace="ns",
        name="db",
        uid=TOKEN,
        generation=7,
        created="2026-01-01T00:00:00Z",
        size=3,
        repository="quay.io/coreos/etcd",
        version=VERSION,
        kind=kind,
        selector="cluster=db",
    )
    return replace(asked, **changes)


def persistent(**changes: Any) -> DesiredCluster:
    """A cluster whose members keep their data on claims."""
    return desired(PERSISTENT, **changes)


def ephemeral(**changes: Any) -> DesiredCluster:
    """A cluster whose members' data ends with their pods."""
    return desired(EPHEMERAL, **changes)


def entry(name: str, *, is_learner: bool = False) -> EtcdMember:
    """A member as etcd lists it; its ID is `id-` and its name."""
    return EtcdMember(id=f"id-{name}", name=name, peer_urls=(f"http://{name}:2380",), is_learner=is_learner)


FULL_STORE: Any = {"errors": ("memberID:7 alarm:NOSPACE ",), "is_out_of_space": True}
"""What the alarm NOSPACE changes in the answers of all members."""

AN_ERROR: Any = {"errors": ("something else",), "has_other_errors": True}
"""What an error that is no alarm changes in an answer."""


def answer(name: str, listed: tuple[EtcdMember, ...] = (), **changes: Any) -> Answer:
    """The answer of a healthy voter: it follows the member that is listed first."""
    made = Answer(
        member_id=f"id-{name}",
        cluster_id=CLUSTER_ID,
        version=VERSION,
        leader=listed[0].id if listed else f"id-{name}",
        committed=20,
        members=listed,
    )
    return replace(made, **changes)


def pod(name: str, **changes: Any) -> PodFacts:
    """A pod that runs its first process."""
    made = PodFacts(
        name=name, uid=f"pod-{name}", ip="10.0.0.1", is_running=True, has_run=True, version=VERSION
    )
    return replace(made, **changes)


def claim(name: str, **changes: Any) -> ClaimFacts:
    """A bound claim of the bootstrap `TOKEN`, not yet annotated with a cluster ID."""
    facts = ClaimFacts(
        name=name, uid=f"claim-{name}", is_bound=True, token=TOKEN, initial_members=("db-0", "db-1", "db-2")
    )
    return replace(facts, **changes)


def old_claim(name: str, *, size: int = 3, **changes: Any) -> ClaimFacts:
    """A claim of a cluster that has served, whose voters were `size` members."""
    voters = tuple(f"db-{number}=id-db-{number}" for number in range(size))
    annotated = claim(name, cluster_id=CLUSTER_ID, member_id=f"id-{name}", voters=voters, voters_revision=1)
    return replace(annotated, **changes)


def peer(name: str, **changes: Any) -> PeerFacts:
    """A peer that still has its bootstrap flags."""
    return replace(PeerFacts(name=name, uid=f"peer-{name}", version=VERSION), **changes)


def silent(cluster: DesiredCluster, name: str, **changes: Any) -> Member:
    """An initial member that runs and does not answer."""
    if cluster.kind is PERSISTENT:
        made = Member(name=name, peer=peer(name), claim=claim(name), pod=pod(name))
    else:
        made = Member(name=name, has_service=True, pod=pod(name))
    return replace(made, **changes)


def serving(cluster: DesiredCluster, name: str, listed: tuple[EtcdMember, ...], **changes: Any) -> Member:
    """A healthy voter that serves and has an existing-only start."""
    ready = pod(name, is_gated=True, serves=True, is_existing_only=True)
    made = silent(cluster, name, pod=ready, entry=entry(name), answer=answer(name, listed))
    if cluster.kind is PERSISTENT:
        made = replace(made, peer=peer(name, is_existing_only=True), claim=old_claim(name, size=len(listed)))
    return replace(made, **changes)


def not_bootstrapped(cluster: DesiredCluster, **changes: Any) -> ClusterState:
    """A new resource: nothing exists."""
    return ClusterState(desired=cluster, **changes)


def bootstrapping(cluster: DesiredCluster, **changes: Any) -> ClusterState:
    """The initial members' objects are there and run; none serves yet."""
    names = cluster.initial_member_names
    bootstrap = Bootstrap(members=names, token=TOKEN, version=VERSION)
    begun = replace(cluster, persisted=PersistedState(bootstrap=bootstrap, next_ordinal=len(names)))
    state = ClusterState(
        desired=begun,
        members=tuple(silent(begun, name) for name in names),
        has_client_service=True,
        budget=quorum(len(names)),
    )
    return replace(state, **changes)


def bootstrapped(
    cluster: DesiredCluster | None = None, *, voters: int | None = None, **changes: Any
) -> ClusterState:
    """A settled cluster with `voters` healthy voters, an hour old."""
    cluster = cluster or persistent(size=voters or 3)
    names = tuple(cluster.member_name(ordinal) for ordinal in range(voters or cluster.size))
    listed = tuple(entry(name) for name in names)
    bootstrap = Bootstrap(members=names, token=TOKEN, version=VERSION)
    persisted = PersistedState(bootstrap=bootstrap, cluster_id=CLUSTER_ID, next_ordinal=len(names))
    state = ClusterState(
        desired=replace(cluster, persisted=persisted),
        members=tuple(serving(cluster, name, listed) for name in names),
        has_client_service=True,
        budget=quorum(max(len(names), cluster.size)),
        has_quorum=True,
        age=3600.0,
    )
    return replace(state, **changes)


def with_record(state: ClusterState, **changes: Any) -> ClusterState:
    """Other values in the record that status keeps."""
    persisted = replace(state.persisted, **changes)
    return replace(state, desired=replace(state.desired, persisted=persisted))


def changed(state: ClusterState, name: str, **changes: Any) -> ClusterState:
    """`state` with one member changed."""
    members = tuple(replace(m, **changes) if m.name == name else m for m in state.members)
    return replace(state, members=members)


def answering(state: ClusterState, *names: str, **changes: Any) -> ClusterState:
    """`state` in which some members answer something else."""
    for name in names:
        reply = state.by_name[name].answer
        assert reply is not None
        state = changed(state, name, answer=replace(reply, **changes))
    return state


def unlisted(state: ClusterState, *names: str) -> ClusterState:
    """`state` in which etcd does not list some members."""
    for name in names:
        state = changed(state, name, entry=None)
    return state


def without(state: ClusterState, *names: str) -> ClusterState:
    """`state` without some members, and claims whose annotations agree with that."""
    return annotated(replace(state, members=tuple(m for m in state.members if m.name not in names)))


def annotated(state: ClusterState) -> ClusterState:
    """`state` whose claims name the voters as they are, where they name any."""
    voters = tuple(f"{voter.name}={voter.id}" for voter in state.voters)
    for member in state.members:
        if member.claim is not None and member.claim.voters:
            state = changed(state, member.name, claim=replace(member.claim, voters=voters, voters_revision=2))
    return state


def down(state: ClusterState, *names: str, **changes: Any) -> ClusterState:
    """`state` with some members silent."""
    for name in names:
        state = changed(state, name, answer=None, **changes)
    return state


def refusing(state: ClusterState, *names: str, is_serving: bool = True) -> ClusterState:
    """`state` with some members (default: all) that answer only users, so that nobody lists the members."""
    names = names or tuple(member.name for member in state.members)
    for name in names:
        refusal = Refused(is_serving=is_serving)
        state = changed(state, name, answer=None, entry=None, refusal=refusal)
    return state


def first_recovery(seed: str, survivor: str = "", **changes: Any) -> Recovery:
    """The entry of the first recovery of a cluster, from revision 7."""
    made = Recovery(
        generation=1,
        source=Survivor(name=survivor),
        authority="Proven",
        revision=7,
        version=VERSION,
        seed=seed,
        token=f"{TOKEN}-1",
        replaces=CLUSTER_ID,
    )
    return msgspec.structs.replace(made, **changes)


IMAGE_PROBLEM = PodProblem(reason="ErrImagePull", message="no such image")


def voting(*numbers: int) -> tuple[str, ...]:
    return tuple(f"db-{number}=id-db-{number}" for number in numbers)
