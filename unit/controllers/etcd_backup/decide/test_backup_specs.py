"""Which specs of EtcdBackups are valid, and which URL a template stands for."""

import re
from typing import Any

import msgspec
import pytest

from etcd_operator.api.backups import BackupSource, BackupSpec, BackupStatus, EtcdBackup
from etcd_operator.api.definitions import backup_validations as rules
from etcd_operator.api.meta import ObjectMeta
from etcd_operator.controllers.shared.decide.backup_spec import (
    is_restorable,
    named_cluster,
    problem,
    rendered_url,
    url_in_pod,
)
from etcd_operator.keys import Key
from unit.api.contract.backup_cases import BACKUP_CASES
from unit.api.contract.case import Case, changed

RULES = [case for case in BACKUP_CASES if case.is_by_rule and not case.edits]
METADATA = ObjectMeta(name="one", namespace="team", uid="uid-1", creation_timestamp="2026-11-22T15:00:00Z")


def spec(url: str = "s3://b/{{ .Name }}.db", **fields: Any) -> BackupSpec:
    source = fields.pop("source", {"clusterName": "c"})
    return msgspec.convert(
        {"source": source, "destination": {"objectURLTemplate": url, **fields}}, BackupSpec
    )


@pytest.mark.parametrize("case", RULES, ids=lambda case: case.typed)
def test_what_the_api_server_refuses_is_refused_in_the_same_words(case: Case) -> None:
    document = changed(case.base, case.changes)["spec"]
    message = re.sub('^.*Invalid value: ("[^"]*": )?', "", case.sees)
    assert problem(msgspec.convert(document, BackupSpec)).endswith(message)


@pytest.mark.parametrize(
    ("template", "url"),
    [
        ("s3://b/one.db", "s3://b/one.db"),
        ("s3://b/{{ .Namespace }}/{{ .Name }}.db?region=x", "s3://b/team/one.db?region=x"),
        ("s3://b/{{.Namespace}}/{{   .Name}}.db", "s3://b/team/one.db"),
        ("gs://b-{{ .Namespace }}/{{ .UID }}", "gs://b-team/uid-1"),
        ("s3://b/a@b/{{ .Name }}?endpoint=s3&region=@", "s3://b/a@b/one?endpoint=s3&region=@"),
        ("s3://b/{{ .CreationTimestamp }}.db", "s3://b/2026-11-22T15:00:00Z.db"),
        ("s3://b/{{ .Name }}%23?endpoint=http:%2F%2Fs3", "s3://b/one%23?endpoint=http:%2F%2Fs3"),
        (
            "s3://b/{{ .Name }}?endpoint=http://s3:7070&disableSSL=true",
            "s3://b/one?endpoint=http://s3:7070&disableSSL=true",
        ),
    ],
)
def test_a_template_is_filled_in(template: str, url: str) -> None:
    assert problem(spec(template)) == ""
    assert rendered_url(template, METADATA) == url


def test_values_are_not_templates() -> None:
    assert rendered_url("s3://b/{{ .Name }}", ObjectMeta(name="{{ .UID }}", uid="u")) == "s3://b/{{ .UID }}"


def test_a_file_is_in_the_folder_of_the_claim() -> None:
    assert url_in_pod("file:///one.db") == "file:///backups/one.db"
    assert url_in_pod("s3://b/file:///one.db") == "s3://b/file:///one.db"


@pytest.mark.parametrize(
    ("url", "part"),
    [
        ("s3://b/{{ .Nme }}", "{{ .Nme }}: has an unknown placeholder: use {{ .Name }}, "),
        ("s3://b/{{ .Name }}{{ .A }}{{ .B }}", "{{ .A }}, {{ .B }}: has an unknown placeholder"),
        ("s3://b/{{ Name }}", "{{ Name }}: has an unknown placeholder"),
        ("s3://b/{{- .Name -}}", "unknown placeholder"),
        ("s3://b/{{ .Name }", "{{ .Name }: has an unknown placeholder"),
        ("s3://b/a}}", "}}: has an unknown placeholder"),
        ("azblob://b/x", rules.SCHEME.message),
        ("", rules.SCHEME.message),
        ("s3://b/x\ny", rules.SCHEME.message),
        ("s3://b/x?region=a&endpoint=key@s3&disableSSL=true", rules.NO_CREDENTIALS),
        ("s3://b/", rules.OBJECT),
        ("s3://b//x", rules.OBJECT),
        ("s3:///x", rules.OBJECT),
        ("s3://b:80/x", rules.OBJECT),
        ("s3://b/x#y", rules.OBJECT),
        ("gs://b", rules.OBJECT),
        ("s3://b/x/.", rules.DOTS.message),
        ("s3://b/x/..?region=a", rules.DOTS.message),
        ("s3://b/%2e%2E/x", rules.DOTS.message),
        ("gs://b/%2f", rules.DOTS.message),
        ("s3://b/x?region=a&", rules.OPTIONS.message),
        ("s3://b/x?", rules.OPTIONS.message),
    ],
)
def test_a_url_is_refused(url: str, part: str) -> None:
    found = problem(spec(url))
    assert found.startswith("spec.destination.objectURLTemplate: ")
    assert part in found


@pytest.mark.parametrize("url", ["file:///a/b.db", "file://host/b.db", "file:///", "file:///.."])
def test_a_file_is_one_name_in_a_claim(url: str) -> None:
    assert problem(spec(url, persistentVolumeClaim={"claimName": "x"}))


def test_no_file_is_outside_of_the_claim() -> None:
    """The folder `/tmp` of the pod can be written, and is lost with it."""
    found = problem(spec("file:///..%2Ftmp%2F{{ .Name }}.db", **CLAIM))
    assert found.endswith(rules.DOTS.message)


@pytest.mark.parametrize(
    ("source", "part"),
    [
        ({"clusterName": "C.c"}, rules.CLUSTER_NAME),
        ({"clusterURL": "http://c:2379/path"}, rules.CLUSTER_URL.message),
        ({"clusterURL": "http://user:secret@c:2379"}, rules.CLUSTER_URL.message),
        ({"clusterURL": "http://c:2379,--without-quorum"}, rules.CLUSTER_URL.message),
        ({"clusterURL": "http://c:99999"}, rules.CLUSTER_URL.message),
        ({"clusterURL": "http://c:0"}, rules.CLUSTER_URL.message),
        ({"clusterURL": "http://[1.2.3]:2379"}, rules.CLUSTER_URL.message),
        ({"clusterURL": "http://[::::]"}, rules.CLUSTER_URL.message),
    ],
)
def test_a_source_is_refused(source: dict[str, str], part: str) -> None:
    assert part in problem(spec(source=source))


@pytest.mark.parametrize(
    "url", ["http://c:2379", "http://c", "http://10.0.0.1:2379/", "http://[fd00::1]:2379"]
)
def test_a_source_is_accepted(url: str) -> None:
    assert problem(spec(source={"clusterURL": url})) == ""


CLAIM = {"persistentVolumeClaim": {"claimName": "x"}}
FILE = {"secretKeyRef": {"name": "s", "key": "k"}}


@pytest.mark.parametrize(
    ("url", "fields", "expected"),
    [
        ("file:///x", {"persistentVolumeClaim": {"claimName": "x"}}, ""),
        ("gs://b/x", {"credentials": {"aws": FILE}}, rules.CREDENTIALS_FIT),
        (
            "file:///x",
            {
                "persistentVolumeClaim": {"claimName": "x"},
                "credentials": {"environment": {"secretName": "s"}},
            },
            rules.CREDENTIALS_FIT,
        ),
        ("s3://b/x", {"credentials": {"aws": FILE, "environment": {"secretName": "s"}}}, ""),
        ("gs://b/x", {"credentials": {"googleCloud": FILE}}, ""),
        ("gs://b/x", {"credentials": {}}, ""),
    ],
)
def test_what_belongs_to_the_url(url: str, fields: dict[str, Any], expected: str) -> None:
    assert problem(spec(url, **fields)).removeprefix("spec.destination: ") == expected


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ({"clusterName": "c"}, "c"),
        ({"clusterURL": "http://c:2379"}, "c"),
        ({"clusterURL": "http://c"}, "c"),
        ({"clusterURL": "http://c.team:2379"}, "c"),
        ({"clusterURL": "http://c.team.svc"}, "c"),
        ({"clusterURL": "http://c.team.svc.cluster.local:2379"}, "c"),
        ({"clusterURL": "http://c.team.svc.attacker.example:2379"}, ""),
        ({"clusterURL": "http://c.team.svc.cluster.local.example:2379"}, ""),
        ({"clusterURL": "http://c.other:2379"}, ""),
        ({"clusterURL": "http://c.team.example"}, ""),
        ({"clusterURL": "http://c.teams.svc"}, ""),
        ({"clusterURL": "http://10.0.0.1:2379"}, ""),
        ({"clusterURL": "http://[fd00::1]:2379"}, ""),
        ({"clusterURL": "http://[1.2.3]"}, ""),
        ({"clusterURL": "http://1c:2379"}, ""),
        ({}, ""),
    ],
)
def test_the_cluster_that_a_source_names(source: dict[str, str], expected: str) -> None:
    assert named_cluster(msgspec.convert(source, BackupSource), "team") == expected


@pytest.mark.parametrize(
    ("changes", "is_expected"),
    [
        ({}, True),
        ({"cluster_uid": ""}, False),
        ({"cluster_id": ""}, False),
        ({"sha256": ""}, False),
        ({"phase": "Failed"}, False),
    ],
)
def test_an_etcd_cluster_is_restored_only_from_backups_of_it(
    changes: dict[str, Any], *, is_expected: bool
) -> None:
    """Another etcd may report the same ID, so what the operator has resolved counts."""
    known = {
        "phase": "Completed",
        "url": "s3://b/k",
        "sha256": "ab",
        "cluster_id": "c0de",
        "cluster_uid": "uid-c",
    }
    spec = {"source": {"clusterName": "c"}, "destination": {"objectURLTemplate": "s3://b/k"}}
    backup = EtcdBackup(
        metadata=ObjectMeta(name="one", namespace="team"),
        stored_spec=msgspec.Raw(msgspec.json.encode(spec)),
        status=BackupStatus(**{**known, **changes}),
    )
    assert is_restorable(backup, Key("team", "c")) is is_expected
    assert not is_restorable(backup, Key("team", "d"))
