"""`etcd-operator restore` with real programs: three members of one new cluster from one backup."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from e2e.support.keys import KeyClient
from etcd_operator.etcd.channel import Channels
from unit.commands.conftest import Ran, Run
from unit.etcd.conftest import programs
from unit.etcd.real import RealEtcdCluster, free_address
from unit.waiting import eventually

NAMES = ("m0", "m1", "m2")
BUMP = 1_000_000_000


@pytest.fixture
def backup(run: Run, real: RealEtcdCluster, channels: Channels, tmp_path: Path) -> Path:
    """Of a member with three revisions."""
    real.bootstrap("old")
    client = KeyClient(channels, real.endpoint("old"))
    eventually(lambda: client.has_quorum(deadline=1.0))
    client.put(b"color", b"red")
    client.put(b"color", b"blue")
    assert run("backup", "--endpoints", client.endpoint, "--to", tmp_path / "one.db").code == 0
    return tmp_path / "one.db"


@pytest.fixture
def restored(request: pytest.FixtureRequest, binaries: Path, tmp_path: Path) -> Iterator[RealEtcdCluster]:
    """The new cluster, of the version that the test asks for."""
    version = getattr(request, "param", None)
    cluster = RealEtcdCluster(programs(version) if version else binaries, tmp_path)
    yield cluster
    cluster.close()


def restore(run: Run, url: Path, data_dir: Path, binaries: Path, *flags: str) -> Ran:
    return run("restore", url, "--data-dir", data_dir, "--etcd-bin", binaries, *flags)


def value_of(client: KeyClient) -> bytes:
    found = client.get(b"color")
    assert found is not None
    return found.value


def start_three(run: Run, url: Path, binaries: Path, restored: RealEtcdCluster, folder: Path) -> None:
    peers = {name: f"http://{free_address()}" for name in NAMES}
    flags = ("--initial-cluster", ",".join(f"{name}={peer}" for name, peer in peers.items()))
    for name in NAMES:
        member = ("--name", name, "--initial-cluster-token", "new", "--json")
        ran = restore(run, url, folder / name, binaries, *flags, *member)
        assert (ran.code, ran.err) == (0, "")
        assert (ran.document["snapshot"]["revision"], ran.document["snapshot"]["check"]) == (3, "manifest")
        restored.start(name, peers[name], peers, state="existing")


def test_three_members_are_one_cluster_with_the_data(
    run: Run, backup: Path, binaries: Path, restored: RealEtcdCluster, channels: Channels, tmp_path: Path
) -> None:
    start_three(run, backup, binaries, restored, tmp_path)
    clients = [KeyClient(channels, endpoint) for endpoint in restored.endpoints]
    eventually(lambda: all(client.has_quorum(deadline=1.0) for client in clients))
    statuses = [client.status() for client in clients]
    assert len({status.cluster_id for status in statuses}) == 1
    assert {status.revision for status in statuses} == {3 + BUMP}
    assert len({client.hash_kv().hash for client in clients}) == 1
    assert value_of(clients[1]) == b"blue"


def test_a_plain_snapshot_with_and_without_its_hash(
    run: Run, backup: Path, binaries: Path, tmp_path: Path
) -> None:
    plain, bare = tmp_path / "plain.db", tmp_path / "bare.db"
    plain.write_bytes(backup.read_bytes())
    bare.write_bytes(backup.read_bytes()[:-32])
    ran = restore(run, plain, tmp_path / "a", binaries)
    assert ran.code == 0, ran.err
    assert (
        "revision 3, 2 keys, it has no manifest, but etcd's hash at its end matches; for etcd 3." in ran.out
    )
    ran = restore(run, bare, tmp_path / "b", binaries)
    assert ran.code == 0, ran.err
    assert "it has neither a manifest nor etcd's hash, so only its structure was checked" in ran.out
    assert (tmp_path / "b" / "member" / "snap" / "db").exists()


@pytest.mark.parametrize("binaries", [pytest.param("3.5.35", marks=pytest.mark.etcd)], indirect=True)
@pytest.mark.parametrize("restored", ["3.6.16"], indirect=True)
def test_the_next_minor_version_starts_on_it(
    run: Run, backup: Path, restored: RealEtcdCluster, channels: Channels, tmp_path: Path
) -> None:
    start_three(run, backup, programs("3.6.16"), restored, tmp_path)
    client = KeyClient(channels, restored.endpoint("m2"))
    eventually(lambda: client.has_quorum(deadline=1.0))
    assert (value_of(client), client.status().version) == (b"blue", "3.6.16")


@pytest.mark.parametrize("binaries", [pytest.param("3.6.16", marks=pytest.mark.etcd)], indirect=True)
def test_an_older_etcdutl_and_a_second_restore_are_refused(
    run: Run, backup: Path, binaries: Path, tmp_path: Path
) -> None:
    ran = restore(run, backup, tmp_path / "new", programs("3.5.35"))
    assert (ran.code, ran.err.count("\n")) == (1, 1)
    assert "is 3.5.35, and the snapshot is of etcd 3.6.16: pass --etcd-bin DIR with etcdutl 3.6" in ran.err
    assert not (tmp_path / "new").exists()
    assert restore(run, backup, tmp_path / "new", binaries).code == 0
    assert restore(run, backup, tmp_path / "new", binaries).code == 1
    skipped = restore(run, backup, tmp_path / "new", binaries, "--skip-existing")
    assert (skipped.code, skipped.out) == (0, f"{tmp_path / 'new'} has data already: nothing was done\n")
