"""When the data of an etcd without a leader counts, and how it is served."""

import contextlib
import hashlib
import http.client
import socket
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from etcd_operator.archive.keys import KeyRing
from etcd_operator.clock import Clock
from etcd_operator.pods import client
from etcd_operator.pods.client import NoReport, TokenRefused
from etcd_operator.pods.http_client import Server as HttpServer
from etcd_operator.pods.http_client import Trust
from etcd_operator.pods.reports import FOLLOWED_A_LEADER, SURVIVOR, ListedVoter, SurvivorReport
from etcd_operator.programs.backup_tool.seed import FromTool, SeedError
from etcd_operator.programs.survivor_reader import process
from etcd_operator.programs.survivor_reader.process import Keeper, Server, serve
from etcd_operator.programs.survivor_reader.reading import HEARTBEAT, QUIET, DataReader, NotReadable
from unit.pods.test_tls import ca_named, write
from unit.programs.survivor_reader.files import data_dir, database
from unit.waiting import eventually


def page(*, leader: int = 0, applied: int = 9) -> str:
    return f"x 1\netcd_server_has_leader {leader}\netcd_server_proposals_applied_total {applied}\n"


def learner_page(*, leader: int = 1, heard: int = 370, kept_alive: int = 120) -> str:
    """Of a learner that has received so many bytes from m1, and to keep connections open."""
    received = "etcd_network_peer_received_bytes_total"
    counters = f'{received}{{From="0"}} {kept_alive}\n{received}{{From="7abe61bac85c3216"}} {heard}\n'
    return f"{page(leader=leader)}etcd_server_is_learner 1\n{counters}"


def never(_seconds: float) -> None:
    """Nobody waits."""


def reader(folder: Path, text: str = page(), wait: Callable[[float], None] = never) -> DataReader:
    return DataReader(data_dir=data_dir(folder), page=lambda: text, wait=wait)


def test_a_database_that_has_all_of_the_log_is_read(tmp_path: Path) -> None:
    report, _ = reader(tmp_path).read()
    plain = database()
    assert report == SurvivorReport(
        cluster_id="c0de",
        member_id="a1",
        committed=9,
        revision=4,
        sha256=hashlib.sha256(plain + hashlib.sha256(plain).digest()).hexdigest(),
        members=(
            ListedVoter(id="a1", name="a", peer_urls=("http://a:2380",)),
            ListedVoter(id="b2", peer_urls=("http://b:2380",), is_learner=True),
        ),
    )


@pytest.mark.parametrize(
    ("text", "words", "is_passing"),
    [
        (page(applied=8), "still applies its log: 8 of 9", True),
        (page(leader=1), "follows a leader", False),
        ("", "does not report", False),
    ],
)
def test_it_does_not_count_before_all_is_applied(
    tmp_path: Path, text: str, words: str, is_passing: bool
) -> None:
    with pytest.raises(NotReadable, match=words) as raised:
        reader(tmp_path, text).read()
    assert (raised.value.is_passing, raised.value.has_leader) == (is_passing, "leader" in words)


def paged(folder: Path, *pages: str) -> tuple[DataReader, list[float]]:
    """A reader that finds these pages one after the other, the last one for ever; and what it has waited."""
    left, waited = list(pages), list[float]()

    def next_page() -> str:
        return left.pop(0) if len(left) > 1 else left[0]

    return DataReader(data_dir=data_dir(folder), page=next_page, wait=waited.append), waited


def test_a_learner_follows_a_leader_only_if_it_hears_from_it(tmp_path: Path) -> None:
    made, waited = paged(tmp_path, learner_page(heard=370), learner_page(heard=407))
    with pytest.raises(NotReadable, match="follows a leader") as raised:
        made.read()
    assert (raised.value.has_leader, waited) == (True, [HEARTBEAT])


@pytest.mark.parametrize(
    ("pages", "expected"),
    [
        ((learner_page(kept_alive=120), learner_page(kept_alive=160)), [HEARTBEAT, QUIET]),
        ((learner_page(leader=0),), [QUIET]),
    ],
    ids=["its last leader is gone", "it has none"],
)
def test_a_learner_that_hears_nothing_is_read(
    tmp_path: Path, pages: tuple[str, ...], expected: list[float]
) -> None:
    made, waited = paged(tmp_path, *pages)
    assert made.read()[0].revision == 4
    assert waited == expected


def test_a_learner_that_hears_from_a_leader_again_is_read_anew(tmp_path: Path) -> None:
    quiet = learner_page()
    made, _ = paged(tmp_path, quiet, quiet, quiet, quiet, learner_page(heard=407))
    _, signature = made.read()
    with pytest.raises(NotReadable, match="heard from another member") as raised:
        made.check(signature)
    assert (raised.value.is_passing, raised.value.has_leader) == (True, False)


def test_an_etcd_that_does_not_run_has_nothing_to_be_read(tmp_path: Path) -> None:
    def refused() -> str:
        raise ConnectionRefusedError("refused")

    with pytest.raises(NotReadable, match="does not run"):
        DataReader(data_dir=data_dir(tmp_path), page=refused, wait=never).read()


@pytest.mark.parametrize("name", ["snap/db", "wal/1-9.wal"])
def test_a_file_that_changes_meanwhile_is_read_again(tmp_path: Path, name: str) -> None:
    def change(_seconds: float) -> None:
        file = tmp_path / "member" / name
        file.write_bytes(file.read_bytes() + bytes(512))

    with pytest.raises(NotReadable, match="changed") as raised:
        reader(tmp_path, wait=change).read()
    assert raised.value.is_passing


def test_damage_and_missing_files_are_reported(tmp_path: Path) -> None:
    made = reader(tmp_path)
    made.database.write_bytes(bytes(8192))
    with pytest.raises(NotReadable, match="not a database"):
        made.read()
    made.database.unlink()
    with pytest.raises(NotReadable, match="cannot be read"):
        made.read()


@pytest.mark.parametrize(("auth", "is_read"), [(b"\x00", True), (b"\x01", False)])
def test_data_that_requires_a_user_is_left_to_a_person(tmp_path: Path, auth: bytes, is_read: bool) -> None:
    made = reader(tmp_path)
    made.database.write_bytes(database(auth=auth))
    if is_read:
        assert made.read()[0].revision == 4
        return
    with pytest.raises(NotReadable, match="authentication is enabled"):
        made.read()


class Served:
    """A keeper at work, and its address."""

    def __init__(self, folder: Path, tls: Path | None = None) -> None:
        self.text = page()
        self.reader = DataReader(data_dir=data_dir(folder), page=lambda: self.text, wait=never)
        self.keeper = Keeper(self.reader)
        self.now = 0.0
        self.server = Server(self.keeper, "secret", port=0, clock=lambda: self.now, tls=tls)
        self.at = HttpServer(address=("127.0.0.1", self.server.port), token="secret")

    def report(self) -> SurvivorReport:
        return client.survivor(self.at)

    def fetch(self, sha256: str, file: Path) -> None:
        def give_up(_seconds: float) -> None:
            raise NoReport("it would be asked again")

        tool = FromTool(server=self.at, keys=KeyRing(), clock=Clock(), wait=give_up)
        tool.fetch(file, etcd_version="3.6.16", name=SURVIVOR, sha256=sha256)


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    with serving(Served(tmp_path / "data")) as made:
        yield made


@contextlib.contextmanager
def serving(made: Served) -> Iterator[Served]:
    made.keeper.start()
    made.server.start()
    try:
        yield made
    finally:
        made.keeper.ended.set()
        made.server.stop()


def test_it_is_served_with_the_hash_that_was_reported(served: Served, tmp_path: Path) -> None:
    eventually(lambda: not served.report().problem)
    file = tmp_path / "snapshot.db"
    served.fetch(served.report().sha256, file)
    content = file.read_bytes()
    assert content[:-32] == database()
    assert hashlib.sha256(content[:-32]).digest() == content[-32:]


def test_over_tls_it_is_served_to_who_trusts_its_member(tmp_path: Path) -> None:
    ca = ca_named("clients")
    write(tmp_path, ca, name="c-0002")
    with serving(Served(tmp_path / "data", tls=tmp_path)) as made:
        plain, file = made.at, tmp_path / "snapshot.db"
        with pytest.raises(NoReport):
            made.report()
        made.at = replace(plain, trust=Trust(ca=ca.certificate, name="c-0001"))
        with pytest.raises(NoReport):
            made.report()
        made.at = replace(plain, trust=Trust(ca=ca.certificate, name="c-0002"))
        eventually(lambda: not made.report().problem)
        made.fetch(made.report().sha256, file)
        assert file.read_bytes()[:-32] == database()


def test_what_changed_after_it_was_read_is_read_again(served: Served, tmp_path: Path) -> None:
    eventually(lambda: not served.report().problem)
    before = served.report().sha256
    served.reader.database.write_bytes(database("page"))
    with pytest.raises(NoReport):
        served.fetch(before, tmp_path / "snapshot.db")
    eventually(lambda: served.report().sha256 not in ("", before))
    with pytest.raises(SeedError, match="not the one that was verified"):
        served.fetch(before, tmp_path / "snapshot.db")


def test_it_is_served_to_nobody_without_the_token(served: Served) -> None:
    with pytest.raises(TokenRefused):
        client.survivor(replace(served.at, token="other"))
    for path, status in (("/v1/survivor", 401), ("/v1/backup?name=survivor", 401)):
        assert ask(served, path, {}) == status
    assert ask(served, "/v1/backup?name=other", {"Authorization": "Bearer secret"}) == 404


def ask(served: Served, path: str, headers: dict[str, str]) -> int:
    connection = http.client.HTTPConnection(*served.at.address, timeout=10.0)
    connection.request("GET", path, headers=headers)
    try:
        return connection.getresponse().status
    finally:
        connection.close()


def test_it_ends_when_the_member_follows_a_leader(served: Served) -> None:
    eventually(lambda: not served.report().problem)
    served.text = page(leader=1)
    assert served.keeper.ended.wait(30.0)
    report = served.report()
    assert (report.has_leader, "follows a leader" in report.problem) == (True, True)


@pytest.mark.parametrize(
    ("text", "idle", "code"),
    [(page(leader=1), process.IDLE, FOLLOWED_A_LEADER), (page(), 0.0, 0)],
    ids=["its member follows a leader", "nobody has asked"],
)
def test_its_exit_code_shows_whether_it_was_needed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, idle: float, code: int
) -> None:
    monkeypatch.setattr(process, "set_on_signal", lambda _ended: None)
    monkeypatch.setattr(process, "IDLE", idle)
    assert serve(reader(tmp_path, text), "secret", port=0) == code


def test_it_knows_for_how_long_nobody_has_asked(served: Served) -> None:
    served.now = 100.0
    assert served.server.idle == 100.0
    ask(served, "/v1/survivor", {})
    assert served.server.idle == 100.0, "an unauthorized request does not count"
    served.report()
    assert served.server.idle == 0.0


def test_silent_clients_occupy_few_threads_and_keep_nobody_away(served: Served) -> None:
    before = threading.active_count()
    with contextlib.ExitStack() as stack:
        for _ in range(3 * Server.most_clients):
            stack.enter_context(socket.create_connection(served.at.address))
        served.report()
        assert threading.active_count() <= before + Server.most_clients + 1
