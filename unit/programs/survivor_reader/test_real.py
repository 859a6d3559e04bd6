"""Real etcd of every minor version that has lost its quorum: what is read is all that it has committed."""

import json
import re
import subprocess
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from e2e.support.keys import KeyClient
from etcd_operator.etcd.channel import Channels
from etcd_operator.etcd.client import EtcdClient
from etcd_operator.pods.reports import SURVIVOR, SurvivorReport
from etcd_operator.programs.survivor_reader.reading import DataReader, NotReadable
from unit.etcd.conftest import programs
from unit.etcd.real import RealEtcdCluster, free_address
from unit.waiting import eventually

pytestmark = pytest.mark.etcd
KEYS = 200


def read_by(reader: DataReader) -> SurvivorReport:
    """What it reads, once it can."""
    reports: list[SurvivorReport] = []

    def is_read() -> bool:
        try:
            reports.append(reader.read()[0])
        except NotReadable:
            return False
        # Nobody waited, so two readings must agree.
        return len(reports) > 1 and reports[-1] == reports[-2]

    eventually(is_read, every=0.5)
    return reports[-1]


class Lost:
    """Three members, of which one is left: it was killed right after a write, and has restarted."""

    def __init__(self, version: str, folder: Path) -> None:
        self.folder, self.binaries = folder, programs(version)
        self.cluster = RealEtcdCluster(self.binaries, folder)
        self.cluster.bootstrap("m0", "m1", "m2")
        self.channels = Channels()
        client = KeyClient(self.channels, self.cluster.endpoint("m0"))
        eventually(lambda: client.has_quorum(deadline=1.0))
        for number in range(KEYS):
            self.revision = client.put(b"key/%04d" % number, b"value")
        self.cluster_id, self.member_id = self._ids(client)
        for name in ("m1", "m2"):
            self.cluster.kill(name)
        self.cluster.kill("m0")
        self.cluster.restart("m0")
        self.waited: list[float] = []
        self.reader = DataReader(data_dir=folder / "m0", page=self.page, wait=self.waited.append)

    def page(self) -> str:
        with urllib.request.urlopen(f"http://{self.cluster.metrics('m0')}/metrics", timeout=5.0) as found:
            return str(found.read(), "utf-8")

    def read(self) -> SurvivorReport:
        return read_by(self.reader)

    def close(self) -> None:
        self.channels.close()
        self.cluster.close()

    @staticmethod
    def _ids(client: KeyClient) -> tuple[str, str]:
        status = client.status()
        return status.cluster_id, status.member_id


@pytest.fixture(params=["3.5.35", "3.6.16", "3.7.3"])
def lost(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Lost]:
    made = Lost(request.param, tmp_path)
    yield made
    made.close()


def test_all_that_was_acknowledged_is_read_and_nothing_is_changed(lost: Lost) -> None:
    report = lost.read()
    before = contents(lost.folder / "m0")
    again = lost.read()

    assert report == again
    assert contents(lost.folder / "m0") == before
    assert (report.cluster_id, report.member_id) == (lost.cluster_id, lost.member_id)
    assert sorted(member.name for member in report.members) == ["m0", "m1", "m2"]
    # The last write may not be known to be committed by a member that does not lead.
    assert lost.revision - 1 <= report.revision <= lost.revision
    assert not any(member.is_learner for member in report.members)
    assert lost.waited, "it would have waited"

    copied = lost.folder / f"{SURVIVOR}.db"
    copied.write_bytes(lost.reader.database.read_bytes())
    status = [str(lost.binaries / "etcdutl"), "snapshot", "status", str(copied), "--write-out=json"]
    found = json.loads(subprocess.run(status, check=True, capture_output=True, timeout=30).stdout)
    assert found["revision"] == report.revision


def contents(folder: Path) -> dict[str, tuple[int, int]]:
    """Size and time of the last change of each file."""
    files = (file for file in folder.rglob("*") if file.is_file())
    return {str(file): (file.stat().st_size, file.stat().st_mtime_ns) for file in files}


def test_a_member_that_has_a_leader_is_not_read(lost: Lost) -> None:
    lost.read()
    lost.cluster.restart("m1")
    client = KeyClient(lost.channels, lost.cluster.endpoint("m0"))
    eventually(lambda: client.has_quorum(deadline=1.0))
    with pytest.raises(NotReadable) as raised:
        lost.reader.read()
    assert raised.value.has_leader


class Learning:
    """One voter and a learner, which has followed it."""

    def __init__(self, version: str, folder: Path) -> None:
        self.cluster, self.channels = RealEtcdCluster(programs(version), folder), Channels()
        self.cluster.bootstrap("m0")
        self.is_led = True
        self.reader = DataReader(data_dir=folder / "m1", page=self.page, wait=self.wait)
        self.url = f"http://{free_address()}"

    def join(self) -> None:
        """Add the learner, and wait until it has all."""
        voter = KeyClient(self.channels, self.cluster.endpoint("m0"))
        eventually(lambda: voter.has_quorum(deadline=1.0))
        EtcdClient(self.channels, self.cluster.endpoint("m0")).member_add((self.url,), learner=True)
        self.cluster.join("m1", self.url)
        eventually(lambda: self.applied() == voter.status().raft_index)

    def page(self) -> str:
        with urllib.request.urlopen(f"http://{self.cluster.metrics('m1')}/metrics", timeout=5.0) as found:
            return str(found.read(), "utf-8")

    def applied(self) -> float:
        try:
            page = self.page()
        except OSError:
            return 0.0  # it does not listen yet
        found = re.search(r"^etcd_server_proposals_applied_total (\S+)$", page, re.MULTILINE)
        return float(found[1]) if found is not None else 0.0

    def wait(self, _seconds: float) -> None:
        """Nobody waits longer than a leader takes that sends heartbeats."""
        before = self.messages()
        if self.is_led:
            eventually(lambda: self.messages() != before)

    def messages(self) -> list[str]:
        """How much was received from whom; the connections themselves are kept open by the member `0`."""
        lines = self.page().splitlines()
        return [line for line in lines if "peer_received_bytes_total{" in line and 'From="0"' not in line]

    def close(self) -> None:
        self.channels.close()
        self.cluster.close()


@pytest.fixture(params=["3.5.35", "3.6.16", "3.7.3"])
def learning(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Learning]:
    made = Learning(request.param, tmp_path)
    try:
        made.join()
        yield made
    finally:
        made.close()


def test_a_learner_is_read_once_its_leader_is_gone(learning: Learning) -> None:
    with pytest.raises(NotReadable) as raised:
        learning.reader.read()
    assert raised.value.has_leader

    learning.cluster.kill("m0")
    learning.is_led = False
    report = read_by(learning.reader)

    assert re.search(r"^etcd_server_has_leader 1$", learning.page(), re.MULTILINE), "it reports it for ever"
    assert {member.name: member.is_learner for member in report.members} == {"m0": False, "m1": True}
