"""`spec.backup` of clusters with TLS: the certificates of the tool, and who verifies whom."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import pytest

from etcd_operator.pki.description import describe
from etcd_operator.pods.http_client import Trust
from unit.controllers.backup_tool.test_backup_tool import BACKUP, TOOL, ask, health, runs, tool_pods
from unit.controllers.etcd_cluster.test_tls import (
    BOTH,
    authorities,
    files,
    request_rotation,
    rotated,
    secrets,
    set_clock,
    world,
)
from unit.fakes.apiserver import Json
from unit.fakes.apiserver.kinds import CONFIG_MAPS, PODS, SECRETS
from unit.fakes.etcd.launcher import Saved
from unit.passes.bench import Bench
from unit.passes.bodies import COREOS, ephemeral
from unit.passes.disasters import members, store
from unit.passes.disturbance import DISTURBANCES, Disturbance, EachWrite, survives
from unit.passes.quorum_losses import lose
from unit.passes.tools import stored

SECRET = f"{TOOL}-tls"
HOUR: dict[str, Any] = {side: {"auto": {}, "leafDuration": "60m"} for side in BOTH}


def client_ca(made: Bench) -> bytes:
    (cas,) = map(files, authorities(made))
    return cas["client-issuer.crt"] + cas["client-next.crt"]


@contextmanager
def backed_up(size: int = 1, tls: Json = BOTH, ago: timedelta = timedelta(0)) -> Iterator[Bench]:
    with world(ago=ago) as made:
        made.start()
        made.create(*ephemeral(size=size, tls=tls, backup=BACKUP))
        made.run_until(lambda: health(made)[0] == "True")
        made.settle()
        yield made


def test_the_tool_dials_as_root_and_serves_over_tls() -> None:
    with backed_up() as made:
        held = secrets(made)[SECRET]
        assert held.keys() == {"ca.crt", "tls.crt", "tls.key", "server.crt", "server.key"}
        root = describe(held["tls.crt"])
        assert root.common_name == "root"
        assert root.not_after - made.clock.now() <= timedelta(days=1)
        assert {TOOL, f"{TOOL}.default.svc"} <= set(describe(held["server.crt"]).names)
        assert held["ca.crt"] == client_ca(made)
        (pod,) = tool_pods(made)
        (container,) = pod["spec"]["containers"]
        (folder,) = (arg.partition("=")[2] for arg in container["args"] if arg.startswith("--tls-dir="))
        mounts = {mount["mountPath"]: mount["name"] for mount in container["volumeMounts"]}
        volumes = {volume["name"]: volume for volume in pod["spec"]["volumes"]}
        assert volumes[mounts[folder]]["secret"]["secretName"] == SECRET
        assert set(made.tools.trusts) == {Trust(ca=client_ca(made), name=TOOL)}
        made.rest()


def test_a_tool_of_a_cluster_with_tls_for_members_only_has_no_certificates() -> None:
    with backed_up(tls={"peer": {"auto": {}}}) as made:
        assert SECRET not in secrets(made)
        assert set(made.tools.trusts) == {None}


def test_its_certificates_are_renewed_without_a_restart() -> None:
    with backed_up(tls=HOUR, ago=timedelta(minutes=45)) as made:
        before, (pod,) = secrets(made)[SECRET], tool_pods(made)
        assert made.operator is not None
        made.operator.schedule.advance(41 * 60.0)
        made.run_until(lambda: secrets(made)[SECRET] != before)
        after = secrets(made)[SECRET]
        assert {name for name in after if after[name] != before[name]} == after.keys() - {"ca.crt"}
        assert tool_pods(made)[0]["metadata"]["uid"] == pod["metadata"]["uid"]


def test_its_certificates_follow_a_rotation_of_the_cas() -> None:
    with backed_up(tls=HOUR, ago=timedelta(minutes=50)) as made:
        before = secrets(made)[SECRET]
        request_rotation(made, COREOS)
        after, held = rotated(made, COREOS), secrets(made)[SECRET]
        issuer = describe(after["client-issuer.crt"]).key_id
        assert issuer != describe(before["tls.crt"]).issuer_key_id
        assert {describe(held[file]).issuer_key_id for file in ("tls.crt", "server.crt")} == {issuer}
        assert held["ca.crt"] == client_ca(made) != before["ca.crt"]
        assert made.tools.trusts[-1] == Trust(ca=client_ca(made), name=TOOL)


def test_a_secret_that_is_deleted_is_made_again() -> None:
    with backed_up() as made:
        made.delete(SECRETS, SECRET)
        made.run_until(lambda: SECRET in made.names(SECRETS))


def test_what_was_read_while_the_clock_was_ahead_is_not_believed_for_longer() -> None:
    """By the wrong clock, too, the certificates are current."""
    ahead = timedelta(hours=1)
    with backed_up() as made:
        set_clock(made, ahead)
        made.wait(310.0)
        set_clock(made, -ahead)
        made.delete(SECRETS, SECRET)
        made.wait(310.0)
        assert SECRET in made.names(SECRETS)


def test_the_tool_gets_no_certificate_while_the_clock_is_off() -> None:
    with backed_up() as made:
        made.delete(SECRETS, SECRET)
        set_clock(made, timedelta(minutes=10))
        made.wait(310.0)
        assert SECRET not in made.names(SECRETS)
        assert "clock is off" in made.condition(COREOS, "BackupHealthy")["message"]
        set_clock(made, -timedelta(minutes=10))
        made.run_until(lambda: SECRET in made.names(SECRETS))


def test_without_backups_nobody_has_a_certificate_of_root() -> None:
    with backed_up() as made:
        ask(made, None)
        made.run_until(lambda: not tool_pods(made))
        made.settle()
        assert SECRET not in made.names(SECRETS)
        assert TOOL in made.names(SECRETS), "what was stored stays known"
        ask(made, BACKUP)
        made.run_until(lambda: runs(made))
        assert SECRET in made.names(SECRETS)


def test_when_tls_is_removed_the_certificates_go_once_no_pod_mounts_them() -> None:
    with backed_up(tls={"client": {"auto": {}}}) as made:
        made.edit(COREOS, "c", {"spec": {"tls": None}})
        made.run_until(lambda: SECRET not in made.names(SECRETS))
        assert not any(SECRET in str(pod["spec"]["volumes"]) for pod in tool_pods(made))
        made.settle()
        made.run_until(lambda: runs(made))
        made.edit(COREOS, "c", {"spec": {"tls": {"client": {"auto": {}}}}})
        made.run_until(lambda: SECRET in made.names(SECRETS))
        made.settle()
        made.edit(COREOS, "c", {"spec": {"tls": None, "backup": None}})
        made.settle()
        assert SECRET not in made.names(SECRETS)


def test_a_secret_of_somebody_else_is_reported_and_stops_no_repair() -> None:
    with world() as made:
        made.create(SECRETS, {"metadata": {"name": SECRET}, "type": "Opaque", "data": {}})
        made.start()
        made.create(*ephemeral(tls=BOTH, backup=BACKUP))
        made.run_until(lambda: SECRET in made.condition(COREOS, "BackupHealthy").get("message", ""))
        lose(made, 0)
        made.settle()
        assert len(members(made)) == 3
        assert not tool_pods(made)
        made.delete(SECRETS, SECRET)
        made.run_until(lambda: health(made)[0] == "True")


@pytest.mark.parametrize("size", [1, 3])
def test_when_all_members_are_gone_the_seed_gets_the_backup_over_tls(size: int) -> None:
    with backed_up(size) as made:
        made.etcd.put(b"key", b"value")
        revision = made.etcd.etcd.revision
        made.tools.report = stored(revision, cluster_id=made.status(COREOS)["clusterID"])
        made.run_until(lambda: made.status(COREOS)["backup"]["revision"] == revision)
        store(made)
        made.etcds.holds_seeds = "restore"
        lose(made, *range(size))
        made.run_until(lambda: f"c-{size:04}" in members(made))
        fetch = made.get(PODS, f"c-{size:04}")["spec"]["initContainers"][0]
        assert {f"--tool={TOOL}:19999", "--cacert=/etc/etcd-tls/client-ca.crt"} <= set(fetch["args"])
        assert "seed.key" not in secrets(made)[f"c-{size:04}-tls"]
        made.etcds.holds_seeds = ""
        made.settle()
        assert made.status(COREOS)["recovery"]["source"]["tls"] is True
        assert made.etcd.etcd.keys[b"key"][0] == b"value"
        assert len(members(made)) == size
        assert made.tools.trusts[-1] == Trust(ca=client_ca(made), name=TOOL)


def test_a_new_cluster_gets_the_backup_of_another_one_over_tls() -> None:
    """With what that one publishes for its clients."""
    with world() as made:
        made.start()
        made.create(*ephemeral("old", size=1, tls=BOTH, backup=BACKUP))
        made.settle((COREOS, "old"))
        assert "old-ca" in made.names(CONFIG_MAPS)
        made.etcds.save("newest", made.etcd.etcd)
        made.create(*ephemeral(size=1, tls=BOTH, restore={"backupClusterName": "old"}))
        made.run_until(lambda: "c-0000" in made.names(PODS))
        spec = made.get(PODS, "c-0000")["spec"]
        assert "--tool=old-backup-tool:19999" in spec["initContainers"][0]["args"]
        assert "--cacert=/var/run/secrets/etcd-backup/ca/ca.crt" in spec["initContainers"][0]["args"]
        assert {"configMap": {"name": "old-ca", "optional": True}, "name": "ca"} in spec["volumes"]
        made.settle((COREOS, "c"))


def test_a_cluster_that_begins_with_its_own_backups_waits_for_no_certificate() -> None:
    with world() as made:
        made.etcds.backups["newest"] = Saved({b"key": (b"value", 2)}, 5, None)
        made.start()
        made.create(*ephemeral(size=1, tls=BOTH, backup=BACKUP, restore={"backupClusterName": "c"}))
        made.settle()
        assert made.status(COREOS)["recovery"]["source"]["tls"] is True


@pytest.mark.exhaustive
@pytest.mark.parametrize("disturbance", DISTURBANCES.values(), ids=DISTURBANCES)
def test_a_cluster_is_backed_up_whatever_happens_at_any_write(disturbance: Disturbance) -> None:
    writes = EachWrite()
    for write in writes:
        with world() as made:
            made.create(*ephemeral(size=1, tls=BOTH, backup=BACKUP))
            writes.goes_on = survives(made, disturbance, write, lambda: None)
            made.run_until(lambda: health(made)[0] == "True" and SECRET in made.names(SECRETS))
            made.settle()
    assert writes.runs >= 12
