"""Objects that exist and cannot be read: they are not absent."""

from collections.abc import Callable
from typing import Any

import pytest

from etcd_operator.controllers.etcd_cluster.decide.recovery.requested import SILENCE
from unit.controllers.etcd_cluster.observe.test_labels import identities
from unit.fakes.apiserver import Json, Kind
from unit.fakes.apiserver.kinds import CLAIMS, PODS
from unit.passes.bench import Bench, bootstrapped
from unit.passes.bodies import IMPROBABLE, MAKERS, PEERS, persistent
from unit.passes.expected import assert_finished
from unit.passes.manual_recoveries import ask
from unit.passes.restored_clusters import stored

UNTIMED = {
    "type": "example.com/balanced",
    "status": "True",
    "lastProbeTime": None,
    "lastTransitionTime": None,
}
"""As a controller in Go writes a condition to which it gives no time."""


def add_condition(made: Bench, name: str, condition: Json) -> None:
    known = made.get(PODS, name)["status"]["conditions"]
    made.edit(PODS, name, {"status": {"conditions": [*known, condition]}}, subresource="status")


def spoil(made: Bench, name: str) -> None:
    """No API server stores this; it stands for whatever a later Kubernetes may write."""
    add_condition(made, name, {"type": 5, "status": "True"})


def restore(made: Bench, name: str) -> None:
    known = made.get(PODS, name)["status"]["conditions"]
    read = [condition for condition in known if condition["type"] != 5]
    made.edit(PODS, name, {"status": {"conditions": read}}, subresource="status")


@MAKERS
def test_a_pod_with_a_condition_without_a_time_is_a_pod(make: Callable[..., Any]) -> None:
    kind, body = make()
    with bootstrapped(kind, body) as made:
        for name in made.names(PODS):
            add_condition(made, name, UNTIMED)
        before = identities(made)
        made.settle()
        made.restart()
        made.settle()
        assert identities(made) == before
        assert_finished(made, kind, 3)


@MAKERS
@pytest.mark.parametrize("many", [1, 2, 3])
@pytest.mark.parametrize("is_new", [False, True], ids=["known before", "never seen"])
def test_a_member_whose_pod_cannot_be_read_is_neither_lost_nor_replaced(
    make: Callable[..., Any], many: int, is_new: bool
) -> None:
    kind, body = make()
    with bootstrapped(kind, body) as made:
        before, names = identities(made), made.names(PODS)
        for name in names[:many]:
            spoil(made, name)
        if is_new:
            made.restart()
        made.wait(120.0)
        assert made.reason(kind) == "ObjectUnreadable"
        assert f"Pod {names[0]} (Expected `str`, got `int`" in made.condition(kind, "Degraded")["message"]
        assert made.condition(kind, "Available")["status"] != "False"
        assert identities(made) == before
        for name in names[:many]:
            restore(made, name)
        made.settle()
        assert identities(made) == before
        assert_finished(made, kind, 3)


@pytest.mark.parametrize("kind", [CLAIMS, PEERS])
def test_a_persistent_member_of_which_anything_cannot_be_read_is_left_alone(kind: Kind) -> None:
    with bootstrapped(*persistent()) as made:
        before = identities(made)
        made.edit(kind, "c-1", {"metadata": {"finalizers": [5]}})
        made.restart()
        made.wait(60.0)
        assert made.reason(IMPROBABLE) == "ObjectUnreadable"
        assert identities(made) == before


def test_a_pod_that_cannot_be_read_and_lost_its_labels_is_its_clusters_by_its_name() -> None:
    with bootstrapped(*persistent()) as made:
        name = made.names(PODS)[0]
        made.kill()
        made.edit(PODS, name, {"metadata": {"labels": {"etcd.improbable.io/cluster-name": None}}})
        spoil(made, name)
        made.start()
        made.wait(60.0)
        assert made.reason(IMPROBABLE) == "ObjectUnreadable"


def test_members_that_cannot_be_read_are_not_given_up_for_a_backup() -> None:
    with stored() as (made, _):
        before = identities(made)
        for name in made.names(PODS):
            spoil(made, name)
        made.restart()
        made.wait(SILENCE + 60.0)
        ask(made, "c0de/backup:one/1")
        made.wait(60.0)
        assert "recovery" not in made.status(IMPROBABLE)
        assert identities(made) == before
