"""EtcdRestores that are refused or fail: the status reports why, and nothing is touched or left."""

from typing import Any

import pytest

from unit.fakes.apiserver import Json
from unit.fakes.apiserver.kinds import CLAIMS
from unit.passes.bodies import COREOS, IMPROBABLE, RESTORES, ephemeral, persistent
from unit.passes.restoring import PREFIX, SNAPSHOT, TEMPLATE, Restoring, made, restore

__all__ = ["made"]


def claim_of(name: str, **metadata: Any) -> Json:
    labels = {f"{PREFIX}/cluster-name": "c"}
    return {"metadata": {"name": name, "labels": labels, **metadata}, "spec": {}}


FAILURES = (
    ("Damaged", 3, "BackupDamaged"),
    ("NotABackup", 1, "BackupMissing"),
    ("WrongKey", 1, "WrongKey"),
    ("NotEncrypted", 1, "NotEncrypted"),
    ("AccessDenied", 1, "AccessDenied"),
    ("Other", 1, "RestoreFailed"),
)


@pytest.mark.parametrize(("kind", "code", "reason"), FAILURES)
@pytest.mark.parametrize("job", ["verify", "-1-"])
def test_a_failure_reports_why_and_leaves_nothing(
    made: Restoring, kind: str, code: int, reason: str, job: str
) -> None:
    made.answers[job] = {"error": "It is not so.", "reason": kind}, code
    made.made.create(*restore())
    made.until_ended("Failed")
    assert (made.reason, made.message) == (reason, "It is not so.")
    made.assert_nothing_left()
    assert "RestoreFailed" in made.made.event_reasons()
    writes = len(made.made.writes())
    made.made.wait(60.0)
    assert len(made.made.writes()) == writes, "what has failed is never carried out again"


@pytest.mark.parametrize(
    ("template", "snapshot", "reason", "text"),
    [
        ({"version": "3.5.35"}, {}, "VersionNotPossible", "to etcd 3.6 or 3.7, not to etcd 3.5.35"),
        ({}, {"size": 2 << 30}, "VolumeTooSmall", "each claim requests only 1073741824"),
    ],
)
def test_what_cannot_start_is_refused_before_anything_is_made(
    made: Restoring, template: Json, snapshot: Json, reason: str, text: str
) -> None:
    made.answers["verify"] = {"snapshot": {**SNAPSHOT, **snapshot}}, 0
    made.made.create(*restore(template={**TEMPLATE, **template}))
    made.until_ended("Failed")
    assert made.reason == reason
    assert text in made.message
    assert not [w for w in made.made.writes() if w.request.plural == "persistentvolumeclaims"]
    made.assert_nothing_left()


@pytest.mark.parametrize("version", ["3.5.35", "v3.6.16"])
def test_the_minor_version_of_the_backup_or_the_next_one(made: Restoring, version: str) -> None:
    made.answers["verify"] = {"snapshot": {**SNAPSHOT, "etcdVersion": "3.5.20"}}, 0
    made.made.create(*restore(template={**TEMPLATE, "version": version}))
    made.until(lambda: bool(made.named("r-0-")))
    images = {job["spec"]["template"]["spec"]["initContainers"][0]["image"] for job in made.named("r-0-")}
    made.until_ended()
    assert made.made.get(IMPROBABLE, "c")["spec"]["version"] == version.removeprefix("v")
    assert images == {f"quay.io/coreos/etcd:v{version.removeprefix('v')}"}


def test_an_existing_cluster_is_not_touched(made: Restoring) -> None:
    made.made.create(*persistent(size=1))
    made.made.settle()
    before = made.made.get(IMPROBABLE, "c"), made.made.get(CLAIMS, "c-0")
    made.made.create(*restore())
    made.until_ended("Failed")
    assert made.reason == "ClusterExists"
    assert (made.made.get(IMPROBABLE, "c"), made.made.get(CLAIMS, "c-0")) == before
    assert made.jobs.all() == []


def test_a_cluster_of_the_other_group_has_the_same_service(made: Restoring) -> None:
    made.made.create(*ephemeral(size=1))
    made.made.create(*restore())
    made.until_ended("Failed")
    assert made.reason == "ClusterExists"
    assert made.made.names(COREOS) == ["c"]


@pytest.mark.parametrize("name", ["c-0", "c-7"])
def test_claims_of_a_former_cluster_are_not_touched(made: Restoring, name: str) -> None:
    made.made.create(CLAIMS, claim_of(name))
    made.made.create(*restore())
    made.until_ended("Failed")
    assert made.reason == "ClaimsExist"
    assert name in made.message
    assert made.claims == [name]


def test_what_is_being_deleted_is_waited_for(made: Restoring) -> None:
    made.made.create(CLAIMS, claim_of("c-0", finalizers=["example.com/busy"]))
    made.made.delete(CLAIMS, "c-0")
    made.made.create(*restore())
    made.made.run_until(lambda: made.reason == "WaitingForDeletion")
    assert "c-0" in made.message
    made.made.edit(CLAIMS, "c-0", {"metadata": {"finalizers": []}})
    made.until_ended()


def test_of_two_restores_to_one_name_one_is_carried_out(made: Restoring) -> None:
    made.made.create(*restore("r"))
    made.made.create(*restore("s"))
    made.until(
        lambda: all(made.made.status(RESTORES, n).get("phase") in ("Completed", "Failed") for n in "rs")
    )
    phases = sorted(made.made.status(RESTORES, name)["phase"] for name in "rs")
    assert phases == ["Completed", "Failed"]
    (winner,) = [name for name in "rs" if made.made.status(RESTORES, name)["phase"] == "Completed"]
    labels = {
        made.made.get(CLAIMS, name)["metadata"]["labels"][f"{PREFIX}/restored-from"] for name in made.claims
    }
    assert (made.claims, labels) == (["c-0", "c-1", "c-2"], {winner})
