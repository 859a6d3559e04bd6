"""A scripted etcd whose snapshots are small databases, and the commands run in this process."""

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from etcd_operator import cli
from etcd_operator.api.meta import RawObject
from etcd_operator.controllers.shared.decide.job_report import JobReport, read
from etcd_operator.controllers.shared.manifests.command import REPORT_PATH
from unit.archive.samples import snapshot
from unit.fakes.etcd.cluster import FakeEtcdCluster
from unit.storage import moto_s3
from unit.storage.server import Server


@dataclass(frozen=True, slots=True)
class Ran:
    """What a command did: its exit code, and what it printed."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        return json.loads(self.out)


Run = Callable[..., Ran]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    def command(*words: object) -> Ran:
        code = cli.main([str(word) for word in words])
        captured = capsys.readouterr()
        return Ran(code, captured.out, captured.err)

    return command


@pytest.fixture
def etcd() -> Iterator[FakeEtcdCluster]:
    """One member."""
    cluster = FakeEtcdCluster()
    cluster.bootstrap({"m0": "http://m0:2380"})
    cluster.start("m0", peer_url="http://m0:2380")
    cluster.damage = lambda _: snapshot()
    yield cluster
    cluster.close()


@pytest.fixture
def endpoint(etcd: FakeEtcdCluster) -> str:
    return etcd.member("m0").endpoint


@pytest.fixture
def backups(tmp_path: Path) -> Path:
    folder = tmp_path / "backups"
    folder.mkdir()
    return folder


@pytest.fixture
def stored(run: Run, endpoint: str, backups: Path) -> Path:
    """A backup."""
    assert run("backup", "--endpoints", endpoint, "--to", backups / "one.db").code == 0
    return backups / "one.db"


@dataclass(frozen=True, slots=True)
class Held:
    """A snapshot of which only the first chunks come: `reached` is set then, and `resume` lets it go on."""

    reached: threading.Event
    resume: threading.Event


@pytest.fixture
def held(etcd: FakeEtcdCluster) -> Iterator[Held]:
    held = Held(threading.Event(), threading.Event())
    etcd.damage = lambda _: snapshot(100)

    def hold(index: int) -> None:
        if index == 3:
            held.reached.set()
            held.resume.wait(60)

    etcd.on_chunk = hold
    yield held
    held.resume.set()


@dataclass(frozen=True, slots=True)
class Bucket:
    """The service that has it, and the query of its URLs."""

    server: Server
    query: str

    def url(self, name: str = "") -> str:
        return f"s3://bucket/{name}{self.query}"


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Iterator[Bucket]:
    with moto_s3.served(monkeypatch) as server:
        yield Bucket(server, f"?{moto_s3.query(server)}")


def job_ran(
    run: Run, job: RawObject, folder: Path, places: Mapping[str, Path | str]
) -> tuple[Ran, JobReport | None]:
    """Run the container of a Job with folders of this machine; what it reported."""
    (container,) = job["spec"]["template"]["spec"]["containers"]
    report, arguments = folder / "termination-log", container["args"]
    for here, there in {**places, REPORT_PATH: report}.items():
        arguments = [argument.replace(here, str(there)) for argument in arguments]
    return run(*arguments), read(report.read_text())
