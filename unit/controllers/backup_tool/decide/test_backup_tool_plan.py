"""What is done about the objects of a backup tool, and what never is."""

from dataclasses import replace
from typing import Any

import pytest

from etcd_operator.api.cluster_spec import S3Target
from etcd_operator.api.coreos_backup import BackupPolicy
from etcd_operator.controllers.backup_tool.decide.plan import CLEANUP_SECONDS, Act, plan
from etcd_operator.controllers.backup_tool.decide.policy import NO_BACKUPS, Wanted
from etcd_operator.controllers.backup_tool.decide.state import (
    CleanupState,
    ToolClaimState,
    ToolPodState,
    ToolReplicaSetState,
    ToolState,
)

SIZE = 1 << 30
POLICY = BackupPolicy(max_backups=3, volume_size_in_mb=1024)
CLEANING = BackupPolicy(max_backups=3, volume_size_in_mb=1024, cleanup_backups_on_cluster_delete=True)
IN_S3 = BackupPolicy(
    max_backups=3, storage_type="S3", s3=S3Target(s3_bucket="b"), cleanup_backups_on_cluster_delete=True
)
CLAIM = ToolClaimState(name="c-pvc", uid="claim", size=SIZE)
SETS = ToolReplicaSetState(name="c-backup-tool", uid="set", template="new")
POD = ToolPodState(name="c-backup-tool-x", uid="pod", template="new", is_ready=True, address="10.0.0.1")
SETTLED = ToolState(
    wanted=Wanted(policy=POLICY),
    template="new",
    size=SIZE,
    has_secret=True,
    has_service=True,
    claim=CLAIM,
    replica_set=SETS,
    pods=(POD,),
)


def acts(state: ToolState) -> list[Act]:
    return [action.act for action in plan(state)]


def test_a_tool_that_is_as_wanted_needs_nothing() -> None:
    assert acts(SETTLED) == []
    assert SETTLED.running == POD


def test_everything_is_made_the_claim_before_the_pod() -> None:
    bare = ToolState(wanted=Wanted(policy=POLICY), template="new", size=SIZE)
    assert acts(bare) == [Act.CREATE_SECRET, Act.CREATE_SERVICE, Act.CREATE_CLAIM, Act.CREATE_REPLICA_SET]
    assert Act.CREATE_CLAIM not in acts(replace(bare, size=0))
    assert bare.running is None


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"claim": None}, [Act.CREATE_CLAIM]),
        ({"claim": replace(CLAIM, size=SIZE - 1)}, [Act.GROW_CLAIM]),
        ({"claim": replace(CLAIM, size=SIZE + 1)}, []),
        (
            {"claim": replace(CLAIM, size=SIZE - 1), "replica_set": None},
            [Act.CREATE_REPLICA_SET, Act.GROW_CLAIM],
        ),
        ({"claim": replace(CLAIM, size=None)}, []),
        ({"claim": replace(CLAIM, is_terminating=True)}, [Act.DELETE_POD]),
        ({"claim": replace(CLAIM, is_terminating=True), "pods": (replace(POD, is_ready=False),)}, []),
        ({"replica_set": None, "pods": ()}, [Act.CREATE_REPLICA_SET]),
        ({"replica_set": replace(SETS, template="old")}, [Act.CHANGE_REPLICA_SET]),
        ({"replica_set": replace(SETS, replicas=0)}, [Act.CHANGE_REPLICA_SET]),
        ({"replica_set": replace(SETS, template="old", is_terminating=True)}, []),
        ({"pods": (replace(POD, template="old"),)}, [Act.DELETE_POD]),
        ({"pods": (replace(POD, template="old", is_terminating=True), POD)}, []),
        ({"has_secret": False}, [Act.CREATE_SECRET]),
        ({"has_certificates": False}, [Act.KEEP_CERTIFICATES]),
        (
            {"has_certificates": False, "has_secret": False, "replica_set": None},
            [Act.CREATE_SECRET, Act.KEEP_CERTIFICATES, Act.CREATE_REPLICA_SET],
        ),
        ({"has_certificates": False, "is_paused": True}, []),
        ({"has_unused_certificates": True}, [Act.REMOVE_CERTIFICATES]),
        (
            {"has_unused_certificates": True, "replica_set": replace(SETS, template="old")},
            [Act.CHANGE_REPLICA_SET],
        ),
        ({"has_unused_certificates": True, "pods": (replace(POD, template="old"),)}, [Act.DELETE_POD]),
        (
            {
                "has_unused_certificates": True,
                "pods": (replace(POD, template="old", is_terminating=True), POD),
            },
            [],
        ),
        ({"has_service": False}, [Act.CREATE_SERVICE]),
        ({"is_paused": True, "replica_set": None}, []),
        ({"is_bootstrapped": False, "replica_set": None}, []),
        ({"is_deleting": True, "replica_set": None}, []),
        ({"wanted": Wanted(problem="wrong"), "replica_set": None}, []),
    ],
)
def test_one_thing_differs(change: dict[str, Any], expected: list[Act]) -> None:
    assert acts(replace(SETTLED, **change)) == expected


def test_without_a_policy_only_the_tool_is_removed() -> None:
    state = replace(SETTLED, wanted=NO_BACKUPS, template="", size=0)
    assert acts(state) == [Act.REMOVE_REPLICA_SET, Act.REMOVE_CERTIFICATES, Act.REMOVE_SERVICE]
    gone = replace(state, replica_set=replace(SETS, is_terminating=True), has_service=False)
    assert acts(gone) == []
    assert acts(replace(gone, replica_set=None)) == []
    assert acts(replace(gone, has_finalizer=True)) == [Act.REMOVE_FINALIZER]


def test_the_finalizer_follows_the_policy() -> None:
    cleaning = replace(SETTLED, wanted=Wanted(policy=CLEANING))
    assert acts(cleaning) == [Act.ADD_FINALIZER]
    assert acts(replace(cleaning, has_finalizer=True)) == []
    assert acts(replace(SETTLED, has_finalizer=True)) == [Act.REMOVE_FINALIZER]


def test_a_deleted_cluster_takes_its_backups_along_only_if_its_spec_says_so() -> None:
    deleted = replace(SETTLED, is_deleting=True, has_finalizer=True, is_paused=True)
    assert acts(deleted) == [Act.REMOVE_FINALIZER]
    assert acts(replace(deleted, wanted=Wanted(problem="wrong"))) == [Act.REMOVE_FINALIZER]
    cleaning = replace(deleted, wanted=Wanted(policy=CLEANING))
    assert acts(cleaning) == [Act.DELETE_CLAIM, Act.REMOVE_FINALIZER]


def test_a_store_keeps_a_deleted_cluster_for_a_moment_only() -> None:
    deleted = replace(
        SETTLED, is_deleting=True, has_finalizer=True, wanted=Wanted(policy=IN_S3), size=0, claim=None
    )
    assert acts(deleted) == [Act.CLEAN_UP]
    assert acts(replace(deleted, cleanup=CleanupState(waited=CLEANUP_SECONDS - 1))) == [Act.CLEAN_UP]
    assert acts(replace(deleted, cleanup=CleanupState(waited=CLEANUP_SECONDS))) == [Act.GIVE_UP]
    assert acts(replace(deleted, cleanup=CleanupState(is_done=True))) == [Act.REMOVE_FINALIZER]


def test_the_pod_that_is_asked_is_one_of_the_wanted_template() -> None:
    old = replace(POD, name="old", template="old")
    assert replace(SETTLED, pods=(old, POD)).running == POD
    assert replace(SETTLED, pods=(old,)).running == old
    assert replace(SETTLED, pods=(replace(POD, is_terminating=True),)).running is None
