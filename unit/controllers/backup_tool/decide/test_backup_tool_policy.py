"""What `spec.backup` means, and sizes of claims."""

from typing import Any

import pytest

from etcd_operator.controllers.backup_tool.decide.policy import NO_BACKUPS, wanted
from etcd_operator.formats import bytes_of
from unit.api.contract.case import Case, changed
from unit.api.contract.coreos_backup_cases import COREOS_BACKUP_CASES, IN_S3, ON_VOLUME


def test_a_policy_with_its_defaults() -> None:
    policy = wanted({"maxBackups": 3, "volumeSizeInMB": 512}).policy
    assert policy is not None
    assert (policy.backup_interval_in_second, policy.storage_type) == (1800, "PersistentVolume")
    assert not policy.cleanup_backups_on_cluster_delete


@pytest.mark.parametrize("raw", [None, {"maxBackups": 0}, {"maxBackups": 0, "s3": {"s3Bucket": "b"}}])
def test_nothing_is_wanted(raw: Any) -> None:
    assert wanted(raw) == NO_BACKUPS


@pytest.mark.parametrize("base", [ON_VOLUME, IN_S3])
def test_what_the_definition_accepts_is_no_problem(base: Any) -> None:
    found = wanted(base["spec"]["backup"])
    assert found.problem == ""
    assert found.policy is not None


@pytest.mark.parametrize(
    "prefix", ["etcd", "etcd/", "a/b/c", "a.b/c.d", "_a", "a" * 500], ids=lambda text: text[:10]
)
def test_prefixes(prefix: str) -> None:
    target = {"s3Bucket": "my-bucket", "prefix": prefix, "region": "eu-1", "endpoint": "http://[::1]:9000"}
    assert wanted({"maxBackups": 1, "storageType": "S3", "s3": target}).problem == ""


@pytest.mark.parametrize(
    "case",
    [case for case in COREOS_BACKUP_CASES if not case.edits and "metadata/name" not in case.changes],
    ids=lambda case: case.typed,
)
def test_the_operator_refuses_what_the_definition_refuses(case: Case) -> None:
    found = wanted(changed(case.base, case.changes)["spec"]["backup"])
    assert found.policy is None
    assert found.problem.startswith("spec.backup")
    if case.is_by_rule:
        assert found.problem.endswith(case.sees.rpartition(": ")[2])


@pytest.mark.parametrize(
    ("quantity", "size"),
    [
        ("512Mi", 512 << 20), ("1Gi", 1 << 30), ("1024", 1024), ("1k", 1000), ("2M", 2_000_000),
        ("3Ki", 3072), ("1Ei", 1 << 60), ("1.5Gi", None), ("1e9", None), ("", None), ("1Xi", None),
    ],
)  # fmt: skip
def test_quantities(quantity: str, size: int | None) -> None:
    assert bytes_of(quantity) == size
