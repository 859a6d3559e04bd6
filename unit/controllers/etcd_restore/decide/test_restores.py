"""What is decided about an EtcdRestore: the rules that no scenario of `unit/reconcile` shows."""

from dataclasses import replace

import pytest

from etcd_operator.api.restores import RecordedBackup, RestoreFailure, RestoreStatus, Verified
from etcd_operator.controllers.etcd_restore.decide.actions import Act
from etcd_operator.controllers.etcd_restore.decide.plan import plan
from etcd_operator.controllers.etcd_restore.decide.spec import version_problem
from etcd_operator.controllers.etcd_restore.decide.state import (
    ClaimState,
    MemberState,
    RestoreState,
    SourceState,
    TargetCluster,
)
from etcd_operator.controllers.etcd_restore.decide.status import status
from etcd_operator.controllers.etcd_restore.manifests.restored import identity
from etcd_operator.controllers.shared.decide.job_report import JobReport, restore_failure
from etcd_operator.controllers.shared.decide.job_state import JobEnd, JobState
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


def failure(state: RestoreState) -> str:
    """The reason of the failure that is recorded."""
    made = planned(state)
    assert made.failure is not None, made
    assert made.act is Act.NOTHING, "it is recorded before anything is removed"
    return made.failure.reason


@pytest.mark.parametrize("phase", ["Completed", "Failed"])
def test_what_has_ended_is_left_alone(phase: str) -> None:
    assert plan(replace(VERIFIED, phase=phase)) is None
    assert plan(replace(VERIFIED, is_deleting=True)) is None


def test_an_accepted_restore_of_another_version_may_be_invalid() -> None:
    """It may have made claims that this one does not know: so it neither fails nor goes on."""
    made = planned(replace(BEGUN, problem="spec.x: wrong", members=()))
    assert (made.phase, made.reason, made.act, made.failure) == ("Pending", "InvalidSpec", Act.NOTHING, None)
    assert "use that version, or delete this EtcdRestore" in made.message
    why = RestoreFailure(reason="BackupDamaged", message="it is damaged")
    assert planned(replace(BEGUN, problem="spec.x: wrong", members=(), failure=why)).phase == "Pending"


def test_a_restore_with_a_wrong_spec_fails_before_anything_is_made() -> None:
    made = planned(replace(BEGUN, phase="", problem="spec.x: wrong"))
    assert (made.phase, made.reason, made.act) == ("Failed", "InvalidSpec", Act.NOTHING)


@pytest.mark.parametrize(
    ("state", "reason"),
    [
        pytest.param(
            replace(BEGUN, cluster=TargetCluster.FOREIGN), "ClusterExists", id="a cluster of that name"
        ),
        pytest.param(replace(BEGUN, in_the_way=("c-0",)), "ClaimsExist", id="claims of such a cluster"),
        pytest.param(
            replace(VERIFIED, template_version="3.5.1"), "VersionNotPossible", id="too old a version"
        ),
        pytest.param(
            replace(BEGUN, check=JobState(name="j", waited=9999.0)), "NotStarted", id="no pod for the Job"
        ),
    ],
)
def test_what_makes_a_restore_impossible(state: RestoreState, reason: str) -> None:
    assert failure(state) == reason


@pytest.mark.parametrize(
    ("cluster", "phase", "reason"),
    [
        (TargetCluster.OURS, "Completed", "Restored"),
        (TargetCluster.ABSENT, "Pending", "CreatingCluster"),
        (TargetCluster.TERMINATING, "Pending", "WaitingForDeletion"),
        (TargetCluster.FOREIGN, "Failed", "ClusterExists"),
    ],
)
def test_when_all_claims_are_handed_over(cluster: TargetCluster, phase: str, reason: str) -> None:
    made = planned(replace(ANNOTATED, cluster=cluster))
    assert (made.phase, made.reason) == (phase, reason)


@pytest.mark.parametrize("cluster", [TargetCluster.ABSENT, TargetCluster.FOREIGN, TargetCluster.TERMINATING])
def test_the_jobs_are_removed_before_the_cluster_is_created(cluster: TargetCluster) -> None:
    state = replace(ANNOTATED, cluster=cluster, members=members(ClaimState.ANNOTATED, DONE))
    for held in (state, replace(ANNOTATED, cluster=cluster, check=DONE)):
        made = planned(held)
        assert (made.phase, made.reason, made.act) == ("Pending", "RemovingJobs", Act.REMOVE_JOBS)
    going = replace(state, members=members(ClaimState.ANNOTATED, replace(DONE, is_terminating=True)))
    assert planned(going).reason != "RemovingJobs", "a lost node may keep one for ever"


def test_a_former_cluster_that_is_being_deleted_is_waited_for() -> None:
    made = planned(replace(BEGUN, cluster=TargetCluster.TERMINATING))
    assert (made.reason, made.act) == ("WaitingForDeletion", Act.NOTHING)
    assert "EtcdCluster c" in made.message


def test_from_the_first_handed_over_claim_on_there_is_no_way_back() -> None:
    first, second = members(ClaimState.OURS, DONE)
    halfway = replace(VERIFIED, members=(replace(first, claim=ClaimState.ANNOTATED), second))
    for cluster in (TargetCluster.ABSENT, TargetCluster.FOREIGN):
        assert planned(replace(halfway, cluster=cluster)).act is Act.ANNOTATE
    gone = replace(halfway, members=(halfway.members[0], replace(second, claim=ClaimState.ABSENT, job=None)))
    assert failure(gone) == "ClaimDeleted"


def test_a_claim_that_is_being_deleted_is_not_restored_to() -> None:
    assert failure(replace(VERIFIED, members=members(ClaimState.TERMINATING, RUNS))) == "ClaimDeleted"


def test_claims_that_are_handed_over_need_neither_their_jobs_nor_the_backup() -> None:
    gone = SourceState(reason="UnknownBackup", message="gone", is_missing=True)
    first = MemberState(name="c-0", claim=ClaimState.ANNOTATED)
    rest = MemberState(name="c-1", claim=ClaimState.OURS, job=DONE)
    assert planned(replace(VERIFIED, members=(first, rest), source=gone, waited=9999.0)).act is Act.ANNOTATE


def test_an_etcdbackup_does_not_matter_once_every_member_has_its_job() -> None:
    gone = SourceState(reason="UnknownBackup", message="gone", is_missing=True)
    late = replace(VERIFIED, source=gone, waited=100.0)
    assert failure(replace(late, members=members(ClaimState.OURS))) == "UnknownBackup"
    assert planned(replace(late, members=members(ClaimState.OURS, RUNS))).reason == "Restoring"
    assert (
        failure(replace(late, snapshot=None, waited=0.0, source=replace(gone, is_final=True)))
        == "UnknownBackup"
    )


def test_a_job_without_a_report_verifies_nothing() -> None:
    assert failure(replace(BEGUN, check=DONE)) == "PodFailed"
    assert failure(replace(BEGUN, check=replace(DONE, report=JobReport()))) == "PodFailed"
    why = replace(DONE, end=JobEnd.FAILED, why="OOMKilled")
    made = planned(replace(BEGUN, check=why))
    assert made.failure == RestoreFailure(
        reason="PodFailed", message="the pod of the Job j failed without a report: OOMKilled"
    )


def test_what_was_verified_is_recorded() -> None:
    made = planned(replace(BEGUN, check=replace(DONE, report=JobReport(snapshot=SNAPSHOT))))
    assert made.snapshot == SNAPSHOT
    assert made.message == "verified: revision 7, 3 keys, all hashes match"


@pytest.mark.parametrize(("sha256", "reason"), [("", ""), ("ab" * 32, ""), ("cd" * 32, "Replaced")])
def test_what_was_verified_is_what_the_etcdbackup_has_stored(sha256: str, reason: str) -> None:
    source = replace(BEGUN.source, backup=RecordedBackup(uid="u", sha256=sha256))
    made = planned(replace(BEGUN, source=source, check=replace(DONE, report=JobReport(snapshot=SNAPSHOT))))
    assert (made.failure.reason if made.failure is not None else "") == reason
    assert (made.snapshot is None) == bool(reason)


def test_the_jobs_of_restored_members_do_not_matter() -> None:
    ready, other = members(ClaimState.OURS, DONE)
    state = replace(VERIFIED, members=(ready, replace(other, job=RUNS)))
    assert planned(state).message == "restored 1 of 2 members"
    assert planned(replace(state, members=(ready, replace(other, job=None)))).act is Act.CREATE_JOBS
    assert planned(replace(state, members=(ready, ready))).act is Act.ANNOTATE


@pytest.mark.parametrize("storage", [None, 100])
def test_a_size_that_is_not_read_here_is_for_the_volume_to_refuse(storage: int | None) -> None:
    assert planned(replace(VERIFIED, storage=storage)).act is Act.CREATE_CLAIMS
    assert failure(replace(VERIFIED, storage=99)) == "VolumeTooSmall"


@pytest.mark.parametrize(
    ("found", "wanted", "problem"),
    [
        ("3.6.16", "", ""),
        ("3.6.16", "3.6.1", ""),
        ("3.6.16", "3.7.3", ""),
        (
            "3.6.16",
            "3.5.35",
            "a backup of etcd 3.6.16 can be restored to etcd 3.6 or 3.7, not to etcd 3.5.35",
        ),
        ("3.4.0", "3.5.10", ""),
        ("3.4.0", "", "etcdutl 3.4.0 cannot raise revisions: set spec.clusterTemplate.spec.version"),
        ("3.3.27", "", "a backup of etcd 3.3.27 cannot be restored: "),
        ("3.3.27", "3.4.30", "a backup of etcd 3.3.27 cannot be restored: "),
        ("3.3.27", "3.5.35", "a backup of etcd 3.3.27 cannot be restored: "),
        ("3.8.1", "", "an EtcdCluster cannot run etcd 3.8.1"),
        ("4.0.0", "", "an EtcdCluster cannot run etcd 4.0.0"),
        ("3.6.16+k3s1", "", "etcd 3.6.16+k3s1 is not a release"),
        ("3.6.16+k3s1", "3.6.16", ""),
        ("banana", "3.6.16", ""),
        ("banana", "", "the exact version of the snapshot is not known"),
        ("", "", "the exact version of the snapshot is not known"),
    ],
)
def test_versions(found: str, wanted: str, problem: str) -> None:
    snapshot = Verified(revision=7, keys=3, size=1, sha256="", check="manifest", etcd_version=found)
    text = version_problem(snapshot, wanted)
    assert text.startswith(problem)
    assert bool(text) == bool(problem)


def test_a_plain_snapshot_does_not_name_its_exact_version() -> None:
    snapshot = Verified(revision=7, keys=3, size=1, sha256="", check="hash", etcd_version="3.6.0")
    assert version_problem(snapshot, "").endswith(
        "set spec.clusterTemplate.spec.version to one of 3.6 or 3.7"
    )
    assert version_problem(snapshot, "3.6.16") == ""


def test_after_a_failure_what_was_made_is_removed_first() -> None:
    why = RestoreFailure(reason="BackupDamaged", message="it is damaged")
    for leftover in (
        replace(VERIFIED, members=members(ClaimState.OURS)),
        replace(VERIFIED, check=DONE),
        replace(VERIFIED, members=members(ClaimState.ABSENT, RUNS)),
    ):
        made = planned(replace(leftover, failure=why))
        assert (made.act, made.phase) == (Act.CLEAN_UP, "Pending")
    gone = members(ClaimState.TERMINATING, replace(RUNS, is_terminating=True))
    for clean in (VERIFIED, replace(VERIFIED, members=gone)):
        made = planned(replace(clean, failure=why))
        assert (made.phase, made.reason, made.message) == ("Failed", "BackupDamaged", "it is damaged")


def test_after_the_first_handed_over_claim_none_is_removed_and_all_are_named() -> None:
    why = RestoreFailure(reason="Invalid", message="a policy refuses it")
    made = planned(replace(ANNOTATED, failure=why))
    assert (made.phase, made.reason) == ("Failed", "Invalid")
    assert made.message == (
        "a policy refuses it. The claims with restored data are kept: an EtcdCluster c resumes on c-0, c-1"
    )
    first, second = members(ClaimState.OURS)
    partly = replace(VERIFIED, failure=why, members=(replace(first, claim=ClaimState.ANNOTATED), second))
    made = planned(partly)
    assert (made.phase, made.act) == ("Failed", Act.NOTHING)
    assert made.message.endswith("an EtcdCluster c resumes on c-0; c-1 will be deleted with this EtcdRestore")
    with_job = replace(partly, members=(partly.members[0], replace(second, job=DONE)))
    assert planned(with_job).act is Act.CLEAN_UP, "Jobs are removed"
    assert with_job.removable == ()


def test_a_handed_over_claim_that_is_deleted_takes_no_other_with_it() -> None:
    """A cluster that somebody else created may run on all of them by now."""
    first, second = members(ClaimState.OURS)
    state = replace(VERIFIED, members=(replace(first, claim=ClaimState.ANNOTATED_TERMINATING), second))
    assert failure(state) == "ClaimDeleted"
    recorded = status(RestoreStatus(), state, planned(state), cluster_id="", generation=1, now="now").failure
    assert recorded is not None
    gone = replace(state, members=(replace(first, claim=ClaimState.ABSENT), second))
    for then in (state, gone):
        made = planned(replace(then, failure=recorded))
        assert (made.phase, made.act) == ("Failed", Act.NOTHING)
        assert made.message.endswith("are kept: c-1 will be deleted with this EtcdRestore")


def test_a_claim_that_replaced_the_one_of_its_job_has_no_data() -> None:
    """An operator that hung for long may create a claim once more, after somebody deleted it."""
    done = replace(DONE, claim_uid="first")
    first, second = (replace(m, claim_uid="first") for m in members(ClaimState.OURS, done))
    assert planned(replace(VERIFIED, members=(first, second))).act is Act.ANNOTATE
    other = replace(second, claim_uid="second")
    assert not other.is_restored
    assert failure(replace(VERIFIED, members=(first, other))) == "ClaimDeleted"
    unknown = replace(other, job=DONE)
    assert unknown.is_restored, "a Job of an earlier operator does not name its claim"


def test_ids_are_those_that_etcd_computes() -> None:
    """As `etcdutl snapshot restore` of 3.5.35, 3.6.16 and 3.7.3 logs them for these flags."""
    made = identity({"m0": "http://10.0.0.1:2380", "m1": "http://10.0.0.2:2380"}, "token-1")
    assert made.cluster_id == "90bbcda9199e0b0a"
    assert made.voters == ("m0=330c38826758b78a", "m1=93c9cf4c239c59ff")


def test_an_error_that_the_command_reported() -> None:
    why = restore_failure(JobReport(error="no bucket", reason="BucketMissing"), why="", job="j")
    assert (why.reason, why.message) == ("BucketMissing", "no bucket")
    assert (
        restore_failure(JobReport(error="x" * 9999, reason="New"), why="", job="j").reason == "RestoreFailed"
    )


def test_a_plain_snapshot_is_named_as_one() -> None:
    def message_for(check: str) -> str:
        snapshot = Verified(revision=7, keys=1, size=1, sha256="", check=check)
        return planned(replace(BEGUN, check=replace(DONE, report=JobReport(snapshot=snapshot)))).message

    assert message_for("hash") == "verified: revision 7, 1 key, there is no manifest, but etcd's hash matches"
    assert "only the structure was checked" in message_for("none")
    assert message_for("later") == "verified: revision 7, 1 key, later"
