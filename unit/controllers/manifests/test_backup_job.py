"""Rules that the Job of every EtcdBackup obeys."""

import re

import msgspec
import pytest

from etcd_operator.api.backups import UID_LABEL
from etcd_operator.api.improbable import CLUSTER_LABEL, TOKEN_LABEL
from etcd_operator.cli import _parser
from etcd_operator.controllers.shared.manifests.command import REPORT_PATH
from etcd_operator.controllers.shared.manifests.job import job_name
from unit.controllers.manifests.backups import METADATA, backup_job_of, verification_job_of


@pytest.mark.parametrize(
    "name", ["a", "a" * 253, "my.backup", f"{'a' * 51}.{'b' * 10}", f"{'a' * 51}-{'b' * 10}", "1"]
)
def test_the_names_of_jobs_are_labels_and_their_own(name: str) -> None:
    """Those of all kinds: of a backup and its verification, of a schedule, of a restore and its members."""
    first = msgspec.structs.replace(METADATA, name=name)
    again = msgspec.structs.replace(first, uid="uid-of-a-later-object")
    which = ["", "verify", "prune", *map(str, range(100))]
    names = [job_name(metadata, each) for metadata in (first, again) for each in which]
    assert len(set(names)) == 206
    for each in names:
        assert re.fullmatch("[a-z0-9]([-a-z0-9]*[a-z0-9])?", each)
        assert len(each) <= 63


def test_it_is_run_once_without_rights_and_reports() -> None:
    """Budgets and client Services select by the labels that it must not have, and the caches of clusters."""
    job = backup_job_of("s3://b/x")
    for labels in (job["metadata"]["labels"], job["spec"]["template"]["metadata"]["labels"]):
        assert labels[UID_LABEL] == METADATA.uid
        assert not {CLUSTER_LABEL, TOKEN_LABEL} & set(labels)
        assert labels["app.kubernetes.io/name"] != "etcd"
    spec, pod = job["spec"], job["spec"]["template"]["spec"]
    assert (spec["backoffLimit"], pod["restartPolicy"]) == (0, "Never")
    assert pod["automountServiceAccountToken"] is False
    (container,) = pod["containers"]
    assert container["terminationMessagePath"] == REPORT_PATH
    assert f"--report={REPORT_PATH}" in container["args"]


def test_the_command_understands_its_arguments() -> None:
    job = backup_job_of(
        "file:///-{{ .Name }}.db",
        persistentVolumeClaim={"claimName": "backups"},
        compression="zstd",
        encryption={"secretName": "keys"},
    )
    (container,) = job["spec"]["template"]["spec"]["containers"]
    options = _parser().parse_args(container["args"])
    assert (options.command, options.to) == ("backup", "file:///backups/-one.db")
    assert options.compress
    assert options.json
    mounted = {mount["mountPath"] for mount in container["volumeMounts"]}
    assert {str(options.encryption_keys), "/backups"} < mounted


def test_a_verification_only_reads() -> None:
    job = verification_job_of(
        "file:///one.db", etcd_image="etcd:v3.6.16", persistentVolumeClaim={"claimName": "backups"}
    )
    pod = job["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    (claim,) = (mount for mount in container["volumeMounts"] if mount["mountPath"] == "/backups")
    assert claim["readOnly"] is True
    assert pod["automountServiceAccountToken"] is False
    options = _parser().parse_args(container["args"])
    assert (options.command, options.url, str(options.report)) == (
        "verify",
        "file:///backups/one.db",
        REPORT_PATH,
    )
    assert options.restore
    assert options.etcd_in_pod


def test_a_url_does_not_expand_variables_of_the_pod() -> None:
    job = backup_job_of(
        "s3://b/$(AWS_SECRET_ACCESS_KEY)/$$x", credentials={"environment": {"secretName": "s"}}
    )
    (container,) = job["spec"]["template"]["spec"]["containers"]
    assert "--to=s3://b/$$(AWS_SECRET_ACCESS_KEY)/$$$$x" in container["args"]
