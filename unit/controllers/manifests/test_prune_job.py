"""Rules that the Job obeys that removes old backups of a schedule."""

import fnmatch
import re

import msgspec

from etcd_operator.api.backup_schedules import Retention
from etcd_operator.api.backups import BackupSpec
from etcd_operator.cli import _parser
from etcd_operator.controllers.etcd_backup.manifests import backup_job
from unit.controllers.manifests.backups import METADATA, prune_job_of

THREE = Retention(max_count=3)


def test_it_ends_by_itself_and_never_runs_twice_at_once() -> None:
    spec = prune_job_of("s3://b/{{ .Name }}", THREE, "s3://b/x")["spec"]
    assert spec["activeDeadlineSeconds"] == 1800
    assert (spec["completions"], spec["parallelism"], spec["podReplacementPolicy"]) == (1, 1, "Failed")


def test_the_command_understands_its_arguments() -> None:
    job = prune_job_of(
        "file:///-{{ .Name }}.db",
        Retention(max_count=3, max_age="1d12h"),
        "file:///-verified.db",
        "file:///-newest.db",
        persistentVolumeClaim={"claimName": "backups"},
        encryption={"secretName": "keys"},
    )
    (container,) = job["spec"]["template"]["spec"]["containers"]
    options = _parser().parse_args(container["args"])
    assert (options.command, options.url) == ("prune", "file:///backups/")
    assert (options.max_count, options.max_age, options.json) == (3, "1d12h", True)
    assert options.keep == ["-verified.db", "-newest.db"]
    assert options.series == "team/nightly/uid-schedule"
    assert fnmatch.fnmatchcase("-nightly-20261122-0330.db", options.match)
    assert {mount["mountPath"] for mount in container["volumeMounts"]} == {
        "/tmp",
        "/backups",
        "/var/run/secrets/etcd-backup/encryption",
    }
    assert str(options.encryption_keys) == "/var/run/secrets/etcd-backup/encryption"


def test_a_url_does_not_expand_variables_of_the_pod() -> None:
    job = prune_job_of("s3://b/$(SECRET)/{{ .Name }}$(SECRET)", THREE, "s3://b/$(SECRET)/x$(SECRET)")
    (container,) = job["spec"]["template"]["spec"]["containers"]
    assert not [each for each in container["args"] if re.search(r"(^|[^$])\$\(", each)]
    assert "--keep=x$$(SECRET)" in container["args"]


def test_backups_of_the_schedule_name_its_series() -> None:
    job = prune_job_of("s3://b/{{ .Name }}", THREE, "s3://b/x")
    owner = job["metadata"]["ownerReferences"]
    owned = msgspec.convert({**msgspec.to_builtins(METADATA), "ownerReferences": owner}, type(METADATA))
    spec = msgspec.convert(
        {"source": {"clusterName": "db"}, "destination": {"objectURLTemplate": "s3://b/x"}},
        BackupSpec,
    )
    arguments = [
        backup_job.job(metadata, spec, image="i", url="s3://b/x", endpoints=["c:2379"])["spec"]["template"][
            "spec"
        ]["containers"][0]["args"]
        for metadata in (owned, METADATA)
    ]
    assert "--series=team/nightly/uid-schedule" in arguments[0]
    assert not [each for each in arguments[1] if each.startswith("--series")]
