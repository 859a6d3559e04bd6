"""A new ephemeral cluster that begins with the backups of another: its seed, and what follows it."""

from dataclasses import replace
from typing import Any

import pytest

from etcd_operator.api.cluster_spec import S3Target
from etcd_operator.api.recoveries import REVISION_BUMP, BucketBackup, ClaimBackup, ToolBackup
from etcd_operator.controllers.etcd_cluster.decide.actions import CreateMember, Remember, Stage
from etcd_operator.controllers.etcd_cluster.decide.desired import RestoreFrom
from etcd_operator.controllers.etcd_cluster.decide.members import FetchedBackup, Member, PodFacts, PodProblem
from etcd_operator.controllers.etcd_cluster.decide.plan import plan
from etcd_operator.controllers.etcd_cluster.decide.recovery.acts import ConfirmNothingLeft
from etcd_operator.controllers.etcd_cluster.decide.recovery.entry import PER_SECOND
from etcd_operator.controllers.etcd_cluster.decide.recovery.observed import ToolBackups
from etcd_operator.controllers.etcd_cluster.decide.state import ClusterState
from etcd_operator.controllers.etcd_cluster.decide.status import conditions
from unit.controllers.etcd_cluster.decide.builders import TOKEN, answer, changed, entry, ephemeral, pod
from unit.controllers.etcd_cluster.decide.recovery.entries import recorded

OTHER = "0badcafe"


def new(**changes: Any) -> ClusterState:
    desired = replace(ephemeral(), restore=RestoreFrom(cluster="old"), **changes)
    return ClusterState(desired=desired)


def test_a_new_cluster_begins_with_a_seed_of_its_first_number() -> None:
    made = plan(new())
    proof, remembered, seed, *_ = made.actions
    assert isinstance(proof, ConfirmNothingLeft)
    assert not proof.is_loss
    assert isinstance(remembered, Remember)
    recovery = remembered.persisted.recovery
    assert recovery is not None
    assert (recovery.seed, recovery.token, recovery.replaces) == ("db-0000", f"{TOKEN}-1", "")
    assert remembered.persisted.is_restoring
    assert recovery.backup == ClaimBackup(cluster="old")
    assert isinstance(seed, CreateMember)
    assert made.reason == "Restoring"
    state = replace(new(), desired=replace(new().desired, persisted=remembered.persisted))
    found = {each.type: (each.status, each.reason) for each in conditions(state, plan(state))}
    assert found["Available"] == ("False", "Creating")
    assert found["Degraded"] == ("False", "AsExpected")
    assert "DataLossPossible" not in found


@pytest.mark.parametrize("version", ["3.4.35", "3.5.9"])
def test_a_new_cluster_of_too_old_an_etcd_is_not_begun(version: str) -> None:
    made = plan(new(version=version))
    assert (made.stage, made.reason, made.actions) == (Stage.HELD, "RecoveryUnsupported", ())


def test_a_backup_is_fetched_through_the_tool_that_uses_its_claim() -> None:
    state = replace(new(), tool_backups=ToolBackups(has_source_tool=True))
    assert recorded(plan(state)).source == ToolBackup(cluster="old")


def test_a_backup_in_a_bucket_is_fetched_from_there() -> None:
    source = RestoreFrom(cluster="old", s3=S3Target(s3_bucket="backups"))
    state = ClusterState(desired=replace(ephemeral(), restore=source))
    assert recorded(plan(state)).source == BucketBackup(cluster="old")


def restoring(pod_of_seed: PodFacts | None, *, serves: bool = False) -> ClusterState:
    """db-0000 is the seed of a new cluster."""
    remembered = plan(new()).actions[1]
    assert isinstance(remembered, Remember)
    persisted = replace(remembered.persisted, next_ordinal=1)
    listed = (entry("db-0000"),)
    reply = answer("db-0000", listed, cluster_id=OTHER, revision=2 * REVISION_BUMP)
    seed = Member(
        name="db-0000",
        has_service=True,
        pod=pod_of_seed,
        entry=listed[0] if serves else None,
        answer=reply if serves else None,
    )
    return ClusterState(
        desired=replace(new().desired, persisted=persisted), members=(seed,), has_quorum=serves
    )


def test_a_restore_that_has_begun_goes_on_beside_pods_that_come_later() -> None:
    state = restoring(pod("db-0000"))
    assert plan(replace(state, objects_of_others=("Pod db-abc",))) == plan(state)
    assert plan(replace(new(), objects_of_others=("Pod db-abc",))).reason == "OtherOperator"


def test_a_lost_seed_of_a_new_cluster_is_followed_by_another_of_the_same_backups() -> None:
    recovery = recorded(plan(restoring(None)))
    assert (recovery.generation, recovery.seed, recovery.token) == (2, "db-0001", f"{TOKEN}-2")
    assert recovery.backup == ClaimBackup(cluster="old")


def test_a_seed_that_is_restoring_is_waited_for() -> None:
    made = plan(restoring(pod("db-0000")))
    assert (made.stage, made.reason, made.actions) == (Stage.WORKING, "Restoring", ())


def test_a_seed_without_backups_names_the_way_out() -> None:
    """Neither another pod nor an edit helps: spec.restore cannot be changed."""
    missing = PodProblem(reason="Unschedulable", message='persistentvolumeclaim "old-pvc" not found')
    made = plan(changed(restoring(pod("db-0000")), "db-0000", problem=missing))
    assert (made.stage, made.reason) == (Stage.HELD, "Unschedulable")


@pytest.mark.parametrize(
    "fetched", [None, FetchedBackup(name="r5", time="t", revision=5, sha256="cd", age=3)]
)
def test_a_seed_that_serves_makes_the_cluster_and_reports_what_it_has(fetched: FetchedBackup | None) -> None:
    made = plan(restoring(replace(pod("db-0000"), fetched=fetched), serves=True))
    remembered = made.actions[-2]
    assert isinstance(remembered, Remember)
    assert (made.reason, remembered.persisted.cluster_id) == ("Restored", OTHER)
    recovery = remembered.persisted.recovery
    assert recovery is not None
    known = ClaimBackup(cluster="old")
    if fetched is not None:
        known = ClaimBackup(cluster="old", name="r5", sha256="cd", time="t", age=3)
    assert (recovery.backup, recovery.revision) == (known, 5 if fetched is not None else 0)
    assert not remembered.persisted.is_recovering


def test_pods_without_a_status_are_not_restored_over() -> None:
    made = plan(replace(new(), members=(Member(name="db-0000", pod=pod("db-0000")),)))
    assert (made.stage, made.reason) == (Stage.HELD, "StatusMissing")


def test_what_begins_later_has_higher_revisions() -> None:
    """Even with the same backup: a watcher of the cluster before must not be ahead of this one."""
    times = ("2026-05-01T00:00:00Z", "2026-05-01T00:00:01Z")
    bumps = [recorded(plan(new(created=created))).bump for created in times]
    assert bumps[1] - bumps[0] == PER_SECOND
