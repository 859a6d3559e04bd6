"""What restores under way read: schedules remove neither what is stored nor the EtcdBackup."""

from typing import Any

import pytest

from etcd_operator.controllers.etcd_backup_schedule.manifests import schedule as render
from etcd_operator.controllers.etcd_backup_schedule.readers import being_read
from etcd_operator.errors import Conflict
from unit.fakes.apiserver import Json, Kind
from unit.fakes.apiserver.faults import Answer, Request
from unit.fakes.apiserver.kinds import JOBS
from unit.passes.bodies import BACKUPS, IMPROBABLE, RESTORES, persistent
from unit.passes.harness import objects_of
from unit.passes.jobs import Made, schedule
from unit.passes.prune_steps import URL, arguments, pruned, prunes, stored
from unit.passes.restoring import Restoring, restore
from unit.passes.schedule_steps import FIRST, let_run


@pytest.mark.exhaustive
def test_what_a_restore_reads_is_kept_until_it_has_ended(made: Made) -> None:
    """Both what is stored and its EtcdBackup, however many newer ones there are."""
    world, _ = made
    backed_up_while(made, restore(source={"backupName": FIRST}))
    assert f"--keep={FIRST}.db" in arguments(prunes(made)[-1])
    assert FIRST in world.names(BACKUPS), "the history limit passes it over"
    world.edit(RESTORES, "r", {"status": {"phase": "Failed"}}, subresource="status")
    let_run(made, 660.0)
    assert f"--keep={FIRST}.db" not in arguments(prunes(made)[-1])
    assert FIRST not in world.names(BACKUPS)


def test_a_restore_that_begins_stops_the_removal_of_old_backups(made: Made) -> None:
    """Its Job was made before, and may start at any time: it does not spare what is read now."""
    world, jobs = made
    stored(made)
    world.create(*restore(source={"backupName": FIRST}))
    world.run_until(lambda: any("verify" in job["metadata"]["name"] for job in jobs.all()))
    assert [job for job in prunes(made) if f"--keep={FIRST}.db" not in arguments(job)] == []


def test_a_job_begins_only_if_nothing_else_is_read_since_it_was_made(
    made: Made, monkeypatch: pytest.MonkeyPatch
) -> None:
    world, jobs = made
    other = "s3://bucket/default/other.db"
    made_job = render.job

    def at_the_last_moment(*given: Any, **options: Any) -> Json:
        if not world.names(RESTORES):
            world.create(*restore(source={"objectURL": other}))
        return made_job(*given, **options)

    monkeypatch.setattr(render, "job", at_the_last_moment)
    world.create(*schedule(retention={"maxCount": 2}))
    world.run_until(lambda: bool(jobs.all()))
    world.drain()
    jobs.run(jobs.one(), {"name": "x", "source": "c:2379", "seconds": 1.0, "manifest": None})
    world.run_until(lambda: any(not job["spec"]["suspend"] for job in prunes(made)))
    assert "--keep=other.db" in arguments(prunes(made)[0])


def test_a_job_that_an_operator_left_suspended_is_made_again(made: Made) -> None:
    world, _ = made
    left = stored(made)
    world.edit(JOBS, left["metadata"]["name"], {"spec": {"suspend": True}})
    world.run_until(lambda: [job["spec"]["suspend"] for job in prunes(made)] == [False])
    assert prunes(made)[0]["metadata"]["uid"] != left["metadata"]["uid"]


SOURCE = {"type": "StoredBackup", "cluster": "c", "url": URL, "spec": {}}


@pytest.mark.parametrize("is_under_way", [True, False])
def test_what_a_recovery_reads_is_kept_until_it_has_ended(made: Made, is_under_way: bool) -> None:
    recovery = {"generation": 1, "authority": "Requested", "revision": 7, "version": "3.6.16", "seed": "c-3"}
    recovery |= {"token": "t", "replaces": "c0de", "source": SOURCE}
    status = {"recovery": recovery, "clusterID": "c0de" if is_under_way else "c0ffee"}
    world, _ = made
    world.create(*persistent("other"))
    world.edit(IMPROBABLE, "other", {"status": status}, subresource="status")
    found = being_read(objects_of(world.api))
    assert [each.url for each in found] == [URL] * is_under_way


def backed_up_while(made: Made, body: Any) -> None:
    """The first backup is stored, a restore of it begins, and five more are taken meanwhile."""
    world, jobs = made
    stored(made)
    world.create(*body)
    world.run_until(lambda: any("verify" in job["metadata"]["name"] for job in jobs.all()))
    (check,) = Restoring(world).named("r-verify")
    Restoring(world).start(check)
    let_run(made, 1560.0)


@pytest.mark.parametrize(("code", "reason", "waits"), [(403, "Forbidden", True), (404, "NotFound", False)])
def test_without_the_right_to_read_restores_nothing_is_removed(
    made: Made, code: int, reason: str, waits: bool
) -> None:
    """Without their definition there is none. Backups are taken all the same."""
    world, _ = made

    def refused(request: Request) -> Answer | None:
        is_meant = request.plural == "etcdrestores" and request.method == "GET"
        return Answer(code=code, reason=reason, message="refused") if is_meant else None

    world.api.before = refused
    world.create(*schedule(retention={"maxCount": 1}, successfulBackupsHistoryLimit=1))
    let_run(made, 960.0)
    assert (prunes(made) == []) == waits
    assert (len(world.names(BACKUPS)) == 3) == waits
    assert (pruned(world)["reason"] == "Forbidden") == waits


UNREADABLE = [
    (RESTORES, restore(source={"objectURL": URL}), "r", {"progress": 5}),
    (IMPROBABLE, persistent("other"), "other", {"endpoints": 5}),
]


@pytest.mark.parametrize(("kind", "body", "name", "status"), UNREADABLE)
def test_what_cannot_be_read_may_be_reading_anything(
    made: Made, kind: Kind, body: Any, name: str, status: Json
) -> None:
    """It was stored while the definition had another schema, and its restore goes on once it is mended."""
    world, _ = made
    world.create(*body)
    world.edit(kind, name, {"status": status}, subresource="status")
    with pytest.raises(Conflict, match=name):
        being_read(objects_of(world.api))


def test_a_restore_that_another_version_has_accepted_is_under_way(made: Made) -> None:
    world, _ = made
    kind, body = restore(source={"objectURL": URL})
    body["spec"]["source"]["mirrors"] = ["a field of that version"]
    world.create(kind, body)
    assert being_read(objects_of(world.api)) == ()
    world.edit(RESTORES, "r", {"status": {"url": URL, "phase": "Pending"}}, subresource="status")
    assert [each.url for each in being_read(objects_of(world.api))] == [URL]


def test_backups_are_taken_while_a_restore_cannot_be_read(made: Made) -> None:
    world, _ = made
    world.create(*restore(name="r", source={"objectURL": URL}))
    world.edit(RESTORES, "r", {"status": {"progress": 5}}, subresource="status")
    world.create(*schedule(retention={"maxCount": 1}, successfulBackupsHistoryLimit=1))
    let_run(made, 960.0)
    assert (prunes(made), len(world.names(BACKUPS))) == ([], 3)
    assert "objects exist that cannot be read: default/r" in pruned(world)["message"]
    world.edit(RESTORES, "r", {"status": {"progress": ""}}, subresource="status")
    let_run(made, 60.0)
    assert (prunes(made) != [], len(world.names(BACKUPS))) == (True, 1)
