"""What `spec.retention` means: which stored backups are those of a schedule."""

import fnmatch
import re
from typing import Any
from urllib.parse import unquote

import msgspec
import pytest

from etcd_operator.api.backup_schedules import KIND, Retention
from etcd_operator.api.meta import ObjectMeta, OwnerReference
from etcd_operator.controllers.etcd_backup_schedule.decide.spec import (
    checked,
    described_retention,
    place,
    series,
)
from etcd_operator.controllers.shared.decide.backup_spec import rendered_url, series_of
from etcd_operator.errors import InvalidSpec
from etcd_operator.formats import DURATION_PATTERN, seconds_of
from unit.controllers.etcd_backup_schedule.decide.test_schedule_specs import spec

NIGHTLY = ObjectMeta(name="nightly", namespace="team", uid="uid-1")
UID = "0f8fad5b-d9cb-469f-a165-70867728950e"
CREATED = "2026-11-22T02:30:00Z"
TAKEN = ObjectMeta(name="nightly-20261122-0230", namespace="team", uid=UID, creation_timestamp=CREATED)

TEMPLATES = {
    "s3://b/{{ .Namespace }}/{{ .Name }}.db?region=x&endpoint=http://e": (
        "s3://b/team/?region=x&endpoint=http://e",
        "nightly-20261122-0230.db",
    ),
    "s3://b/{{ .Name }}/{{ .Namespace }}/db": ("s3://b/", "nightly-20261122-0230/team/db"),
    "gs://b-{{.Namespace}}/x y/a%20[b]*/of-{{ .UID }}": ("gs://b-team/x y/a%20[b]*/", f"of-{UID}"),
    "file:///a%20[b]-{{ .CreationTimestamp }}": ("file:///", f"a [b]-{CREATED}"),
    "s3://b/f/{{ .Name }}-{{ .UID }}.db": ("s3://b/f/", f"nightly-20261122-0230-{UID}.db"),
    "s3://b/{{ .Name }}?endpoint={{ .Namespace }}": ("s3://b/?endpoint=team", "nightly-20261122-0230"),
}


@pytest.mark.parametrize(("template", "wanted"), TEMPLATES.items(), ids=TEMPLATES)
def test_the_place_of_a_schedule_has_each_of_its_backups(template: str, wanted: tuple[str, str]) -> None:
    url, name = wanted
    found = place(template, NIGHTLY)
    assert found.url == url
    assert fnmatch.fnmatchcase(name, found.match)
    stored = rendered_url(template, TAKEN)
    assert found.names([stored]) == (name,)
    assert unquote(stored.partition("?")[0]).endswith(f"/{name}")


@pytest.mark.parametrize(
    "name",
    [
        "nightly-20261122-0230.db.copy",
        "keep/nightly-20261122-0230.db",
        "nightly-2-20261122-0230.db",
        "nightly-latest.db",
        "anightly-20261122-0230.db",
        "nightly-20261122-02x0.db",
        "nightly-20261122-0230Xdb",
    ],
)
def test_names_of_others_are_not_of_the_schedule(name: str) -> None:
    assert not fnmatch.fnmatchcase(name, place("s3://b/{{ .Name }}.db", NIGHTLY).match)


def test_urls_of_other_folders_have_no_name() -> None:
    found = place("s3://b/a/{{ .Name }}.db?region=x", NIGHTLY)
    urls = ["s3://b/a/one.db", "s3://b/a/one.db?region=y", "s3://b/a-b/two.db", "s3://c/a/three.db"]
    assert found.names([*urls, "s3://b/%61/four.db"]) == ("one.db", "four.db")


def test_the_series_has_the_uid() -> None:
    owner = OwnerReference(api_version="x/y", kind=KIND, name="nightly", uid="uid-1", controller=True)
    owned = msgspec.structs.replace(TAKEN, owner_references=(owner,))
    assert series(NIGHTLY) == series_of(owned) == "team/nightly/uid-1"
    assert series_of(TAKEN) == ""
    other = msgspec.structs.replace(owner, controller=False)
    assert series_of(msgspec.structs.replace(TAKEN, owner_references=(other,))) == ""


def test_an_edit_changes_the_text() -> None:
    assert described_retention(Retention(max_count=3)) == "maxCount 3"
    assert described_retention(Retention(max_age="30d")) == "maxAge 30d"
    assert described_retention(Retention(max_count=3, max_age="30d")) == "maxCount 3, maxAge 30d"


@pytest.mark.parametrize(
    ("url", "fixed"),
    [
        ("s3://b/{{ .Name }}", "s3://b/"),
        ("s3://b-{{ .Namespace }}/{{ .UID }}?endpoint={{ .Namespace }}", "s3://b-team/?endpoint=team"),
        ("gs://b/a/{{.UID}}", "gs://b/a/"),
    ],
)
def test_templates_with_a_fixed_place(url: str, fixed: str) -> None:
    valid = spec(retention={"maxCount": 1}, backupTemplate=_template(url))
    assert checked("s", valid) == checked("s", spec())
    assert place(url, NIGHTLY).url == fixed


@pytest.mark.parametrize(
    "url",
    ["s3://{{ .Name }}/x", "s3://{{ .Namespace }}-{{ .UID }}/x", "s3://b/{{.Name}}?endpoint={{ .Name }}"],
)
def test_templates_without_a_fixed_place_have_no_retention(url: str) -> None:
    checked("s", spec(backupTemplate=_template(url)))
    with pytest.raises(InvalidSpec, match=re.escape("spec.retention: requires an objectURLTemplate without")):
        checked("s", spec(retention={"maxCount": 1}, backupTemplate=_template(url)))


def _template(url: str) -> dict[str, Any]:
    return {**spec_document()["backupTemplate"], "destination": {"objectURLTemplate": url}}


def spec_document() -> dict[str, Any]:
    document: dict[str, Any] = msgspec.to_builtins(spec())
    return document


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90m", 5400), ("1d12h", 129_600), ("30d", 2_592_000), ("1w0s", 604_800), ("720h0m0s", 2_592_000)],
)
def test_durations(text: str, seconds: float) -> None:
    assert re.fullmatch(DURATION_PATTERN, text)
    assert seconds_of(text) == seconds


@pytest.mark.parametrize("text", ["", "30", "0d", "0w0d", "1 d", "d", "-1d", "1.5h", "1y", "123456789012d"])
def test_what_is_no_duration(text: str) -> None:
    with pytest.raises(ValueError, match="is not a duration: write numbers with the units"):
        seconds_of(text)
