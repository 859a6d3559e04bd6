"""Objects of ours without their labels: nothing is concluded from their absence, and they get them back."""

from collections.abc import Callable
from typing import Any

import pytest

from etcd_operator.controllers.etcd_cluster.decide.actions import RemoveMember
from etcd_operator.errors import Conflict
from unit.controllers.etcd_cluster.test_acts import Acts
from unit.controllers.etcd_cluster.test_protect import pod_of
from unit.fakes.apiserver import Json, Kind
from unit.fakes.apiserver.kinds import BUDGETS, CLAIMS, PODS, REPLICA_SETS, SERVICES
from unit.passes.bench import PEER_LABEL, Bench, bootstrapped
from unit.passes.bodies import COREOS, IMPROBABLE, MAKERS, PEERS, ephemeral, persistent
from unit.passes.expected import assert_finished
from unit.passes.manual_recoveries import ask, lost_for_long

CLUSTER = {COREOS: "etcd_cluster", IMPROBABLE: "etcd.improbable.io/cluster-name"}
EVERY_LABEL = {
    COREOS: ["etcd_cluster", "etcd_node"],
    IMPROBABLE: [CLUSTER[IMPROBABLE], PEER_LABEL, "app.kubernetes.io/name"],
}


def strip(made: Bench, kind: Kind, name: str, *labels: str) -> None:
    """As `kubectl label KIND NAME LABEL-`."""
    made.edit(kind, name, {"metadata": {"labels": dict.fromkeys(labels)}})


def identities(made: Bench) -> list[tuple[str, str]]:
    """All that members are made of, by name and UID."""
    kinds = (PODS, SERVICES, BUDGETS, CLAIMS, REPLICA_SETS, PEERS)
    found = [obj["metadata"] for kind in kinds for obj in made.api.objects.select(kind)]
    return sorted((meta["name"], meta["uid"]) for meta in found)


@MAKERS
@pytest.mark.parametrize("size", [1, 3, 5])
def test_members_whose_pods_lost_their_label_are_kept_and_get_it_back(
    make: Callable[..., Any], size: int
) -> None:
    kind, body = make(size=size)
    with bootstrapped(kind, body) as made:
        before, writes = identities(made), list(made.etcd.etcd.writes)
        for name in made.etcd.running[: size - size // 2]:
            strip(made, PODS, pod_of(made, name)["metadata"]["name"], CLUSTER[kind])
        made.run_until(
            lambda: all(CLUSTER[kind] in p["metadata"]["labels"] for p in made.api.objects.select(PODS))
        )
        made.settle()
        assert made.etcd.etcd.writes == writes
        assert identities(made) == before
        assert "LabelsRestored" in str(made.event_reasons())
        assert_finished(made, kind, size)


@pytest.mark.parametrize(
    ("make", "label"),
    [(ephemeral, "etcd_node"), (persistent, PEER_LABEL), (persistent, "app.kubernetes.io/name")],
)
def test_any_label_by_which_a_pod_is_selected_comes_back(make: Callable[..., Any], label: str) -> None:
    kind, body = make()
    with bootstrapped(kind, body) as made:
        before = identities(made)
        pod = pod_of(made, made.etcd.running[1])["metadata"]["name"]
        strip(made, PODS, pod, label)
        made.run_until(lambda: label in made.get(PODS, pod)["metadata"]["labels"])
        made.settle()
        assert identities(made) == before


def test_two_etcds_never_run_on_one_claim_although_its_replica_set_let_the_first_pod_go() -> None:
    with bootstrapped(*persistent()) as made:
        pod = pod_of(made, "c-1")["metadata"]
        made.kill()
        strip(made, PODS, pod["name"], *EVERY_LABEL[IMPROBABLE])
        made.world.settle()
        assert len(made.names(PODS)) == 4, "the ReplicaSet makes another one"
        made.start()
        made.settle()
        assert made.get(PODS, pod["name"])["metadata"]["uid"] == pod["uid"], "the one that serves is kept"
        assert len(made.names(PODS)) == 3
        assert_finished(made, IMPROBABLE, 3)


@pytest.mark.parametrize(
    ("make", "kind", "name"),
    [
        (ephemeral, SERVICES, "c"),
        (ephemeral, SERVICES, "c-0001"),
        (ephemeral, BUDGETS, "c"),
        (persistent, SERVICES, "c"),
        (persistent, SERVICES, "c-peer"),
        (persistent, BUDGETS, "c"),
        (persistent, CLAIMS, "c-1"),
        (persistent, REPLICA_SETS, "c-1"),
        (persistent, PEERS, "c-1"),
    ],
)
def test_any_other_object_that_lost_its_label_gets_it_back(
    make: Callable[..., tuple[Kind, Json]], kind: Kind, name: str
) -> None:
    cluster, body = make()
    with bootstrapped(cluster, body) as made:
        before, writes = identities(made), list(made.etcd.etcd.writes)
        strip(made, kind, name, CLUSTER[cluster])
        made.run_until(lambda: CLUSTER[cluster] in made.get(kind, name)["metadata"]["labels"])
        made.settle()
        assert (identities(made), made.etcd.etcd.writes) == (before, writes)
        assert_finished(made, cluster, 3)


@pytest.mark.parametrize(
    ("make", "storage"), [(ephemeral, PODS), (persistent, CLAIMS)], ids=["ephemeral", "persistent"]
)
def test_no_member_is_removed_whose_own_pod_or_claim_is_there_when_it_is_read_live(
    make: Callable[..., Any], storage: Kind
) -> None:
    """A new leader's watch may be half-open: it shows nothing of what is there."""
    kind, body = make()
    with bootstrapped(kind, body) as made:
        name = made.etcd.running[1]
        strip(made, storage, name, *EVERY_LABEL[kind])
        acts = Acts(made, kind)
        assert acts.state.kind.storage_of(acts.state.by_name[name]) is None
        with pytest.raises(Conflict, match=f"{name} still exists"):
            acts.act(RemoveMember(name=name, member_id=acts.state.by_name[name].id))
        assert len(made.etcd.etcd.members) == 3
        assert set(EVERY_LABEL[kind]) <= set(made.get(storage, name)["metadata"]["labels"])


def test_a_claim_of_somebody_else_with_all_our_labels_is_not_ours() -> None:
    """Labels prove nothing: a copy has them, too."""
    with bootstrapped(*persistent()) as made:
        labels = made.get(CLAIMS, "c-2")["metadata"]["labels"]
        made.create(
            CLAIMS,
            {"metadata": {"name": "c-3", "labels": {**labels, PEER_LABEL: "c-3"}}, "spec": {}},
        )
        made.edit(IMPROBABLE, "c", {"spec": {"replicas": 4}})
        made.run_until(lambda: made.reason(IMPROBABLE) == "ClaimInTheWay")
        made.wait(20.0)
        assert made.objects()["peers"] == ["c-0", "c-1", "c-2"]


def test_no_member_is_started_on_a_claim_of_somebody_else_while_no_quorum_answers() -> None:
    """Nobody reports who the members are then."""
    with bootstrapped(*persistent()) as made:
        labels = made.get(CLAIMS, "c-2")["metadata"]["labels"]
        made.create(
            CLAIMS,
            {"metadata": {"name": "c-3", "labels": {**labels, PEER_LABEL: "c-3"}}, "spec": {}},
        )
        frozen = made.etcd.running
        for name in frozen:
            made.etcd.etcd.freeze(name)
        made.run_until(lambda: made.reason(IMPROBABLE) == "QuorumLost")
        made.wait(20.0)
        assert made.objects()["peers"] == ["c-0", "c-1", "c-2"]


@pytest.mark.parametrize(
    "is_made_again", [False, True], ids=["ReplicaSet is kept", "ReplicaSet is made again"]
)
def test_a_recovered_member_starts_from_its_own_directory_while_its_claim_lacks_its_labels(
    is_made_again: bool,
) -> None:
    """Only the claim shows that its data is in the directory of a seed: in another one there is none."""
    with bootstrapped(*persistent()) as made:
        lost_for_long(made)
        ask(made)
        made.settle()
        template = made.get(REPLICA_SETS, "c-3")["spec"]["template"]
        strip(made, CLAIMS, "c-3", *EVERY_LABEL[IMPROBABLE])
        if is_made_again:
            made.delete(REPLICA_SETS, "c-3")
        for _ in range(40):
            made.turn()
            if "c-3" in made.names(REPLICA_SETS):
                assert made.get(REPLICA_SETS, "c-3")["spec"]["template"] == template
        made.settle()
        assert_finished(made, IMPROBABLE, 3, (0, 1, 3), kept=("c-2",))


def test_pods_that_run_without_their_labels_come_back_as_the_same_members() -> None:
    """Nobody can find them, so the message does not ask to delete the cluster before searching for them."""
    kind, body = ephemeral()
    with bootstrapped(kind, body) as made:
        before, writes = identities(made), list(made.etcd.etcd.writes)
        pods = made.names(PODS)
        for name in pods:
            strip(made, PODS, name, *EVERY_LABEL[kind])
        made.run_until(lambda: made.reason(kind) == "NoBackup")
        assert "if pods run without these labels" in made.condition(kind, "Degraded")["message"]
        for name in pods:
            made.edit(PODS, name, {"metadata": {"labels": {"etcd_cluster": "c"}}})
        made.settle()
        assert (identities(made), made.etcd.etcd.writes) == (before, writes)
        assert_finished(made, kind, 3)
