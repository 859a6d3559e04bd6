"""How a restore in place ends without a change: clients and writes are let in again."""

from dataclasses import replace

import msgspec
import pytest

from etcd_operator.api.persisted import Recovery
from etcd_operator.core.actions import Remember
from etcd_operator.core.known_backups import BackupFacts
from etcd_operator.core.plan import plan
from etcd_operator.core.recovery_actions import AllowWrites, DropSeed, ReopenClients
from etcd_operator.core.rules.last_writes import handed_over
from etcd_operator.core.rules.seed import record
from etcd_operator.core.state import ClusterState
from unit.core.builders import CLUSTER_ID, FULL_STORE, NAMES, answering, claim, down
from unit.core.manual_recoveries import lost
from unit.core.stored import IN_PLACE, LOST_CLAIM, NAME, filling, live, remembering, seeding, sight

STOPPED = msgspec.structs.replace(IN_PLACE, stopped=True)
LED = live("")
SILENT = down(LED, "db-0", "db-1")
FULL = answering(LED, *NAMES, **FULL_STORE)
CLOSED = sight(is_closed=True)

ALLOW, REOPEN, DROP = AllowWrites(name="db-0"), ReopenClients(name="db-3"), DropSeed(name="db-3")


@pytest.mark.parametrize(
    ("state", "recovery", "expected"),
    [
        pytest.param(LED, IN_PLACE, (DROP,), id="nothing was changed"),
        pytest.param(replace(LED, backups=CLOSED), IN_PLACE, (REOPEN, DROP), id="closed"),
        pytest.param(replace(LED, backups=CLOSED), STOPPED, (ALLOW, "allowed", REOPEN, DROP), id="stopped"),
        pytest.param(LED, STOPPED, (ALLOW, "allowed", DROP), id="stopped, and its Service was made again"),
        pytest.param(replace(SILENT, backups=CLOSED), STOPPED, (REOPEN, DROP), id="stopped, no leader"),
        pytest.param(replace(FULL, backups=CLOSED), IN_PLACE, (REOPEN, DROP), id="its quota is used up"),
    ],
)
def test_a_cancelled_restore_undoes_what_it_did(
    state: ClusterState, recovery: Recovery, expected: tuple[object, ...]
) -> None:
    made = plan(seeding(state, recovery)).actions
    allowed = record(seeding(state, recovery), IN_PLACE)
    assert made == tuple(allowed if each == "allowed" else each for each in expected)


@pytest.mark.parametrize("recovery", [IN_PLACE, STOPPED])
@pytest.mark.parametrize(
    "state", [LED, SILENT, FULL], ids=["it takes puts", "silent", "its quota is used up"]
)
def test_only_what_it_stopped_itself_is_allowed_again_after_a_restore(
    state: ClusterState, recovery: Recovery
) -> None:
    """Whatever the members report: a used-up quota raises the same alarm."""
    made = plan(remembering(state, recovery))
    if recovery.stopped and state is not SILENT:
        assert made.actions == (ALLOW, record(state, IN_PLACE))
        return
    ended = msgspec.structs.replace(recovery, replaces="")
    assert made.actions == (record(state, ended),)


def test_writes_are_allowed_once_there_is_a_quorum() -> None:
    """Once: an alarm that is raised later is not the operator's, and blocks no other rule."""
    ended = msgspec.structs.replace(IN_PLACE, replaces="")
    state = remembering(FULL, msgspec.structs.replace(STOPPED, replaces=""))
    assert plan(state).actions == (ALLOW, record(state, ended))
    assert plan(replace(state, has_quorum=False)).actions == ()
    again = remembering(FULL, ended)
    assert plan(again).reason == "OutOfSpace"
    second = plan(replace(again, desired=replace(again.desired, restore_in_place=f"{CLUSTER_ID}/one/2")))
    assert second.reason == "Restoring"


ASKED = live(NAME)
GIVEN_UP = (claim("db-0", given_up_by=NAME),)


@pytest.mark.parametrize(
    "state",
    [
        pytest.param(remembering(ASKED, IN_PLACE), id="nothing of it is left"),
        pytest.param(filling(ASKED), id="its EtcdPeer is gone"),
        pytest.param(filling(ASKED, claim=LOST_CLAIM), id="its volume is gone"),
    ],
)
def test_clients_reach_the_old_cluster_while_a_seed_that_was_lost_is_filled_again(
    state: ClusterState,
) -> None:
    closed = replace(state, backups=sight(is_closed=True))
    assert plan(closed).actions == (REOPEN,)
    assert plan(replace(closed, backups=sight())).actions != ()


@pytest.mark.parametrize(
    "state",
    [
        pytest.param(remembering(ASKED, STOPPED), id="it takes no puts"),
        pytest.param(remembering(replace(ASKED, kept=GIVEN_UP), IN_PLACE), id="a member was given up"),
        pytest.param(filling(ASKED, STOPPED), id="the EtcdPeer of the seed is gone"),
    ],
)
@pytest.mark.parametrize("is_closed", [True, False])
def test_a_seed_that_is_lost_after_the_old_cluster_was_stopped_ends_the_restore(
    state: ClusterState, is_closed: bool
) -> None:
    """Its Service may select the token of the seed by then: no other one may begin with that."""
    former = state.persisted.recovery
    (remember,) = plan(replace(state, backups=sight(is_closed=is_closed))).actions
    assert former is not None
    assert isinstance(remember, Remember)
    failed = remember.persisted.recovery
    assert failed is not None
    assert failed.failure == "db-3 was lost after the old cluster had been stopped"
    assert (failed.replaces, failed.stopped) == (CLUSTER_ID, former.stopped)
    made = plan(remembering(replace(ASKED, backups=sight(is_closed=True)), failed))
    assert made.actions[-1] == REOPEN
    assert (ALLOW in made.actions) is failed.stopped


def test_a_service_that_is_closed_too_late_is_opened_again() -> None:
    ended = msgspec.structs.replace(IN_PLACE, replaces="")
    closed = replace(remembering(live(""), ended), backups=BackupFacts(is_closed=True))
    assert plan(closed).actions == (ReopenClients(name="db-3"),)
    assert plan(replace(closed, backups=BackupFacts())).actions == ()
    assert plan(replace(live(""), backups=BackupFacts(is_closed=True))).actions == ()


def test_a_recovery_remembers_that_a_restore_before_it_stopped_the_writes() -> None:
    """The alarm is in the survivor's data: the new cluster has it, and the operator lets it take puts."""
    ended = msgspec.structs.replace(STOPPED, replaces="", failure="db-3 was lost")
    made = plan(remembering(lost(asked=f"{CLUSTER_ID}/db-2/2"), ended))
    (begun,) = [action.persisted.recovery for action in made.actions if isinstance(action, Remember)]
    assert begun is not None
    assert (begun.survivor, begun.stopped) == ("db-2", True)
    assert handed_over(begun).stopped
    assert not handed_over(STOPPED).stopped
    assert plan(remembering(FULL, msgspec.structs.replace(begun, replaces="beef"))).actions[0] == ALLOW
