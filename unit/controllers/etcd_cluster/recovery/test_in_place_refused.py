"""A restore in place whose point of no return the API server refuses: clients are not cut off for that."""

from collections.abc import Callable

import pytest

from unit.fakes.apiserver import Answer, Fault, Request
from unit.fakes.apiserver.kinds import CLAIMS
from unit.passes.bench import Bench
from unit.passes.bodies import IMPROBABLE
from unit.passes.expected import assert_finished
from unit.passes.manual_recoveries import is_reason, message
from unit.passes.restored_clusters import RESTORE, Stored, stored

NAME = "c0de/one/1"
WHY = 'admission webhook "policy.example" denied the request'
OLD = ("c-0", "c-1", "c-2")
PATCHED = {"pods": "c-3", "etcdpeers": "c-3", "persistentvolumeclaims": "c-3"}
"""The writes of the point of no return."""


def refusing(plural: str, *, also_dry: bool) -> Callable[[Request], Fault | None]:
    """An admission webhook that refuses changes of one object of the seed."""

    def judge(request: Request) -> Fault | None:
        is_seeds = f"/{plural}/{PATCHED[plural]}" in request.path and not request.subresource
        if request.method != "PATCH" or not is_seeds or (request.query and not also_dry):
            return None
        return Answer(code=403, reason="Forbidden", message=WHY)

    return judge


def selected_until(made: Bench, backups: Stored, claim: Callable[[], bool]) -> list[str]:
    """What the Service selected, at each turn."""
    seen: list[str] = []

    def observe() -> bool:
        seen.append(backups.selected)
        return claim()

    backups.until(observe)
    return seen


@pytest.mark.parametrize("plural", PATCHED)
def test_a_change_that_is_refused_is_found_before_clients_are_cut_off(plural: str) -> None:
    with stored() as (made, backups):
        first = backups.selected
        made.api.before = refusing(plural, also_dry=True)
        backups.ask(NAME)
        seen = selected_until(made, backups, is_reason(made, "Forbidden"))
        made.wait(60.0)
        assert {*seen, backups.selected} == {first}
        assert WHY in message(made)
        assert made.condition(IMPROBABLE, "Available")["status"] == "True"
        made.api.before = lambda _: None
        backups.until_restored()
        assert b"later" not in made.etcd.etcd.keys
        assert_finished(made, IMPROBABLE, 3, (3, 4, 5), kept=OLD)


def test_clients_reach_the_old_cluster_again_if_the_change_is_refused_after_that() -> None:
    with stored() as (made, backups):
        first = backups.selected
        made.api.before = refusing("persistentvolumeclaims", also_dry=False)
        backups.ask(NAME)
        backups.until(is_reason(made, "Forbidden"))
        made.wait(5.0)
        assert backups.selected == "closed"
        assert WHY in message(made)
        assert f"to cancel the restore, remove the annotation {RESTORE}" in message(made)
        backups.until(is_reason(made, "RestoreFailed"))
        assert "did not take over within 2 min" in message(made)
        assert backups.selected == first
        backups.ask(None)
        made.settle()
        assert_finished(made, IMPROBABLE, 3)
        assert made.names(CLAIMS) == list(OLD)
        assert made.etcd.etcd.keys[b"later"] == (b"value", 3)


def test_a_pause_does_not_keep_clients_cut_off() -> None:
    with stored() as (made, backups):
        first = backups.selected
        made.api.before = refusing("persistentvolumeclaims", also_dry=False)
        backups.ask(NAME)
        backups.until(lambda: backups.selected == "closed")
        made.edit(IMPROBABLE, "c", {"metadata": {"annotations": {"etcd.improbable.io/paused": "true"}}})
        backups.until(lambda: backups.selected == first)
        made.wait(60.0)
        assert backups.selected == first
        made.api.before = lambda _: None
        made.edit(IMPROBABLE, "c", {"metadata": {"annotations": {"etcd.improbable.io/paused": None}}})
        backups.until_restored()
        assert b"later" not in made.etcd.etcd.keys
