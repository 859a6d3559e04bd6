"""The steps of a seed's pod, run with the tools of every version that can: 3.5.10 and later."""

import subprocess
from pathlib import Path
from typing import Any

import pytest

from e2e.support.keys import KeyClient
from etcd_operator.api.recoveries import Survivor
from etcd_operator.controllers.etcd_cluster.decide.recovery.entry import MOVED_ON
from etcd_operator.controllers.etcd_cluster.decide.starts import Seeding
from etcd_operator.controllers.etcd_cluster.dialects.coreos import no_image
from etcd_operator.controllers.etcd_cluster.manifests import seed
from etcd_operator.controllers.etcd_cluster.manifests import steps as parts
from etcd_operator.etcd.channel import Channels
from unit.controllers.manifests.cases import PLAIN_EPHEMERAL
from unit.etcd.real import RealEtcdCluster, free_address
from unit.waiting import eventually


def steps(annotations: dict[str, str], changes: dict[str, str], binaries: Path) -> list[list[str]]:
    """The commands of the init containers, as the kubelet would run them, with `changes` of paths."""
    start = Seeding(source=Survivor(name="db-0002"), token="uid-1-1")
    pod: dict[str, Any] = seed.pod(PLAIN_EPHEMERAL, "db-0003", start, image=no_image)
    paths = {"/usr/local/bin": str(binaries), **changes}
    found = []
    for container in pod["spec"]["initContainers"]:
        words = list(container["command"])
        for entry in container["env"]:
            path = entry["valueFrom"]["fieldRef"]["fieldPath"]
            note = path.removeprefix("metadata.annotations['").removesuffix("']")
            words = [word.replace(f"$({entry['name']})", annotations[note]) for word in words]
        for old, new in paths.items():
            words = [word.replace(old, new) for word in words]
        found.append(words)
    return found


def ends_well(words: list[str], *, within: float = 30.0) -> bool:
    try:
        return not subprocess.run(words, capture_output=True, timeout=within, check=False).returncode
    except subprocess.TimeoutExpired:
        return False


@pytest.mark.parametrize("keys", [0, 20])
def test_a_seed_takes_all_data_without_quorum_and_once_existing_only_its_steps_do_nothing(
    real: RealEtcdCluster, channels: Channels, binaries: Path, tmp_path: Path, keys: int
) -> None:
    real.bootstrap("m0", "m1", "m2")
    survivor = KeyClient(channels, real.endpoint("m2"))
    eventually(lambda: survivor.has_quorum(deadline=1.0))
    for number in range(keys):
        survivor.put(b"key/%d" % number, b"value")
    revision = survivor.status().revision
    real.kill("m0")
    real.kill("m1")

    (tmp_path / "snapshot").mkdir()
    changes = {
        "/var/etcd-snapshot": str(tmp_path / "snapshot"),
        "/var/etcd/data": str(tmp_path / "data"),
        "http://db-0002:2379": f"http://{real.endpoint('m2')}",
    }
    fetch, restore = steps(parts.RUN_STEPS, changes, binaries)
    assert ends_well(fetch)
    assert ends_well(fetch), "a step that was cut off is run again"
    assert ends_well(restore)

    real.close()
    assert not ends_well(fetch, within=2.0), "it waits for ever for a survivor that is gone"
    assert not ends_well(restore), "the data directory is there"
    assert all(ends_well(words) for words in steps(parts.SKIP_STEPS, changes, binaries))

    address, peer = free_address(), free_address()
    words = [
        str(binaries / "etcd"),
        "--name=db-0003",
        f"--data-dir={tmp_path / 'data'}",
        f"--listen-client-urls=http://{address}",
        f"--advertise-client-urls=http://{address}",
        f"--listen-peer-urls=http://{peer}",
        "--initial-advertise-peer-urls=http://db-0003:2380",
        "--initial-cluster=db-0003=http://db-0003:2380",
        "--initial-cluster-state=existing",
        "--log-level=error",
    ]
    with (tmp_path / "seed.log").open("wb") as log, subprocess.Popen(words, stderr=log) as process:
        try:
            client = KeyClient(channels, address)
            eventually(lambda: client.has_quorum(deadline=1.0))
            assert client.status().revision >= revision + MOVED_ON
            assert all(client.get(b"key/%d" % number) is not None for number in range(keys))
            assert [member.name for member in client.member_list(linearizable=True).members] == ["db-0003"]
        finally:
            process.kill()
