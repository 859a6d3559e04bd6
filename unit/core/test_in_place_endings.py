"""How a restore in place ends without a change: clients and writes are let in again."""

from dataclasses import replace

import msgspec
import pytest

from etcd_operator.core.actions import Remember
from etcd_operator.core.plan import plan
from etcd_operator.core.recovery_actions import AllowWrites, DropSeed, ReopenClients
from etcd_operator.core.state import ClusterState
from etcd_operator.core.stock import BackupSight
from unit.core.builders import answering, changed, down
from unit.core.stored import IN_PLACE, live, remembering, seeding, sight


def test_a_cancelled_restore_reopens_the_service() -> None:
    state = seeding(live("", backups=sight(is_closed=True)))
    made = plan(state)
    assert made.actions == (AllowWrites(name="db-0"), ReopenClients(name="db-3"), DropSeed(name="db-3"))
    for name in ("db-0", "db-1"):
        state = changed(state, name, answer=None)
    assert plan(state).actions == (ReopenClients(name="db-3"), DropSeed(name="db-3"))


LED, SILENT = live(""), down(live(""), "db-0", "db-1")


@pytest.mark.parametrize(
    ("state", "is_stopped"),
    [
        pytest.param(LED, False, id="it takes puts"),
        pytest.param(answering(LED, "db-0", errors=("alarm:NOSPACE",)), True, id="its alarm is on"),
        pytest.param(SILENT, True, id="it has no quorum"),
    ],
)
def test_it_is_recorded_whether_writes_may_be_stopped_when_a_restore_ends(
    state: ClusterState, is_stopped: bool
) -> None:
    (ended,) = plan(remembering(state, IN_PLACE)).actions
    assert isinstance(ended, Remember)
    assert ended.persisted.recovery == msgspec.structs.replace(IN_PLACE, replaces="", stopped=is_stopped)


def test_writes_are_allowed_once_there_is_a_quorum() -> None:
    """An alarm that is raised later is not the operator's."""
    ended = msgspec.structs.replace(IN_PLACE, replaces="")
    state = remembering(LED, msgspec.structs.replace(ended, stopped=True))
    full = answering(state, "db-0", "db-1", errors=("alarm:NOSPACE",))
    assert plan(full).actions == (AllowWrites(name="db-0"),)
    assert plan(replace(full, has_quorum=False)).actions == ()
    (settled,) = plan(state).actions
    assert isinstance(settled, Remember)
    assert settled.persisted.recovery == ended
    assert plan(remembering(full, ended)).reason == "OutOfSpace"


def test_a_service_that_is_closed_too_late_is_opened_again() -> None:
    ended = msgspec.structs.replace(IN_PLACE, replaces="")
    closed = replace(remembering(live(""), ended), backups=BackupSight(is_closed=True))
    assert plan(closed).actions == (ReopenClients(name="db-3"),)
    assert plan(replace(closed, backups=BackupSight())).actions == ()
    assert plan(replace(live(""), backups=BackupSight(is_closed=True))).actions == ()
