"""What an adoption begins with, and why it is refused."""

from dataclasses import replace
from typing import Any

import msgspec
import pytest

from etcd_operator.api.cluster_spec import Mode
from etcd_operator.api.persisted import Bootstrap
from etcd_operator.api.recoveries import ClaimBackup
from etcd_operator.controllers.etcd_cluster.decide.actions import Remember, Stage
from etcd_operator.controllers.etcd_cluster.decide.adoption.adoptable import LARGEST
from etcd_operator.controllers.etcd_cluster.decide.desired import PersistedState
from etcd_operator.controllers.etcd_cluster.decide.members import Member
from etcd_operator.controllers.etcd_cluster.decide.plan import plan
from etcd_operator.controllers.etcd_cluster.decide.replies import Silence
from etcd_operator.controllers.etcd_cluster.decide.state import ClusterState
from etcd_operator.controllers.etcd_cluster.decide.status import conditions
from etcd_operator.etcd.values import Refused
from unit.controllers.etcd_cluster.decide.adoption.adoptions import answering, endpoint, offered, theirs
from unit.controllers.etcd_cluster.decide.builders import (
    CLUSTER_ID,
    FULL_STORE,
    NAMES,
    claim,
    entry,
    ephemeral,
    old_claim,
    persistent,
    pod,
)
from unit.controllers.etcd_cluster.decide.recovery.quorum_losses import RECOVERY


@pytest.mark.parametrize("count", [1, 3])
def test_the_cluster_id_and_the_external_members_are_recorded_before_anything_is_made(count: int) -> None:
    made = plan(offered(count))

    (remember,) = made.actions
    assert isinstance(remember, Remember)
    assert remember.persisted.cluster_id == CLUSTER_ID
    assert remember.persisted.bootstrap is None
    assert remember.persisted.adoption is not None
    assert remember.persisted.adoption.committed == 20
    assert [(m.id, m.endpoint, m.peer_urls) for m in remember.persisted.adoption.members] == [
        (f"id-old-{n}", endpoint(n), (f"http://old-{n}.there:2380",)) for n in range(count)
    ]
    assert made.reason == "Adopting"


def test_a_restore_that_has_begun_is_in_the_way() -> None:
    source = ClaimBackup(cluster="old")
    begun = msgspec.structs.replace(RECOVERY, replaces="", source=source, authority="Creation")
    state = offered()
    state = replace(state, desired=replace(state.desired, persisted=PersistedState(recovery=begun)))
    made = plan(state)
    assert (made.reason, made.actions) == ("AdoptionRefused", ())


LEARNER = (*theirs(2), replace(theirs(3)[2], is_learner=True))
FOUR = theirs(4)


def listing(state: ClusterState, listed: tuple[object, ...]) -> ClusterState:
    for number in range(3):
        state = answering(state, number, members=listed)
    return state


def with_peer_url(url: str) -> ClusterState:
    return listing(offered(), (*theirs(2), replace(theirs(3)[2], peer_urls=(url,))))


REFUSED = [
    pytest.param(
        answering(offered(), 1, reply=Silence()), "no member of etcd answers at old-1.there:2379", id="silent"
    ),
    pytest.param(answering(offered(), 1, reply=Refused()), "requires authentication", id="auth"),
    pytest.param(
        answering(offered(), 1, cluster_id="other"), "belong to different clusters (cdf8", id="two clusters"
    ),
    pytest.param(
        answering(offered(), 1, is_learner=True, members=()), "has a learner", id="a learner answers"
    ),
    pytest.param(listing(offered(), LEARNER), "has a learner", id="a learner is listed"),
    pytest.param(answering(offered(), 1, members=FOUR), "list different members", id="lists differ"),
    pytest.param(listing(offered(), FOUR), "no endpoint leads to old-3", id="a member is not named"),
    pytest.param(answering(offered(), 1, member_id="id-old-0"), "lead to the same member", id="named twice"),
    pytest.param(answering(offered(), 1, leader=""), "old-1.there:2379 report errors", id="no leader"),
    pytest.param(
        answering(offered(), 1, **FULL_STORE),
        "quota is used up (alarm NOSPACE)",
        id="full",
    ),
    pytest.param(
        answering(offered(), 1, db_size=LARGEST + 1),
        "old-1.there:2379 has 1843 MiB, and members of this resource accept no writes once their database "
        "has 2048 MiB",
        id="more than our quota takes",
    ),
    pytest.param(
        answering(offered(), 1, corrupt=frozenset({"0"})), "report errors or an alarm", id="corrupt"
    ),
    pytest.param(
        answering(offered(), 1, version="3.5.35"), "different versions (3.5.35, 3.6.16)", id="mixed"
    ),
    pytest.param(
        answering(offered(1), 0, version="3.3.27"),
        "version 3.3.27 of the cluster to adopt is not supported",
        id="too old",
    ),
    pytest.param(
        answering(offered(1), 0, version="dev"),
        "version dev of the cluster to adopt is not supported",
        id="no version",
    ),
    pytest.param(answering(offered(1), 0, version="3.7.0"), "cannot go back from 3.7.0", id="newer"),
    pytest.param(answering(offered(1), 0, version="3.4.34"), "one minor version at a time", id="two minors"),
    pytest.param(replace(offered(), has_quorum=False), "no quorum of the cluster to adopt", id="no quorum"),
    pytest.param(offered(5), "the cluster to adopt has 5 members, and this resource asks for 3", id="larger"),
    pytest.param(with_peer_url("http://localhost:2380"), "other machines cannot reach", id="localhost"),
    pytest.param(with_peer_url("http://127.0.0.1:2380"), "other machines cannot reach", id="loopback"),
    pytest.param(with_peer_url("http://0.0.0.0:2380"), "other machines cannot reach", id="unspecified"),
    pytest.param(with_peer_url("https://10.0.0.3:2380"), "is not plain HTTP", id="TLS between peers"),
    pytest.param(replace(offered(), clashes=("http://db-0:2380",)), "under another name", id="same names"),
    pytest.param(
        replace(offered(), members=(Member(name="db-0", claim=claim("db-0")),)), "(db-0)", id="claim"
    ),
    pytest.param(replace(offered(), members=(Member(name="db-0", pod=pod("db-0")),)), "(db-0)", id="pod"),
]


@pytest.mark.parametrize(("state", "why"), REFUSED)
def test_a_cluster_that_cannot_be_adopted_is_left_alone(state: ClusterState, why: str) -> None:
    made = plan(state)

    assert (made.actions, made.stage, made.reason) == ((), Stage.HELD, "AdoptionRefused")
    assert why in made.message


def test_members_of_a_former_resource_that_never_come_back_are_named_by_their_ids() -> None:
    """Ephemeral ones have no data left: nobody can name their client URLs."""
    listed = (*theirs(3), entry("db-0000"))
    made = plan(listing(offered(cluster=ephemeral()), listed))

    assert (made.actions, made.reason) == ((), "AdoptionRefused")
    assert "no endpoint leads to db-0000" in made.message
    assert "never comes back, remove it (etcdctl member remove id-db-0000)" in made.message


def test_a_peer_url_with_an_address_that_pods_reach_is_no_obstacle() -> None:
    assert plan(with_peer_url("http://10.0.0.3:2380")).reason == "Adopting"


def test_a_bootstrap_that_has_begun_is_neither_continued_nor_replaced() -> None:
    bootstrap = Bootstrap(members=("db-0",), token="uid-1")
    state = offered()
    begun = replace(state, desired=replace(state.desired, persisted=PersistedState(bootstrap=bootstrap)))
    served = replace(begun, members=(Member(name="db-0", claim=old_claim("db-0")),))

    for each in (begun, served):
        assert plan(each).reason == "AdoptionRefused"
        assert plan(each).actions == ()


def test_data_of_a_cluster_that_has_served_comes_first() -> None:
    assert plan(on_claims(initial_members=())).reason == "Resuming"


def on_claims(mode: Mode = "Complete", **changes: Any) -> ClusterState:
    """A resource that is to adopt a cluster, and finds claims of one that has served under its name."""
    members = tuple(Member(name=name, claim=old_claim(name, **changes)) for name in NAMES)
    return replace(offered(mode=mode), members=members)


RESTORED: dict[str, Any] = {"initial_members": (), "is_restored": True}


@pytest.mark.parametrize("mode", ["Complete", "Join", "Leave"])
@pytest.mark.parametrize("changes", [{}, RESTORED], ids=["bootstrapped", "restored"])
def test_the_data_of_a_cluster_that_began_here_does_not_end_an_adoption(
    mode: Mode, changes: dict[str, Any]
) -> None:
    """It lists no external member, so on its data the adoption would seem to have ended."""
    made = plan(on_claims(mode, **changes))

    assert (made.actions, made.stage, made.reason) == ((), Stage.HELD, "AdoptionRefused")


@pytest.mark.parametrize("cluster", [persistent(), ephemeral()], ids=["persistent", "ephemeral"])
def test_a_resource_that_is_to_turn_back_begins_nothing(cluster: object) -> None:
    made = plan(offered(mode="Leave", cluster=cluster))  # type: ignore[arg-type]

    assert (made.actions, made.reason) == ((), "TurnedBack")


def test_clients_of_the_resource_are_not_served_by_the_external_members() -> None:
    state = offered()
    found = {each.type: each for each in conditions(state, plan(state))}

    assert (found["Available"].status, found["Available"].reason) == ("False", "Adopting")
