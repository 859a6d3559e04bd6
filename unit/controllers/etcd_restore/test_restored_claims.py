"""What becomes of the claims of an EtcdRestore afterwards: no pod of it keeps them from being deleted."""

from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from etcd_operator.api.backups import BackupDestination, BackupSource, BackupSpec
from etcd_operator.api.improbable import POD_KEYS
from etcd_operator.api.meta import ObjectMeta
from etcd_operator.controllers.etcd_restore.manifests import restore_job
from etcd_operator.controllers.shared.manifests.pod import RESTORED_DIR
from etcd_operator.decoding import convert
from unit.fakes.apiserver import Json
from unit.fakes.apiserver.kinds import CLAIMS, JOBS, PODS
from unit.fakes.clock import FakeClock
from unit.fakes.etcd.auth import FakeAuth
from unit.fakes.etcd.launcher import Bootstrapped
from unit.passes.bench import bench
from unit.passes.bodies import IMPROBABLE, RESTORES, persistent
from unit.passes.harness import OWN_NAMESPACE
from unit.passes.restoring import PREFIX, SNAPSHOT, TEMPLATE, Restoring, restore
from unit.passes.users import auth

NAMES = ("c-0", "c-1", "c-2")
CLUSTER_ID = f"{PREFIX}/cluster-id"


def fill(made: Restoring, scheme: str = "http") -> FakeAuth:
    """What the Jobs have restored: three members of one etcd cluster, on the annotated claims; its users."""
    bench = made.made
    etcd = bench.etcds._new_cluster()
    etcd.bootstrap({name: f"{scheme}://{name}.c-peer.default.svc:2380" for name in NAMES})
    etcd.cluster_id = int(made.annotations("c-0")[CLUSTER_ID], 16)
    for member, name in zip(etcd.members, NAMES, strict=True):
        member.id, member.name = int(made.annotations(name)[f"{PREFIX}/member-id"], 16), name
    uids = (bench.get(CLAIMS, name)["metadata"]["uid"] for name in NAMES)
    data = {f"{uid}{RESTORED_DIR}": member.id for uid, member in zip(uids, etcd.members, strict=True)}
    token = bench.get(RESTORES, "r")["metadata"]["uid"]
    bench.etcds.by_token[token] = Bootstrapped(etcd, NAMES, data=data)
    return etcd.auth


def uids(made: Restoring) -> set[str]:
    return {claim["metadata"]["uid"] for claim in made.made.api.objects.select(CLAIMS)}


@pytest.fixture
def made() -> Iterator[Restoring]:
    """A cluster that runs on restored claims."""
    with bench() as world:
        world.start()
        found = Restoring(world)
        world.create(*restore())
        found.until(lambda: bool(found.claims) and all(CLUSTER_ID in found.annotations(n) for n in NAMES))
        fill(found)
        found.until_ended()
        world.settle((IMPROBABLE, "c"))
        yield found


@pytest.mark.parametrize("enabled", [True, False])
def test_users_of_a_backup_are_required_as_the_template_asks_for(*, enabled: bool) -> None:
    """The operator is root by its certificate, whatever password root had in the cluster of the backup."""
    with bench(FakeClock(datetime.now(UTC))) as world:
        world.api.add_namespace(OWN_NAMESPACE)
        world.start()
        found = Restoring(world)
        secured: Json = {"tls": {"client": {"auto": {}}}, "auth": {"enabled": enabled}}
        world.create(*restore(template={**TEMPLATE, **secured}))
        found.until(lambda: bool(found.claims) and all(CLUSTER_ID in found.annotations(n) for n in NAMES))
        users = fill(found)
        users.add_user("app", "secret")
        users.require_root("of-old")
        found.until_ended()
        world.settle((IMPROBABLE, "c"))
        world.run_until(lambda: auth(world).is_enabled is enabled)
        assert world.status(IMPROBABLE)["auth"] == {"enabled": enabled}
        assert set(auth(world).users) >= {"app", "root"}
        world.edit(IMPROBABLE, "c", {"spec": {"replicas": 1}})
        world.settle((IMPROBABLE, "c"))
        assert found.claims == ["c-0"]
        world.rest()


def test_a_backup_is_restored_to_members_with_tls() -> None:
    tls: Json = {"peer": {"auto": {}}, "client": {"auto": {}}}
    with bench(FakeClock(datetime.now(UTC))) as world:
        world.api.add_namespace(OWN_NAMESPACE)
        world.start()
        found = Restoring(world)
        world.create(*restore(template={**TEMPLATE, "tls": tls}))
        found.until(lambda: len(found.named("r-0-")) == 1)
        (job,) = found.named("r-0-")
        flags = [word for word in job["spec"]["template"]["spec"]["containers"][0]["args"] if "peer" in word]
        assert all("https://c-0.c-peer.default.svc:2380" in flag for flag in flags), flags
        found.until(lambda: bool(found.claims) and all(CLUSTER_ID in found.annotations(n) for n in NAMES))
        fill(found, "https")
        found.until_ended()
        world.settle((IMPROBABLE, "c"))
        assert world.get(IMPROBABLE, "c")["spec"]["tls"] == tls
        assert {found.annotations(name)[f"{PREFIX}/peer-tls"] for name in NAMES} == {"true"}
        for pod in world.api.objects.select(PODS, labels="etcd.improbable.io/cluster-name=c"):
            env = {each["name"]: each.get("value") for each in pod["spec"]["containers"][0]["env"]}
            assert env["ETCD_PEER_CLIENT_CERT_AUTH"] == "true"
            assert pod["metadata"]["annotations"][POD_KEYS.of("client-cert-auth")] == "true"
        world.rest()


def test_a_completed_restore_has_no_pods(made: Restoring) -> None:
    assert (made.jobs.all(), made.jobs.pods()) == ([], [])
    assert {member["phase"] for member in made.status["members"]} == {"Restored"}


def test_a_restored_cluster_is_scaled_down(made: Restoring) -> None:
    made.made.edit(IMPROBABLE, "c", {"spec": {"replicas": 1}})
    made.made.settle((IMPROBABLE, "c"))
    assert made.claims == ["c-0"]


def test_a_restored_member_that_loses_its_data_is_replaced(made: Restoring) -> None:
    claim = made.made.get(CLAIMS, "c-1")["metadata"]["uid"]
    (pod,) = made.made.api.objects.select(PODS, labels="etcd.improbable.io/peer-name=c-1")
    cluster = made.made.etcd
    cluster.data = {key: value for key, value in cluster.data.items() if not key.startswith(claim)}
    made.made.world.restart("default", pod["metadata"]["name"])
    made.made.run_until(lambda: claim not in uids(made))
    made.made.settle((IMPROBABLE, "c"))


def test_the_name_of_a_restored_cluster_is_free_once_cluster_and_claims_are_deleted(made: Restoring) -> None:
    """As the guide asks for it before another EtcdRestore to the same name."""
    made.made.delete(IMPROBABLE, "c")
    made.made.drain()
    for name in NAMES:
        made.made.delete(CLAIMS, name)
    made.made.drain()
    assert made.claims == []


def test_jobs_that_an_earlier_operator_has_left_are_removed(made: Restoring) -> None:
    """It completed restores without removing them."""
    made.made.kill()
    metadata = convert(made.made.get(RESTORES, "r")["metadata"], ObjectMeta)
    access = BackupSpec(source=BackupSource(), destination=BackupDestination(object_url_template="s3://b/o"))
    job = made.made.create(JOBS, restore_job.check_job(metadata, access, image="operator", url="s3://b/o"))
    made.finish(job, made.start(job), {"snapshot": SNAPSHOT}, 0)
    made.made.start()
    made.made.drain()
    assert (made.jobs.all(), made.jobs.pods(), made.phase) == ([], [], "Completed")


def test_a_cluster_that_somebody_created_at_the_last_moment_has_its_claims_to_itself() -> None:
    with bench() as world:
        world.start()
        made = Restoring(world)
        world.create(*restore())
        made.until(lambda: made.reason == "AnnotatingClaims")
        world.create(*persistent())
        made.until_ended("Failed")
        world.drain()
        assert (made.reason, made.claims) == ("ClusterExists", list(NAMES))
        assert (made.jobs.all(), made.jobs.pods()) == ([], [])
