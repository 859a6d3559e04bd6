"""Which source a recovery has: the newest of survivors and backups, and nothing while that is not known."""

from dataclasses import replace
from typing import Any

import msgspec
import pytest

from etcd_operator.api.recoveries import REVISION_BUMP, ClaimBackup, ToolBackup
from etcd_operator.controllers.etcd_cluster.decide.actions import CreateMember, Remember, Stage
from etcd_operator.controllers.etcd_cluster.decide.plan import plan
from etcd_operator.controllers.etcd_cluster.decide.recovery.acts import (
    ConfirmLoss,
    ConfirmNothingLeft,
    DropEmpty,
)
from etcd_operator.controllers.etcd_cluster.decide.recovery.inquiry import (
    Inquiry,
    known_backups,
    revision_named,
)
from etcd_operator.controllers.etcd_cluster.decide.recovery.observed import RecordedToolBackup, ToolBackups
from etcd_operator.controllers.etcd_cluster.decide.recovery.proof import chooses_source
from etcd_operator.controllers.etcd_cluster.decide.recovery.source import TOOL_GRACE
from etcd_operator.controllers.etcd_cluster.decide.starts import Seeding
from etcd_operator.controllers.etcd_cluster.decide.state import ClusterState
from etcd_operator.formats import duration_text
from etcd_operator.pods.reports import BackupReport, RestorableBackups
from unit.controllers.etcd_cluster.decide.builders import (
    CLUSTER_ID,
    bootstrapped,
    changed,
    ephemeral,
    persistent,
    pod,
    with_record,
)
from unit.controllers.etcd_cluster.decide.recovery.entries import recorded
from unit.controllers.etcd_cluster.decide.recovery.quorum_losses import RECOVERY, lost, recovering

OTHER = "0badcafe"


def backup(revision: int = 9, cluster_id: str = CLUSTER_ID, version: str = "3.6.16") -> BackupReport:
    return BackupReport(
        name=f"r{revision}",
        time="2026-01-01T00:00:00Z",
        age=61.5,
        revision=revision,
        etcd_version=version,
        cluster_id=cluster_id,
        sha256="ab",
        is_authentic=True,
    )


def planted(revision: int) -> BackupReport:
    """Listed, with the ID of the cluster; who has stored it is not known."""
    return msgspec.structs.replace(backup(revision), is_authentic=False)


def having(found: BackupReport | None, **more: Any) -> RestorableBackups:
    report: dict[str, Any] = {"is_listed": True, "candidate": found, "is_checked": True, "newest": found}
    return RestorableBackups(**{**report, **more})


def beside(report: RestorableBackups | None, **more: Any) -> ClusterState:
    """db-0002 is left, at revision 7."""
    return replace(lost(3, 0, 1), tool_backups=ToolBackups(has_tool=True, report=report, **more))


def alone(report: RestorableBackups | None, **more: Any) -> ClusterState:
    """Nothing is left."""
    return replace(lost(3, 0, 1, 2), tool_backups=ToolBackups(has_tool=True, report=report, **more))


def on_record(state: ClusterState, report: RestorableBackups, stored: RecordedToolBackup) -> ClusterState:
    """With this report of the tool, and this backup in the status."""
    known = known_backups(Inquiry(), state, report, is_answered=True, problem="", waited=0.0, recorded=stored)
    return replace(state, tool_backups=known)


OF_THIS, OF_OLD = (ClaimBackup(cluster=name, name="r1") for name in ("db", "old"))


def since(**recovery: Any) -> ClusterState:
    """Nothing is left after this recovery; the only backup is of another etcd cluster."""
    state = alone(having(backup(3, OTHER)))
    done = msgspec.structs.replace(RECOVERY, **recovery)
    return replace(state, desired=replace(state.desired, persisted=replace(state.persisted, recovery=done)))


def source_of(state: ClusterState) -> str:
    """The survivor or the backup that the plan begins with; its reason where it begins none."""
    made = plan(state)
    for action in made.actions:
        if isinstance(action, Remember) and action.persisted.recovery is not None:
            found = action.persisted.recovery
            return found.source.name
    return made.reason


@pytest.mark.parametrize(
    ("state", "source"),
    [
        pytest.param(beside(having(backup(8))), "r8", id="a higher revision"),
        pytest.param(beside(having(backup(7))), "db-0002", id="the same revision"),
        pytest.param(beside(having(None)), "db-0002", id="none stored"),
        pytest.param(beside(having(backup(8, OTHER))), "db-0002", id="of another etcd cluster"),
        pytest.param(beside(having(backup(8, version="3.5.9"))), "db-0002", id="of too old an etcd"),
        pytest.param(
            beside(having(backup(7), is_checked=False, newest=None)), "db-0002", id="not read, not newer"
        ),
        pytest.param(
            beside(having(backup(8), newest=None, damaged=("r8",))), "db-0002", id="the newer one is damaged"
        ),
        pytest.param(
            beside(having(backup(8), is_checked=False, newest=None)), "BackupPending", id="newer, not read"
        ),
        pytest.param(beside(having(planted(8))), "UnknownBackup", id="newer, and only listed"),
        pytest.param(beside(having(planted(7))), "db-0002", id="not newer, and only listed"),
        pytest.param(alone(having(planted(8))), "UnknownBackup", id="all there is, and only listed"),
        pytest.param(beside(None), "QuorumLost", id="not asked"),
        pytest.param(beside(RestorableBackups()), "BackupPending", id="a backup is being stored"),
        pytest.param(
            beside(RestorableBackups(), waited=9e9), "BackupPending", id="a backup is being stored, for long"
        ),
        pytest.param(beside(None, waited=TOOL_GRACE), "db-0002", id="silent for too long"),
        pytest.param(
            beside(None, waited=9e9, known_revision=8), "BackupPending", id="silent, was known to have more"
        ),
        pytest.param(beside(None, waited=TOOL_GRACE, known_revision=7), "db-0002", id="silent, had no more"),
        pytest.param(alone(having(backup(3))), "r3", id="all there is"),
        pytest.param(alone(having(backup(3, OTHER))), "NoBackup", id="of a deleted cluster of this name"),
        pytest.param(since(replaces=OTHER), "r3", id="of the cluster before the recovery"),
        pytest.param(since(replaces="feed", former=(OTHER,)), "r3", id="of the one before that"),
        pytest.param(since(replaces="feed"), "NoBackup", id="of none of them"),
        pytest.param(since(replaces="", former=(OTHER,)), "r3", id="before one that was not needed"),
        pytest.param(since(replaces=""), "NoBackup", id="of none, after one that was not needed"),
        pytest.param(
            since(replaces="", authority="Creation", source=OF_THIS),
            "r3",
            id="it began with this cluster's backups",
        ),
        pytest.param(
            since(replaces="", authority="Creation", source=OF_OLD),
            "NoBackup",
            id="it began with another's backups",
        ),
        pytest.param(alone(having(None)), "NoBackup", id="nothing at all"),
        pytest.param(alone(having(None, damaged=("r9",))), "NoBackup", id="nothing that is whole"),
        pytest.param(alone(having(backup(9, version="3.4.3"))), "RecoveryUnsupported", id="only too old"),
        pytest.param(alone(None, waited=9e9), "BackupPending", id="nothing known, for ever"),
        pytest.param(alone(having(backup(), is_checked=False)), "BackupPending", id="nothing read"),
        pytest.param(replace(lost(3, 0, 1, 2)), "NoBackup", id="no backups are kept"),
    ],
)
def test_the_newest_source_is_taken_and_none_while_it_is_not_known(state: ClusterState, source: str) -> None:
    assert chooses_source(state)
    assert source_of(state) == source


def test_a_backup_that_may_be_being_stored_is_given_up_by_a_person_only() -> None:
    made = plan(beside(RestorableBackups()))
    assert (made.stage, made.actions) == (Stage.HELD, ())


@pytest.mark.parametrize(
    ("report", "revision"),
    [
        pytest.param(None, 0, id="no answer"),
        pytest.param(RestorableBackups(), 0, id="a backup is being stored"),
        pytest.param(having(None), 0, id="none stored"),
        pytest.param(having(backup(8), is_checked=False, newest=None), 8, id="not read yet"),
        pytest.param(having(backup(8), newest=backup(6)), 6, id="the newest one is damaged"),
        pytest.param(having(backup(8, OTHER)), 0, id="of another etcd cluster"),
    ],
)
def test_what_a_tool_has_named_is_known(report: RestorableBackups | None, revision: int) -> None:
    assert revision_named(report, CLUSTER_ID) == revision


def test_a_backup_of_which_nobody_knows_who_stored_it_is_named_to_a_person() -> None:
    for state, loss in (
        (beside(having(planted(8))), "no quorum can return; remove spec.backup to recover from db-0002"),
        (alone(having(planted(8))), "the data of all members is lost"),
    ):
        made = plan(state)
        assert (made.stage, made.actions) == (Stage.HELD, ())
        assert made.message == (
            f"{loss}; the backup r8 at revision 8 was not stored by this cluster's backup tool, or before "
            "the token in its Secret was replaced: move it away with its manifest to go on without it; to "
            "begin with its data, delete the cluster and create it again with spec.restore"
        )


REFUSED = msgspec.structs.replace(planted(8), refusal="it is not encrypted")


def test_a_backup_that_the_keys_refuse_is_named_to_a_person_with_the_reason() -> None:
    for state, loss in (
        (beside(having(REFUSED)), "no quorum can return; remove spec.backup to recover from db-0002"),
        (alone(having(REFUSED)), "the data of all members is lost"),
    ):
        made = plan(state)
        assert (made.stage, made.reason, made.actions) == (Stage.HELD, "UnknownBackup", ())
        assert made.message == (
            f"{loss}; the backup r8 at revision 8 is not restored: it is not encrypted; to go on without it, "
            "move it away with its manifest"
        )


def test_a_record_of_a_plain_backup_does_not_count_against_the_keys() -> None:
    state = on_record(beside(None), having(REFUSED), RecordedToolBackup(name="r8", sha256="ab"))
    assert source_of(state) == "UnknownBackup"


@pytest.mark.parametrize(
    ("recorded", "is_authentic"),
    [
        pytest.param(RecordedToolBackup(), False, id="nothing on record"),
        pytest.param(RecordedToolBackup(name="r8", sha256="ab"), True, id="recorded when it was stored"),
        pytest.param(RecordedToolBackup(name="r8", sha256="cd"), False, id="replaced since"),
        pytest.param(RecordedToolBackup(name="r7", sha256="ab"), False, id="copied to another name"),
    ],
)
def test_the_status_knows_what_was_stored(recorded: RecordedToolBackup, is_authentic: bool) -> None:
    """The tool does not: its token was replaced."""
    state = on_record(beside(None), having(planted(8)), recorded)
    assert source_of(state) == ("r8" if is_authentic else "UnknownBackup")


def in_status(revision: int, cluster_id: str = CLUSTER_ID) -> RecordedToolBackup:
    return RecordedToolBackup(name=f"r{revision}", sha256="cd", cluster_id=cluster_id, revision=revision)


@pytest.mark.parametrize(
    ("state", "report", "stored", "source"),
    [
        pytest.param(alone(None), having(backup(8)), in_status(9), "UnknownBackup", id="less"),
        pytest.param(alone(None), having(backup(9)), in_status(9), "r9", id="as much"),
        pytest.param(
            alone(None),
            having(backup(9), newest=backup(8), damaged=("r9",)),
            in_status(9),
            "r8",
            id="damaged",
        ),
        pytest.param(alone(None), having(None), in_status(9), "NoBackup", id="nothing"),
        pytest.param(
            since(replaces=OTHER),
            having(backup(3, OTHER)),
            in_status(2),
            "UnknownBackup",
            id="only of the former",
        ),
        pytest.param(
            since(replaces=OTHER),
            having(backup(3, OTHER)),
            in_status(9, OTHER),
            "UnknownBackup",
            id="less of the former",
        ),
        pytest.param(
            since(replaces=OTHER),
            having(backup(3, OTHER)),
            in_status(3, OTHER),
            "r3",
            id="as much of the former",
        ),
        pytest.param(
            since(replaces=OTHER), having(backup(8)), in_status(9, OTHER), "r8", id="more of the former"
        ),
        pytest.param(
            beside(None), having(backup(8)), in_status(9), "UnknownBackup", id="less, with a survivor"
        ),
        pytest.param(
            beside(None), having(backup(6)), in_status(9), "UnknownBackup", id="less than the survivor"
        ),
        pytest.param(beside(None), having(backup(6)), in_status(7), "db-0002", id="the survivor has as much"),
        pytest.param(
            beside(None),
            having(backup(3, OTHER)),
            in_status(9, OTHER),
            "db-0002",
            id="less of another cluster",
        ),
    ],
)
def test_a_tool_that_knows_only_older_backups_than_the_status_restores_none(
    state: ClusterState, report: RestorableBackups, stored: RecordedToolBackup, source: str
) -> None:
    """Its token, or a key, is an earlier one again: what was stored with a later one is listed last."""
    assert source_of(on_record(state, report, stored)) == source


def test_the_backup_that_the_tool_does_not_know_is_named_with_what_a_person_can_do() -> None:
    for state, loss in (
        (beside(None), "no quorum can return; remove spec.backup to recover from db-0002"),
        (alone(None), "the data of all members is lost"),
    ):
        made = plan(on_record(state, having(backup(8)), in_status(9)))
        assert (made.stage, made.reason, made.actions) == (Stage.HELD, "UnknownBackup", ())
        assert made.message == (
            f"{loss}; r9 at revision 9, the newest backup in status.backup, is none of those that the backup "
            "tool knows, the newest of which is r8 at revision 8: if the token in its Secret or a key of "
            "spec.backup.encryption is an earlier one, put the later one back; to begin with the data of r9, "
            "delete the cluster and create it again with spec.restore; to go on without that data, move r9 "
            "away with its manifest"
        )


def test_a_newer_backup_is_restored_after_the_same_proof_as_a_survivor() -> None:
    made = plan(beside(having(backup(8, version="3.5.30"))))
    proof, _, seed, *_ = made.actions
    assert isinstance(proof, ConfirmLoss)
    assert (proof.gone, proof.survivors) == (("db-0000", "db-0001"), (("db-0002", "pod-db-0002"),))
    recovery = recorded(made)
    assert (recovery.revision, recovery.version) == (8, "3.5.30")
    assert recovery.source == ToolBackup(
        cluster="db", name="r8", sha256="ab", time="2026-01-01T00:00:00Z", age=61
    )
    assert isinstance(seed, CreateMember)
    assert (seed.name, seed.version) == ("db-0003", "3.5.30")


@pytest.mark.parametrize(
    ("state", "bump"),
    [
        pytest.param(alone(having(backup(3))), REVISION_BUMP, id="the first recovery"),
        pytest.param(since(replaces=OTHER), 2 * REVISION_BUMP, id="the seed of the last one served"),
        pytest.param(
            since(replaces=OTHER, bump=7 * REVISION_BUMP), 8 * REVISION_BUMP, id="and that of the one before"
        ),
        pytest.param(
            since(replaces="", authority="Creation", source=OF_THIS, revision=3),
            2 * REVISION_BUMP,
            id="it began with a backup",
        ),
        pytest.param(beside(having(backup(8))), REVISION_BUMP, id="more than a survivor"),
    ],
)
def test_no_revision_is_issued_twice_by_backups_of_former_clusters(state: ClusterState, bump: int) -> None:
    """A seed that served, and was lost before a backup of its own cluster was stored."""
    made = plan(state)
    seed = made.actions[2]
    assert isinstance(seed, CreateMember)
    assert isinstance(seed.start, Seeding)
    assert (recorded(made).bump, seed.start.bump) == (bump, bump)


def test_when_nothing_is_left_that_is_proven_first() -> None:
    proof = plan(alone(having(backup()))).actions[0]
    assert isinstance(proof, ConfirmNothingLeft)
    assert proof.is_loss


def test_a_backup_pending_asks_a_person_nothing_but_what_helps() -> None:
    made = plan(beside(None, known_revision=8, problem="no route"))
    assert made.stage is Stage.HELD


@pytest.mark.parametrize(
    "state",
    [
        bootstrapped(ephemeral()),
        replace(lost(3, 0), unavailable_for=60.0),
        replace(bootstrapped(persistent()), has_quorum=False),
        recovering(),
    ],
)
def test_backups_of_the_tool_matter_only_where_a_source_is_chosen(state: ClusterState) -> None:
    assert not chooses_source(state)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0 s"), (59, "59 s"), (61, "1 min 1 s"), (3600, "1 h"), (90_061, "1 d 1 h"), (86_400, "1 d")],
)
def test_an_age_is_shown_in_its_two_largest_units(seconds: int, text: str) -> None:
    assert duration_text(seconds) == text


def test_each_recovery_records_the_clusters_before_it() -> None:
    def next_one(**former: Any) -> tuple[str, ...]:
        state = since(**former)
        return recorded(plan(replace(lost(3, 0, 1), desired=state.desired))).former

    assert next_one(replaces="feed", former=("cafe",)) == ("cafe", "feed")
    assert next_one(replaces="", former=("cafe",)) == ("cafe",)


def with_seed(state: ClusterState, **seed: Any) -> ClusterState:
    """A recovery is under way whose seed was made, and whose survivor is lost."""
    persisted = replace(state.persisted, recovery=RECOVERY, next_ordinal=4)
    members = (*state.members, replace(recovering().by_name["db-0003"], **seed))
    return replace(state, desired=replace(state.desired, persisted=persisted), members=members)


def test_a_seed_that_may_have_all_data_is_given_up_by_a_person() -> None:
    made = plan(with_seed(alone(having(backup(3)))))
    assert (made.stage, made.reason, made.actions) == (Stage.HELD, "QuorumLost", ())


def test_a_seed_without_a_node_is_given_up() -> None:
    unassigned = pod("db-0003", is_running=False, is_assigned=False)
    state = with_seed(alone(having(backup(3))), pod=unassigned)
    assert plan(state).actions == (DropEmpty(name="db-0003"),)
    waits = plan(changed(state, "db-0003", pod=pod("db-0003", is_assigned=False, is_terminating=True)))
    assert (waits.stage, waits.actions) == (Stage.HELD, ())


@pytest.mark.parametrize(
    ("cluster_id", "source"),
    [
        pytest.param(CLUSTER_ID, "r3", id="of the recorded etcd cluster"),
        pytest.param(OTHER, "NoBackup", id="of a deleted cluster of this name"),
    ],
)
def test_when_a_seed_is_lost_too_only_own_backups_count(cluster_id: str, source: str) -> None:
    assert source_of(with_seed(alone(having(backup(3, cluster_id))), pod=None)) == source


def test_after_a_failed_recovery_a_backup_of_a_former_cluster_counts() -> None:
    state = with_seed(alone(having(backup(3, OTHER))), pod=None)
    recovery = msgspec.structs.replace(RECOVERY, former=(OTHER,))
    assert source_of(with_record(state, recovery=recovery)) == "r3"
