"""The commands against real members: what is stored is what etcd serves after a restore."""

import base64
import json
import subprocess
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import trustme

from e2e.support.keys import KeyClient
from etcd_operator.api.meta import RawObject
from etcd_operator.controllers.shared.decide.backup_spec import CLAIM_FOLDER
from etcd_operator.controllers.shared.decide.job_report import JobReport
from etcd_operator.controllers.shared.manifests.etcd_access import EtcdCredentials, secret
from etcd_operator.etcd.channel import Channels, TlsCredentials
from etcd_operator.etcd.client import EtcdClient
from etcd_operator.etcd.credentials import read_folder
from etcd_operator.pki import profiles
from etcd_operator.pki.authority import KeyPair, issue, new_ca
from etcd_operator.pki.names import names_of
from etcd_operator.pods.contract import ETCD_FOLDER, ETCD_USER_FOLDER
from unit.commands.conftest import Run, job_ran
from unit.controllers.manifests.backups import ENDPOINTS, backup_job_of
from unit.etcd.conftest import programs
from unit.etcd.real import RealEtcdCluster
from unit.waiting import eventually

KEYS = 40


@pytest.fixture
def client(real: RealEtcdCluster, channels: Channels) -> KeyClient:
    """A member with some keys, of which some were written again."""
    real.bootstrap("m0")
    client = KeyClient(channels, real.endpoint("m0"))
    eventually(lambda: client.has_quorum(deadline=1.0))
    for index in range(KEYS):
        client.put(f"key-{index % 30}".encode(), bytes(20_000))
    return client


@pytest.fixture
def key(tmp_path: Path) -> Path:
    (tmp_path / "key").write_bytes(bytes(range(200, 232)))
    return tmp_path / "key"


def status_of(binaries: Path, file: Path) -> dict[str, int]:
    command = [str(binaries / "etcdutl"), "snapshot", "status", str(file), "-w", "json"]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=60)
    status: dict[str, int] = json.loads(done.stdout.splitlines()[-1])
    return status


def test_a_backup_from_the_first_command_to_a_served_restore(
    run: Run, client: KeyClient, binaries: Path, tmp_path: Path, key: Path
) -> None:
    backups = tmp_path / "backups"
    backups.mkdir()
    plain = run("backup", "--endpoints", client.endpoint, "--to", backups / "one.db", "--json")
    assert (plain.code, plain.err) == (0, "")
    manifest = plain.document["manifest"]
    assert manifest["revision"] == client.status().revision == KEYS + 1
    assert manifest["etcdVersion"] == client.status().version
    assert status_of(binaries, backups / "one.db")["revision"] == KEYS + 1

    flags = ("--compress", "--encryption-keys", key)
    framed = run("backup", "--endpoints", client.endpoint, "--to", backups / "two.backup", *flags, "--json")
    assert framed.document["manifest"]["keys"] == manifest["keys"] == KEYS
    assert framed.document["manifest"]["storedSize"] < manifest["size"] / 10

    assert run("verify", backups / "one.db").code == 0
    restored = run(
        "verify", backups / "two.backup", "--encryption-keys", key, "--restore", "--etcd-bin", binaries,
        "--scratch-dir", tmp_path, "--json",
    )  # fmt: skip
    assert (restored.code, restored.err) == (0, "")
    served = restored.document["restore"]
    assert (served["revision"], served["keys"], served["hashKV"]) == (KEYS + 1, KEYS, client.hash_kv().hash)
    assert served["hashKVCompared"] == (not client.status().version.startswith("3.5."))
    assert list(tmp_path.glob("etcd-trial-*")) == []

    fetched = tmp_path / "fetched.db"
    assert run("fetch", backups / "two.backup", fetched, "--encryption-keys", key).code == 0
    assert status_of(binaries, fetched)["revision"] == KEYS + 1


def test_what_was_deleted_and_compacted_can_be_restored(
    run: Run, real: RealEtcdCluster, client: KeyClient, binaries: Path, tmp_path: Path
) -> None:
    """The last entry of the database may be older than its revision."""
    real.ctl("del", "--prefix", "key-", endpoint=client.endpoint)
    real.ctl("compact", "--physical", str(client.status().revision), endpoint=client.endpoint)
    backup = tmp_path / "one.db"
    assert run("backup", "--endpoints", client.endpoint, "--to", backup).code == 0
    flags = ("--restore", "--etcd-bin", binaries, "--scratch-dir", tmp_path, "--json")
    served = run("verify", backup, *flags).document["restore"]
    assert served["revision"] == client.status().revision
    assert served["hashKV"] == client.hash_kv().hash


@pytest.mark.parametrize("binaries", [pytest.param("3.7.3", marks=pytest.mark.etcd)], indirect=True)
def test_an_empty_cluster_can_be_restored(
    run: Run, real: RealEtcdCluster, channels: Channels, binaries: Path, tmp_path: Path
) -> None:
    real.bootstrap("m0")
    client = KeyClient(channels, real.endpoint("m0"))
    eventually(lambda: client.has_quorum(deadline=1.0))
    backup = tmp_path / "one.db"
    document = run("backup", "--endpoints", client.endpoint, "--to", backup, "--json").document
    assert document["manifest"]["keys"] == 0
    flags = ("--restore", "--etcd-bin", binaries, "--scratch-dir", tmp_path)
    assert run("verify", backup, *flags).code == 0


@pytest.mark.etcd
def test_tls_users_and_a_newer_etcd_for_the_restore(run: Run, tmp_path: Path) -> None:
    """What was backed up with authentication is restored with it, and served to root."""
    authority = trustme.CA()
    server = authority.issue_cert("etcd.example", common_name="etcd")
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    trustme.CA().cert_pem.write_to_path(tmp_path / "other-ca.pem")
    server.cert_chain_pems[0].write_to_path(tmp_path / "server.pem")
    server.private_key_pem.write_to_path(tmp_path / "server.key")
    (tmp_path / "password").write_text("secret\n")
    tls = (f"--cert-file={tmp_path / 'server.pem'}", f"--key-file={tmp_path / 'server.key'}")
    cluster = RealEtcdCluster(programs("3.5.35"), tmp_path, tls=tls)
    trusted = TlsCredentials(ca=authority.cert_pem.bytes(), server_name="etcd.example")
    channels = Channels(trusted)
    try:
        cluster.bootstrap("m0")
        endpoint = cluster.endpoint("m0")
        client = KeyClient(channels, endpoint)
        eventually(lambda: client.has_quorum(deadline=1.0))
        client.put(b"a", b"b")
        flags = (
            f"--cacert={tmp_path / 'ca.pem'}",
            "--insecure-transport=false",
            "--insecure-skip-tls-verify",
        )
        for words in (
            ("user", "add", "root:secret"),
            ("user", "grant-role", "root", "root"),
            ("auth", "enable"),
        ):
            cluster.ctl(*flags, *words, endpoint=endpoint)
        to = ("backup", "--endpoints", f"https://{endpoint}", "--to", tmp_path / "one.db")
        name = ("--tls-server-name", "etcd.example")
        assert "is not signed by the given CA" in run(*to, "--cacert", tmp_path / "other-ca.pem", *name).err
        assert "is for another host: pass --tls-server" in run(*to, "--cacert", tmp_path / "ca.pem").err
        plain = run("backup", "--endpoints", endpoint, "--to", tmp_path / "one.db")
        assert "if it uses TLS, pass --cacert" in plain.err
        trusting = (*to, "--cacert", tmp_path / "ca.pem", *name)
        assert "requires a user: pass --user and --password-file" in run(*trusting).err
        ran = run(*trusting, "--user", "root", "--password-file", tmp_path / "password")
        assert (ran.code, ran.err) == (0, "")
        assert job_of_another_etcd(run, tmp_path, endpoint).reason == ""
    finally:
        channels.close()
        cluster.close()
    newer = ("--restore", "--etcd-bin", programs("3.6.16"), "--scratch-dir", tmp_path, "--json")
    served = run("verify", tmp_path / "one.db", *newer)
    assert (served.code, served.err) == (0, "")
    assert served.document["restore"]["revision"] == 2
    assert served.document["restore"]["hashKVCompared"]


def job_of_another_etcd(run: Run, folder: Path, endpoint: str) -> JobReport:
    """What the Job of a backup of somebody else's etcd reports, with the Secrets of a user."""
    secrets = folder / "secrets"
    secrets.mkdir()
    (secrets / "ca.crt").write_bytes((folder / "ca.pem").read_bytes())
    (secrets / "username").write_text("root\n")
    (secrets / "password").write_text("secret\n")
    job = backup_job_of(
        "file:///two.db",
        source={
            "clusterURL": "https://etcd.example:2379",
            "tlsSecret": "tls",
            "auth": {"secretName": "user"},
        },
        persistentVolumeClaim={"claimName": "backups"},
    )
    dialed_on_loopback(job, "etcd.example")
    places: dict[str, Path | str] = {",".join(ENDPOINTS): endpoint, CLAIM_FOLDER: folder}
    _, report = job_ran(run, job, folder, {**places, ETCD_USER_FOLDER: secrets, ETCD_FOLDER: secrets})
    assert report is not None
    return report


@pytest.mark.etcd
def test_the_job_of_a_backup_is_root_by_its_certificate(run: Run, tmp_path: Path) -> None:
    """Of a cluster of ours, with authentication; another user of it may not take snapshots."""
    now, day = datetime.now(UTC), timedelta(days=1)
    ca = new_ca("clients", now=now, duration=day)
    names = names_of(("etcd",), namespace="default", zone="cluster.local")
    server = issue(ca, profiles.server(names), now=now, duration=day)
    files = {"ca": ca.certificate, "crt": server.certificate, "key": server.key}
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    tls = (
        f"--cert-file={tmp_path / 'crt'}",
        f"--key-file={tmp_path / 'key'}",
        f"--trusted-ca-file={tmp_path / 'ca'}",
        "--client-cert-auth",
        "--enable-grpc-gateway=false",
    )
    mounted = {user: mounted_secret(tmp_path / user, ca, user, now) for user in ("root", "app")}
    cluster = RealEtcdCluster(programs("3.6.16"), tmp_path, tls=tls)
    channels = Channels(replace(read_folder(mounted["root"]), server_name="etcd"))
    try:
        cluster.bootstrap("m0")
        endpoint = cluster.endpoint("m0")
        eventually(lambda: EtcdClient(channels, endpoint).has_quorum(deadline=1.0))
        flags = [
            f"--{file}={mounted['root'] / f'tls.{end}'}" for file, end in (("cert", "crt"), ("key", "key"))
        ]
        flags.append("--insecure-skip-tls-verify")
        for words in (
            ("user", "add", "root", "--no-password"),
            ("user", "grant-role", "root", "root"),
            ("user", "add", "app", "--no-password"),
            ("auth", "enable"),
        ):
            cluster.ctl(*flags, *words, endpoint=endpoint)
        reports = {}
        for user, folder in mounted.items():
            job = backup_job_of(
                f"file:///{user}.db", has_secret=True, persistentVolumeClaim={"claimName": "backups"}
            )
            dialed_on_loopback(job, "etcd")
            places: dict[str, Path | str] = {
                ",".join(ENDPOINTS): endpoint,
                CLAIM_FOLDER: tmp_path,
                ETCD_FOLDER: folder,
            }
            _, reports[user] = job_ran(run, job, tmp_path, places)
        root, app = reports["root"], reports["app"]
        assert root is not None
        assert (root.error, root.manifest is not None) == ("", True)
        assert app is not None
        assert app.reason == "AccessRefused"
    finally:
        channels.close()
        cluster.close()


def dialed_on_loopback(job: RawObject, name: str) -> None:
    """Let a Job verify this name of the server, although a test has it dial another address."""
    (container,) = job["spec"]["template"]["spec"]["containers"]
    container["args"].append(f"--tls-server-name={name}")


def mounted_secret(folder: Path, ca: KeyPair, user: str, now: datetime) -> Path:
    """The Secret of a Job, as its pod sees it."""
    pair = issue(ca, profiles.client(user), now=now, duration=timedelta(days=1))
    folder.mkdir()
    for name, text in secret({}, EtcdCredentials(ca=ca.certificate, pair=pair))["data"].items():
        (folder / name).write_bytes(base64.b64decode(text))
    return folder


@pytest.mark.etcd
def test_each_acknowledged_write_is_in_a_backup_from_a_follower(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster, channels = RealEtcdCluster(programs("3.6.16"), tmp_path), Channels()
    try:
        cluster.bootstrap("m0", "m1", "m2")
        clients = {endpoint: KeyClient(channels, endpoint) for endpoint in cluster.endpoints}
        eventually(lambda: all(client.has_quorum(deadline=1.0) for client in clients.values()))
        leader = next(client for client in clients.values() if client.status().is_leader)
        to = ("backup", "--endpoints", ",".join(clients), "--json", "--to")
        for index in range(3):
            written = leader.put(b"key", bytes(200_000))
            document = run(*to, tmp_path / f"{index}.db").document
            assert document["manifest"]["revision"] >= written
            assert document["source"] != leader.endpoint

        cluster.kill("m0")
        eventually(lambda: any(client.has_quorum(deadline=1.0) for client in clients.values()))
        assert run(*to, tmp_path / "two-of-three.db").code == 0
        cluster.kill("m1")
        monkeypatch.setattr("etcd_operator.archive.source.PATIENCE", 1.0)
        assert "no quorum" in run(*to, tmp_path / "one-of-three.db").document["error"]
        alone = run(*to, tmp_path / "one-of-three.db", "--without-quorum")
        assert (alone.code, alone.document["source"]) == (0, cluster.endpoint("m2"))
        assert "the last writes may be missing" in alone.err
    finally:
        channels.close()
        cluster.close()
