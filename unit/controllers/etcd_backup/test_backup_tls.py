"""EtcdBackups of clusters with TLS: the Secret of the Job, which exists no longer than the Job needs it."""

import base64
from collections.abc import Iterator
from datetime import timedelta

import pytest

from etcd_operator.pki.description import describe
from unit.controllers.etcd_cluster.test_tls import set_clock
from unit.controllers.etcd_cluster.test_tls_supplied import secret
from unit.fakes.apiserver import Json
from unit.fakes.apiserver.kinds import JOBS, SECRETS
from unit.passes.bench import Bench
from unit.passes.bodies import BACKUPS, IMPROBABLE
from unit.passes.disturbance import DISTURBANCES, Disturbance, EachWrite, run_or_die
from unit.passes.jobs import STORED, Jobs, backup, ended
from unit.passes.tls_sources import ENDPOINT, add_source, files, secrets, tls_source
from unit.pki.samples import Issuer


@pytest.fixture
def world() -> Iterator[Bench]:
    with tls_source() as made:
        yield made


def begun(world: Bench, **source: str) -> Json:
    """An EtcdBackup of the cluster, whose Job exists; the Job."""
    world.start()
    world.create(*backup(source=source or {"clusterName": "c"}))
    world.run_until(lambda: bool(world.names(JOBS)))
    world.drain()
    return Jobs(world).one()


def secret_of(job: Json) -> str:
    """The Secret that the pod of a Job mounts for etcd."""
    volumes = {volume["name"]: volume for volume in job["spec"]["template"]["spec"]["volumes"]}
    return str(volumes["etcd"]["secret"]["secretName"])


def complete(world: Bench) -> Json:
    return world.condition(BACKUPS, "Complete", "one")


@pytest.mark.parametrize("source", [{"clusterName": "c"}, {"clusterURL": "http://c.default.svc:2379"}])
def test_a_job_is_root_for_a_day_at_most_and_no_longer_than_it_runs(
    world: Bench, source: dict[str, str]
) -> None:
    cas = add_source(world)
    job = begun(world, **source)
    name, now = secret_of(job), world.clock.now()
    (owner,) = world.get(SECRETS, name)["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["uid"]) == ("Job", job["metadata"]["uid"])
    found = files(world, name)
    assert set(found) == {"ca.crt", "tls.crt", "tls.key"}
    assert found["ca.crt"] == cas.client.bundle
    leaf = describe(found["tls.crt"])
    assert (leaf.common_name, leaf.issuer_key_id) == ("root", cas.client.record.issuer)
    assert leaf.not_after <= now + timedelta(days=1)
    (args,) = (each["args"] for each in job["spec"]["template"]["spec"]["containers"])
    assert f"--endpoints={ENDPOINT}" in args
    jobs = Jobs(world)
    pod = jobs.start(job)
    world.drain()
    assert name in secrets(world)
    jobs.report(pod, **ended(STORED))
    world.drain()
    assert world.status(BACKUPS, "one")["phase"] == "Completed"
    assert secrets(world) == []


def test_a_job_gets_its_certificate_once_the_clock_is_right(world: Bench) -> None:
    add_source(world)
    world.start()
    set_clock(world, timedelta(minutes=10))
    world.create(*backup(source={"clusterName": "c"}))
    world.run_until(lambda: complete(world).get("reason") == "ClockSkew")
    assert secrets(world) == []
    set_clock(world, -timedelta(minutes=10))
    world.run_until(lambda: bool(secrets(world)))


def test_members_that_require_no_certificate_are_given_none(world: Bench) -> None:
    add_source(world, client_cert_auth=False)
    assert set(files(world, secret_of(begun(world)))) == {"ca.crt"}


def test_with_certificates_of_the_user_a_job_has_that_of_the_operator(world: Bench) -> None:
    add_source(world)
    ca = Issuer(world.clock.now())
    given = {
        "own": secret("own", ca, "*.c-peer.default.svc", "c.default.svc"),
        "operator": secret("operator", ca, keys="etcd-client"),
    }
    for body in given.values():
        world.create(SECRETS, body)
    record = {
        "clientCA": None,
        "clientSecret": {"name": "own"},
        "operatorSecret": {"name": "operator", "keys": "etcd-client"},
    }
    world.edit(IMPROBABLE, "c", {"status": {"tls": record}}, subresource="status")
    found = files(world, secret_of(begun(world)))
    own = {key: base64.b64decode(text) for key, text in given["operator"]["data"].items()}
    assert found == {
        "ca.crt": own["etcd-client-ca.crt"],
        "tls.crt": own["etcd-client.crt"],
        "tls.key": own["etcd-client.key"],
    }


def test_a_url_is_not_dialed_in_place_of_the_members(world: Bench) -> None:
    """The certificate of root is only for the members, and a user chose the URL."""
    add_source(world)
    world.edit(IMPROBABLE, "c", {"status": {"endpoints": []}}, subresource="status")
    world.start()
    world.create(*backup(source={"clusterURL": "http://c.default.svc:2379"}))
    world.run_until(lambda: world.status(BACKUPS, "one").get("phase") == "Failed")
    assert complete(world)["reason"] == "SourceNotReady"
    assert not world.names(JOBS)


def test_a_failed_job_leaves_no_secret(world: Bench) -> None:
    add_source(world)
    job = begun(world)
    Jobs(world).run(job, {"error": "no", "reason": "StoreFull"}, 1)
    world.drain()
    assert complete(world)["reason"] == "StoreFull"
    assert secrets(world) == []


def test_a_verification_needs_no_certificate(world: Bench) -> None:
    add_source(world)
    world.start()
    world.create(*backup(source={"clusterName": "c"}, verify="Restore"))
    world.run_until(lambda: bool(secrets(world)))
    jobs = Jobs(world)
    jobs.until(lambda: world.condition(BACKUPS, "Verified", "one").get("status") == "True")
    (job,) = (each for each in jobs.all() if "-verify-" in each["metadata"]["name"])
    assert "etcd" not in {volume["name"] for volume in job["spec"]["template"]["spec"]["volumes"]}
    assert secrets(world) == []


def test_a_secret_that_somebody_deleted_before_the_pod_started_is_made_again(world: Bench) -> None:
    add_source(world)
    name = secret_of(begun(world))
    world.delete(SECRETS, name)
    world.run_until(lambda: name in secrets(world))


def test_a_name_that_is_taken_is_reported_and_what_is_there_left_alone(world: Bench) -> None:
    add_source(world)
    other = begun(world)
    name = secret_of(other)
    world.delete(SECRETS, name)
    world.create(SECRETS, {"metadata": {"name": name}, "data": {"mine": ""}})
    world.run_until(lambda: complete(world)["reason"] == "NameConflict")
    Jobs(world).run(other, STORED)
    world.drain()
    assert world.status(BACKUPS, "one")["phase"] == "Completed"
    assert world.get(SECRETS, name)["data"] == {"mine": ""}


def test_without_the_cas_it_is_reported(world: Bench) -> None:
    add_source(world, has_cas=False)
    begun(world)
    world.run_until(lambda: "etcd-authorities-" in complete(world)["message"])


@pytest.mark.parametrize("disturbance", DISTURBANCES.values(), ids=DISTURBANCES)
def test_whatever_happens_at_any_write_no_secret_is_left(disturbance: Disturbance) -> None:
    writes = EachWrite()
    for write in writes:
        with tls_source() as made:
            add_source(made)
            writes.goes_on = _survives(made, disturbance, write)
            assert made.status(BACKUPS, "one")["phase"] == "Completed"
            assert secrets(made) == []
            before = made.count_writes()
            made.wait(60.0)
            assert made.count_writes() == before
    assert writes.runs >= 5


def _survives(made: Bench, disturbance: Disturbance, write: int) -> bool:
    jobs, has_come = Jobs(made), disturbance.arrange(made, write)
    made.create(*backup(source={"clusterName": "c"}))

    def is_mounted() -> bool:
        """Pods start when their Secret exists, as those of a kubelet do."""
        return bool(jobs.waiting()) and secret_of(jobs.one()) in secrets(made) and jobs.run_all()

    def completed() -> None:
        made.run_until(lambda: made.status(BACKUPS, "one").get("phase") == "Completed", first=is_mounted)
        made.wait(5.0)

    if not run_or_die(made, completed):
        if disturbance.world_goes_on:
            is_mounted()
        made.start()
        completed()
    return has_come()
