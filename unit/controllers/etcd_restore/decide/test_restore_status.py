"""What the status of an EtcdRestore shows."""

from dataclasses import replace

from etcd_operator.api.restores import RecordedBackup, RestoreFailure, RestoreStatus
from etcd_operator.controllers.etcd_cluster.decide.recovery.entry import bump_at
from etcd_operator.controllers.etcd_restore.decide.state import (
    ClaimState,
    RestoreState,
    SourceState,
    TargetCluster,
)
from etcd_operator.controllers.etcd_restore.decide.status import status
from etcd_operator.controllers.shared.decide.job_report import JobReport
from unit.controllers.etcd_restore.decide.restore_states import (
    ANNOTATED,
    BEGUN,
    DONE,
    RUNS,
    SNAPSHOT,
    VERIFIED,
    members,
    planned,
)


def written(state: RestoreState, previous: RestoreStatus | None = None) -> RestoreStatus:
    made = planned(state)
    return status(
        previous or RestoreStatus(),
        state,
        made,
        cluster_id="c0ffee",
        generation=2,
        now="2026-11-22T14:00:00Z",
    )


def test_the_status_of_a_restore_that_goes_on() -> None:
    found = written(replace(BEGUN, check=replace(DONE, report=JobReport(snapshot=SNAPSHOT))))
    assert (found.phase, found.start_time, found.completion_time) == ("Pending", "2026-11-22T14:00:00Z", "")
    assert (found.snapshot, found.version, found.url) == (SNAPSHOT, "3.6.16", "s3://b/one.db")
    assert [member.phase for member in found.members] == ["Pending", "Pending"]
    assert {condition.status for condition in found.conditions} == {"False"}
    state = replace(VERIFIED, template_version="3.7.3", members=members(ClaimState.OURS, RUNS))
    assert [member.phase for member in written(state, found).members] == ["Restoring", "Restoring"]
    assert written(state, found).version == "3.6.16", "what was recorded first counts"
    assert written(state, RestoreStatus(snapshot=SNAPSHOT)).version == "3.7.3"


def test_what_was_recorded_when_it_began_is_kept() -> None:
    """Also where the source cannot be read any more, and by an operator that raises revisions otherwise."""
    recorded = RecordedBackup(uid="first", sha256=SNAPSHOT.sha256, spec={"a": 1})
    began = replace(BEGUN, source=replace(BEGUN.source, backup=recorded))
    found = written(replace(began, check=replace(DONE, report=JobReport(snapshot=SNAPSHOT))))
    assert (found.backup, found.revision_bump) == (recorded, bump_at(BEGUN.created, SNAPSHOT.revision))
    other = SourceState(url="s3://b/two.db", backup=RecordedBackup(uid="other"))
    for source in (other, SourceState(reason="UnknownBackup", message="it cannot be read")):
        later = written(replace(VERIFIED, source=source, created="2026-11-23T00:00:00Z"), found)
        assert (later.url, later.backup, later.revision_bump) == (found.url, recorded, found.revision_bump)
    assert found.revision_bump > 0


def test_the_status_at_the_end() -> None:
    found = written(replace(ANNOTATED, cluster=TargetCluster.OURS))
    assert (found.phase, found.cluster_id, found.observed_generation) == ("Completed", "c0ffee", 2)
    assert [member.phase for member in found.members] == ["Restored", "Restored"]
    alone = replace(ANNOTATED, cluster=TargetCluster.OURS, snapshot=None, members=ANNOTATED.members[:1])
    message = written(alone).conditions[0].message
    assert message == "restored 1 member, on which the EtcdCluster c resumes"
    why = RestoreFailure(reason="BackupDamaged", message="it is damaged")
    failed = written(replace(VERIFIED, failure=why), RestoreStatus(failure=why))
    assert (failed.phase, failed.completion_time) == ("Failed", "2026-11-22T14:00:00Z")
    assert (failed.members, failed.failure, failed.cluster_id) == ((), why, "")
    assert {each.type: each.status for each in failed.conditions} == {"Complete": "False", "Failed": "True"}
