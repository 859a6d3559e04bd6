"""EtcdClusters that exist and cannot be read: they are not deleted."""

from collections.abc import Callable
from typing import Any

from etcd_operator.keys import Key
from unit.controllers.backup_tool.test_backup_tool import TOOL, backed_up
from unit.controllers.etcd_cluster.observe.test_labels import identities
from unit.controllers.etcd_cluster.recovery.test_restore_at_creation import (
    FROM_OLD,
    ON_VOLUME,
    fetch_of,
    members,
    world,
)
from unit.fakes.apiserver import Kind
from unit.fakes.apiserver.kinds import PODS, REPLICA_SETS
from unit.passes.bench import Bench, bench, bootstrapped
from unit.passes.bodies import COREOS, IMPROBABLE, MAKERS, PEERS, ephemeral, persistent
from unit.passes.expected import assert_finished
from unit.passes.tools import stored as tools_report
from unit.passes.unreadable import KNOWN_OR_NOT, UNREADABLE, WHY, events, mend, spoil


def leaving(made: Bench) -> list[str]:
    """The EtcdPeers whose deletion has begun."""
    return [name for name in made.names(PEERS) if "deletionTimestamp" in made.get(PEERS, name)["metadata"]]


def held(made: Bench, kind: Kind) -> str:
    assert made.operator is not None
    shown = made.operator.cluster_metrics.get((kind.group, Key("default", "c")))
    return shown.held if shown is not None else "not shown"


@MAKERS
@KNOWN_OR_NOT
def test_nothing_of_a_cluster_that_cannot_be_read_is_changed(
    make: Callable[..., Any], *, is_new: bool
) -> None:
    kind, body = make()
    with bootstrapped(kind, body) as made:
        before, uid = identities(made), made.get(kind, "c")["metadata"]["uid"]
        if is_new:
            made.kill()
        good = spoil(made, kind)
        made.edit(kind, "c", {"spec": {"size" if kind is COREOS else "replicas": 5}})
        spoiled = made.get(kind, "c")
        if is_new:
            made.start()
        made.wait(120.0)
        writes = made.count_writes()
        made.wait(60.0)
        assert made.count_writes() == writes
        assert identities(made) == before
        assert made.get(kind, "c") == spoiled
        for pod in made.names(PODS):  # each a pass
            made.edit(PODS, pod, {"metadata": {"labels": {"example.com/seen": "yes"}}})
        made.wait(10.0)
        assert events(made, kind) == [(uid, f"{WHY}: nothing is changed", 1)]
        assert held(made, kind) == UNREADABLE
        mend(made, kind, good)
        made.settle()
        assert_finished(made, kind, 5)
        assert held(made, kind) == ""
        spoil(made, kind)
        made.wait(10.0)
        assert events(made, kind) == [(uid, f"{WHY}: nothing is changed", 2)]


@MAKERS
@KNOWN_OR_NOT
def test_a_pod_that_is_lost_meanwhile_is_replaced_once_its_cluster_is_read(
    make: Callable[..., Any], *, is_new: bool
) -> None:
    kind, body = make()
    with bootstrapped(kind, body) as made:
        good = spoil(made, kind)
        if is_new:
            made.restart()
        made.wait(30.0)
        if kind is COREOS:  # a ReplicaSet of Kubernetes would make it again
            made.delete(PODS, made.names(PODS)[0])
        made.wait(120.0)
        assert len(made.names(PODS)) == (2 if kind is COREOS else 3)
        mend(made, kind, good)
        made.run_until(lambda: len(made.names(PODS)) == 3)
        made.settle()
        assert_finished(made, kind, 3, numbers=(1, 2, 3) if kind is COREOS else ())


@MAKERS
@KNOWN_OR_NOT
def test_a_cluster_that_is_deleted_before_it_is_read_is_shown_no_more(
    make: Callable[..., Any], *, is_new: bool
) -> None:
    kind, body = make(size=1)
    with bootstrapped(kind, body) as made:
        spoil(made, kind)
        if is_new:
            made.restart()
        made.wait(30.0)
        assert held(made, kind) == UNREADABLE
        made.delete(kind, "c")
        made.drain()
        assert held(made, kind) == "not shown"


@MAKERS
def test_a_cluster_that_cannot_be_read_and_has_no_objects_is_reported(make: Callable[..., Any]) -> None:
    kind, body = make()
    with bench(only=(kind.group,)) as made:
        made.create(kind, body)
        made.edit(kind, "c", {"status": {"endpoints": 5}}, subresource="status")
        made.start()
        made.wait(30.0)
        assert len(events(made, kind)) == 1
        assert not made.names(PODS)


@KNOWN_OR_NOT
def test_peers_of_a_cluster_that_cannot_be_read_are_not_called_handmade(*, is_new: bool) -> None:
    with bootstrapped(*persistent()) as made:
        good = spoil(made, IMPROBABLE)
        if is_new:
            made.restart()
        made.wait(60.0)
        statuses = [made.get(PEERS, name)["status"]["conditions"] for name in made.names(PEERS)]
        assert {condition["reason"] for conditions in statuses for condition in conditions} == {"Healthy"}
        mend(made, IMPROBABLE, good)
        made.settle()
        assert_finished(made, IMPROBABLE, 3)


def test_a_removed_member_of_a_cluster_that_cannot_be_read_keeps_its_finalizer_until_it_is_read() -> None:
    with bootstrapped(*persistent()) as made:
        made.edit(IMPROBABLE, "c", {"spec": {"replicas": 2}})
        made.run_until(lambda: leaving(made) != [])
        (gone,) = leaving(made)
        made.kill()
        good = spoil(made, IMPROBABLE)
        made.delete(REPLICA_SETS, gone)
        made.start()
        made.wait(60.0)
        assert gone in made.names(PEERS)
        mend(made, IMPROBABLE, good)
        made.settle()
        assert made.objects()["claims"] == ["c-0", "c-1"]


@KNOWN_OR_NOT
def test_a_cluster_that_cannot_be_read_is_deleted_in_the_foreground(*, is_new: bool) -> None:
    """It goes after its EtcdPeers, and one that is being removed has our finalizer."""
    with bootstrapped(*persistent()) as made:
        made.edit(IMPROBABLE, "c", {"spec": {"replicas": 2}})
        made.run_until(lambda: leaving(made) != [])
        (gone,) = leaving(made)
        spoil(made, IMPROBABLE)
        if is_new:
            made.restart()
        made.delete(REPLICA_SETS, gone)
        made.wait(60.0)
        assert made.names(PEERS) == ["c-0", "c-1", gone]
        made.delete(IMPROBABLE, "c", propagation="Foreground")
        made.wait(60.0)
        assert (made.names(PEERS), made.names(IMPROBABLE)) == ([], [])


def test_a_cluster_of_the_other_group_is_not_made_beside_one_that_cannot_be_read() -> None:
    with bootstrapped(*persistent(), alone=False) as made:
        before = identities(made)
        made.kill()
        made.clock.advance(10.0)
        made.create(*ephemeral())
        spoil(made, IMPROBABLE)
        made.start()
        made.wait(60.0)
        assert made.reason(COREOS) == "NameConflict"
        assert identities(made) == before


def test_of_a_younger_cluster_that_cannot_be_read_an_older_one_takes_no_notice() -> None:
    with bootstrapped(*ephemeral(), alone=False) as made:
        before = identities(made)
        made.clock.advance(10.0)
        made.create(*persistent())
        made.wait(30.0)
        spoil(made, IMPROBABLE)
        made.restart()
        made.settle((COREOS, "c"))
        assert identities(made) == before


@KNOWN_OR_NOT
def test_the_backup_tool_of_a_cluster_that_cannot_be_read_goes_on(*, is_new: bool) -> None:
    with bench() as made:
        backed_up(made)
        shown = dict(made.operator.backup_metrics) if made.operator is not None else {}
        good = spoil(made, COREOS)
        made.edit(COREOS, "c", {"spec": {"backup": None}})
        if is_new:
            made.restart()
        made.wait(10.0)
        made.tools.report, writes = tools_report(revision=9, count=2), made.count_writes()
        made.wait(120.0)
        assert made.count_writes() == writes
        assert TOOL in made.names(REPLICA_SETS)
        assert made.operator is not None
        assert made.operator.backup_metrics.keys() == (set() if is_new else shown.keys())
        mend(made, COREOS, good)
        made.run_until(lambda: TOOL not in made.names(REPLICA_SETS))


def test_a_restore_at_creation_waits_until_the_cluster_of_the_backup_is_read() -> None:
    with world() as made:
        made.create(*ephemeral("old", size=1, backup=ON_VOLUME))
        made.settle((COREOS, "old"))
        made.kill()
        good = spoil(made, COREOS, "old")
        made.create(*ephemeral(restore=FROM_OLD))
        made.start()
        made.wait(60.0)
        assert [name for name in members(made) if name.startswith("c-")] == []
        assert "EtcdCluster old exists and cannot be read" in made.condition(COREOS, "Degraded")["message"]
        mend(made, COREOS, good, "old")
        assert "old-pvc" not in str(fetch_of(made))
