"""Which specs of EtcdRestores are valid, and what they mean."""

from typing import Any

import msgspec
import pytest

from etcd_operator.api.backups import BackupSpec
from etcd_operator.api.restores import RestoreSpec
from etcd_operator.controllers.etcd_restore.decide.spec import (
    access,
    access_of_backup,
    problem,
    storage,
    template_version,
)
from unit.api.contract.case import ABSENT, changed
from unit.api.contract.restore_cases import RESTORE, RESTORE_CASES

# What the API server knows and these rules do not need to: the name of the object itself, quantities, edits,
# empty affinities, and the metadata of the pod template, which the EtcdCluster refuses.
NOT_HERE = ("a name of", "storage: 0", "a reserved name", "annotations of", "affinity in both places")
RULES = [c for c in RESTORE_CASES if c.is_by_rule and not c.edits and not c.typed.startswith(NOT_HERE)]


def spec(changes: dict[str, Any] | None = None) -> RestoreSpec:
    return msgspec.convert(changed(RESTORE, changes or {})["spec"], RestoreSpec)


@pytest.mark.parametrize("case", RULES, ids=lambda case: case.typed)
def test_what_the_api_server_refuses_is_a_problem_here_too(case: Any) -> None:
    assert problem(spec(case.changes)) != ""


BUCKET = {"bucketURL": "s3://b/?region=eu-west-1", "objectPath": "folder/one.db"}


@pytest.mark.parametrize(
    ("source", "url"),
    [
        ({"objectURL": "s3://b/one.db?region=eu-west-1"}, "s3://b/one.db?region=eu-west-1"),
        ({"bucket": BUCKET}, "s3://b/folder/one.db?region=eu-west-1"),
        ({"bucket": {"bucketURL": "gs://b", "objectPath": "one.db"}}, "gs://b/one.db"),
        ({"backupName": "my-backup"}, ""),
        ({"objectURL": "file:///one.db", "persistentVolumeClaim": {"claimName": "c"}}, "file:///one.db"),
    ],
)
def test_valid_sources(source: dict[str, Any], url: str) -> None:
    parsed = spec({"spec/source": source})
    assert problem(parsed) == ""
    assert parsed.source.url == url
    if url:
        assert access(parsed).destination.object_url_template == url


def test_a_file_has_no_credentials() -> None:
    source = {
        "objectURL": "file:///one.db",
        "persistentVolumeClaim": {"claimName": "c"},
        "credentials": {"environment": {"secretName": "s"}},
    }
    assert "credentials must fit" in problem(spec({"spec/source": source}))


def test_the_credentials_of_the_guide() -> None:
    key = {"name": "backup-gcs-cred", "key": "gcp.json", "optional": False}
    bucket = {
        "bucketURL": "gs://etcd-backup-test",
        "objectPath": "foo.db",
        "credentials": {"googleCloud": {"secretKeyRef": key}},
    }
    parsed = spec({"spec/source": {"bucket": bucket}})
    assert problem(parsed) == ""
    google = access(parsed).destination.credentials.google_cloud
    assert google is not None
    assert (google.secret_key_ref.name, google.secret_key_ref.key) == ("backup-gcs-cred", "gcp.json")


def test_what_the_restore_names_takes_precedence() -> None:
    backup = msgspec.convert(
        {
            "source": {"clusterName": "c"},
            "destination": {"objectURLTemplate": "s3://b/x"},
            "encryption": {"secretName": "old"},
            "serviceAccountName": "old",
        },
        BackupSpec,
    )
    assert access_of_backup(spec(), backup) == backup
    named = spec({"spec/encryption": {"secretName": "new"}, "spec/serviceAccountName": "new"})
    found = access_of_backup(named, backup)
    assert found.encryption is not None
    assert (found.encryption.secret_name, found.service_account_name) == ("new", "new")


def test_an_affinity_in_both_places() -> None:
    both: dict[str, Any] = {
        f"spec/clusterTemplate/spec/{at}": {"nodeAffinity": {}} for at in ("affinity", "podTemplate/affinity")
    }
    assert "are alternatives" in problem(spec(both))


def test_version_and_size() -> None:
    version = "spec/clusterTemplate/spec/version"
    size = "spec/clusterTemplate/spec/storage/volumeClaimTemplate/resources/requests/storage"
    assert template_version(spec()) == ""
    assert template_version(spec({version: "v3.6.16"})) == "3.6.16"
    assert storage(spec()) == 50 << 20
    assert storage(spec({size: 1000})) == 1000
    assert storage(spec({size: "1.5Gi"})) is None
    assert storage(spec({size: ABSENT})) is None
