"""The probe's promises, against the scripted etcd."""

import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import grpc
import pytest

from etcd_operator.errors import Throttled, Unavailable
from etcd_operator.etcd.channel import LARGEST_REPLY, Channels
from etcd_operator.etcd.client import EtcdClient
from etcd_operator.etcd.methods import MOST_MEMBERS
from etcd_operator.etcd.probe import Known, probe
from etcd_operator.etcd.values import Answered, NoAnswer, Refused
from etcd_operator.formats import hex_id
from unit.etcd.support import native_threads, open_files
from unit.fakes.etcd.cluster import FakeEtcdCluster
from unit.fakes.etcd.member import FakeMember
from unit.fakes.etcd.refusals import Refusal
from unit.waiting import eventually

LONG = 60.0
"""Seconds in which all answer, also on a machine that stalls."""

ALL = Known(proof_patience=0.3)

SLACK = 15.0
"""Seconds that such a machine may take longer, less than `LONG`."""


def start(fake: FakeEtcdCluster, size: int) -> list[str]:
    names = [f"m{number}" for number in range(size)]
    fake.bootstrap({name: f"http://{name}:2380" for name in names})
    return [fake.start(name, peer_url=f"http://{name}:2380").endpoint for name in names]


def seconds(action: Callable[[], object]) -> float:
    begin = time.monotonic()
    action()
    return time.monotonic() - begin


def test_a_healthy_cluster_answers_in_full_and_proves_its_quorum(
    fake: FakeEtcdCluster, channels: Channels
) -> None:
    endpoints = start(fake, 3)
    result = probe(channels, endpoints, deadline=LONG, patience=LONG)
    assert result.quorum is True
    for endpoint, name in zip(endpoints, ["m0", "m1", "m2"], strict=True):
        answer = result.replies[endpoint]
        assert isinstance(answer, Answered)
        assert answer.status.member_id == hex_id(fake.member(name).id)
        assert answer.status.cluster_id == hex_id(fake.cluster_id)
        assert answer.members is not None
        assert [member.name for member in answer.members] == ["m0", "m1", "m2"]


def test_silent_members_get_no_more_than_the_patience_once_quorum_is_proven(
    fake: FakeEtcdCluster, channels: Channels
) -> None:
    endpoints = start(fake, 3)
    fake.freeze("m1")
    took = seconds(lambda: probe(channels, endpoints, deadline=LONG, patience=0.3))
    assert 0.3 <= took < 0.3 + SLACK
    result = probe(channels, endpoints, deadline=LONG, patience=3.0)
    assert result.quorum is True
    assert isinstance(result.replies[endpoints[1]], NoAnswer)
    assert isinstance(result.replies[endpoints[2]], Answered)


def test_a_removed_member_is_not_waited_for(fake: FakeEtcdCluster, channels: Channels) -> None:
    endpoints = start(fake, 3)
    fake.freeze("m1")
    known = Known(gone=lambda: frozenset(endpoints[1:2]))
    assert seconds(lambda: probe(channels, endpoints, deadline=LONG, patience=LONG, known=known)) < SLACK
    result = probe(channels, endpoints, deadline=LONG, patience=LONG, known=known)
    assert result.quorum is True
    assert isinstance(result.replies[endpoints[1]], NoAnswer)
    assert isinstance(result.replies[endpoints[2]], Answered)


def test_the_deadline_holds_when_nobody_answers(fake: FakeEtcdCluster, channels: Channels) -> None:
    endpoints = start(fake, 3)
    for name in ("m0", "m1", "m2"):
        fake.freeze(name)
    assert seconds(lambda: probe(channels, endpoints, deadline=0.4)) < 0.4 + SLACK
    result = probe(channels, endpoints, deadline=0.4)
    assert result.quorum is None
    assert all(isinstance(reply, NoAnswer) for reply in result.replies.values())


def test_a_survivor_answers_but_proves_no_quorum(fake: FakeEtcdCluster, channels: Channels) -> None:
    endpoints = start(fake, 3)
    fake.freeze("m1")
    fake.stop("m2")
    assert seconds(lambda: probe(channels, endpoints, deadline=0.5)) < 0.5 + SLACK
    result = probe(channels, endpoints, deadline=3.0)
    assert result.quorum is False
    survivor = result.replies[endpoints[0]]
    assert isinstance(survivor, Answered)
    assert survivor.status.leader == ""
    assert survivor.members is not None


def test_those_that_are_no_majority_by_their_own_lists_are_not_waited_for(
    fake: FakeEtcdCluster, channels: Channels
) -> None:
    """A recovery waits for this, and nobody who was asked can prove a quorum."""
    endpoints = start(fake, 5)
    for name in ("m2", "m3", "m4"):
        fake.stop(name)
    assert seconds(lambda: probe(channels, endpoints[:2], deadline=LONG, patience=LONG, known=ALL)) < SLACK
    result = probe(channels, endpoints[:2], deadline=LONG, patience=LONG, known=ALL)
    assert (result.quorum, result.is_cut_short) == (False, False)


def test_those_whose_majority_is_elsewhere_prove_its_quorum_all_the_same(
    fake: FakeEtcdCluster, channels: Channels
) -> None:
    endpoints = start(fake, 3)
    assert probe(channels, endpoints[2:], deadline=LONG, patience=LONG, known=ALL).quorum is True


def test_members_that_go_meanwhile_are_not_waited_for(fake: FakeEtcdCluster, channels: Channels) -> None:
    """Their connections may hang for seconds, because the addresses of their pods are gone, too."""
    endpoints = start(fake, 3)
    fake.freeze("m1")
    fake.stop("m2")
    gone: list[str] = []
    timer = threading.Timer(0.5, lambda: gone.extend(endpoints[1:]))
    timer.start()
    known = Known(gone=lambda: frozenset(gone), proof_patience=0.3)
    began = time.monotonic()
    result = probe(channels, endpoints, deadline=LONG, patience=LONG, known=known)
    timer.join()
    assert time.monotonic() - began < SLACK
    assert result.quorum is False
    assert not result.is_cut_short, "more time would not change the result"


def test_a_minority_whose_status_comes_late_is_asked_for_the_proof(
    fake: FakeEtcdCluster, channels: Channels
) -> None:
    """A Status waits for the disk, and a serializable member list does not."""
    (endpoint,) = start(fake, 1)
    fake.member("m0").status_takes = 1.0
    assert probe(channels, [endpoint], deadline=LONG, patience=LONG, known=ALL).quorum is True


def test_a_caller_that_does_not_ask_all_waits_for_the_proof(
    fake: FakeEtcdCluster, channels: Channels
) -> None:
    endpoints = start(fake, 3)
    fake.stop("m1")
    fake.stop("m2")
    assert seconds(lambda: probe(channels, endpoints[:1], deadline=1.5, patience=0.1)) >= 1.5


@pytest.mark.parametrize("freezes", [("m2",), ("m1", "m2")], ids=["a voter", "all but one"])
def test_where_somebody_is_silent_the_whole_deadline_is_waited_for(
    fake: FakeEtcdCluster, channels: Channels, freezes: tuple[str, ...]
) -> None:
    """It may be electing a leader, or be the one that a quorum needs."""
    endpoints = start(fake, 3)
    fake.stop("m0")
    for name in freezes:
        fake.freeze(name)
    begin = time.monotonic()
    assert probe(channels, endpoints[1:], deadline=1.5, patience=0.1, known=ALL).is_cut_short
    assert time.monotonic() - begin >= 1.5


@pytest.mark.parametrize("seconds_of_status", [0.0, 0.6])
def test_a_majority_that_has_no_leader_yet_is_given_the_whole_deadline(
    fake: FakeEtcdCluster, channels: Channels, seconds_of_status: float
) -> None:
    """Also where the Status of one of them comes late."""
    other = FakeEtcdCluster()
    try:
        endpoints = [start(fake, 3)[0], start(other, 3)[0]]
        other.member("m0").status_takes = seconds_of_status
        for etcd in (fake, other):
            etcd.stop("m1")
            etcd.stop("m2")
        assert seconds(lambda: probe(channels, endpoints, deadline=1.5, patience=0.1, known=ALL)) >= 1.5
    finally:
        other.close()


def test_a_refused_connection_is_no_answer_and_costs_no_time(
    fake: FakeEtcdCluster, channels: Channels
) -> None:
    endpoints = start(fake, 3)
    fake.stop("m2")
    assert seconds(lambda: probe(channels, endpoints, deadline=LONG, patience=LONG)) < SLACK
    answer = probe(channels, endpoints, deadline=LONG, patience=LONG).replies[endpoints[2]]
    assert isinstance(answer, NoAnswer)
    assert "connect" in answer.reason


def test_a_member_that_returns_is_heard_by_the_next_probe(fake: FakeEtcdCluster, channels: Channels) -> None:
    endpoints = start(fake, 3)
    fake.stop("m2")
    assert isinstance(probe(channels, endpoints).replies[endpoints[2]], NoAnswer)
    fake.start("m2", peer_url="http://m2:2380", address=endpoints[2])
    result = probe(channels, endpoints, deadline=LONG, patience=LONG)
    assert isinstance(result.replies[endpoints[2]], Answered)


def test_a_learner_answers_without_a_list_and_is_not_asked_for_the_proof(
    fake: FakeEtcdCluster, channels: Channels
) -> None:
    start(fake, 1)
    with fake.changed:
        fake.add(fake.member("m0"), ("http://m1:2380",), is_learner=True)
    learner = fake.start("m1", peer_url="http://m1:2380").endpoint
    called: list[str] = []
    result = probe(
        channels, [learner], deadline=LONG, on_call=lambda method, _code, _seconds: called.append(method)
    )
    assert "Range" not in called
    answer = result.replies[learner]
    assert isinstance(answer, Answered)
    assert answer.status.is_learner
    assert answer.members is None
    assert result.quorum is None


def test_a_voter_partitioned_from_the_quorum_does_not_hide_it(
    fake: FakeEtcdCluster, channels: Channels
) -> None:
    endpoints = start(fake, 3)
    lonely = FakeEtcdCluster()
    try:
        # The first endpoint is a voter of three whose peers are gone but who still names a leader.
        lonely_endpoint = start(lonely, 3)[0]
        lonely.stop("m1")
        lonely.stop("m2")
        lonely.leader = lonely.member("m0")
        result = probe(channels, [lonely_endpoint, *endpoints[1:]], deadline=LONG)
        assert result.quorum is True
    finally:
        lonely.close()


def test_a_refusal_for_lack_of_a_user_is_an_answer_and_a_proof(
    fake: FakeEtcdCluster, channels: Channels
) -> None:
    endpoints = start(fake, 1)
    fake.auth.require_root("secret")
    result = probe(channels, endpoints, deadline=LONG, patience=LONG)
    assert isinstance(result.replies[endpoints[0]], Refused)
    assert result.quorum is True
    with_token = probe(channels, endpoints, deadline=LONG, patience=LONG, token="token-of-root")
    assert isinstance(with_token.replies[endpoints[0]], Answered)


def test_each_member_that_requires_a_user_shows_by_the_proof_whether_it_serves(
    fake: FakeEtcdCluster, channels: Channels
) -> None:
    endpoints = start(fake, 3)
    fake.auth.require_root("secret")
    with fake.changed:
        fake.add(fake.member("m0"), ("http://m3:2380",), is_learner=True)
    learner = fake.start("m3", peer_url="http://m3:2380").endpoint
    lonely = FakeEtcdCluster()
    try:
        cut_off = start(lonely, 2)[0]
        lonely.stop("m1")
        lonely.auth.require_root("secret")
        result = probe(channels, [*endpoints, learner, cut_off], deadline=LONG, patience=3.0)
        assert result.quorum is True
        serving = {
            at: isinstance(reply, Refused) and reply.is_serving for at, reply in result.replies.items()
        }
        assert serving == {**dict.fromkeys(endpoints, True), learner: False, cut_off: False}
        assert all(isinstance(reply, Refused) for reply in result.replies.values())
    finally:
        lonely.close()


def test_a_single_member_proves_itself(fake: FakeEtcdCluster, channels: Channels) -> None:
    assert probe(channels, start(fake, 1), deadline=LONG).quorum is True


def test_nobody_to_ask_is_no_quorum_and_no_error(channels: Channels) -> None:
    result = probe(channels, [])
    assert result.quorum is None
    assert result.replies == {}


def test_calls_are_reported_with_their_codes(
    fake: FakeEtcdCluster, channels: Channels, monkeypatch: pytest.MonkeyPatch
) -> None:
    # So long that on a busy machine, too, it asks no second voter for the proof.
    monkeypatch.setattr("etcd_operator.etcd.probe._HEDGE_SECONDS", 60.0)
    endpoints = start(fake, 3)
    fake.freeze("m2")
    seen: list[tuple[str, str]] = []

    def note(method: str, code: str, _seconds: float) -> None:
        seen.append((method, code))

    probe(channels, endpoints, deadline=LONG, patience=2.0, on_call=note)
    assert seen.count(("Status", "OK")) == 2
    assert seen.count(("Range", "OK")) == 1
    assert ("Status", "CANCELLED") in seen
    assert ("MemberList", "CANCELLED") in seen


def test_neither_threads_nor_files_grow_with_repeated_probes(
    fake: FakeEtcdCluster, channels: Channels
) -> None:
    endpoints = start(fake, 3)
    fake.freeze("m2")
    for _ in range(3):
        probe(channels, endpoints, patience=0.05)
    files, threads = open_files(), native_threads()
    for _ in range(20):
        probe(channels, endpoints, patience=0.05)
    # The scripted server lives in this process and lets go of a cut connection a little later.
    eventually(lambda: open_files() <= files + 2, within=30.0)
    eventually(lambda: native_threads() <= threads + 4, within=30.0)


def test_an_unknown_refusal_still_leaves_a_value(
    fake: FakeEtcdCluster, channels: Channels, monkeypatch: pytest.MonkeyPatch
) -> None:
    endpoints = start(fake, 1)
    monkeypatch.setattr(type(fake), "has_quorum", property(_refuse))
    result = probe(channels, endpoints, deadline=3.0)
    assert result.quorum is False
    assert isinstance(result.replies[endpoints[0]], Answered)


def _refuse(_cluster: FakeEtcdCluster) -> bool:
    raise Refusal(grpc.StatusCode.INTERNAL, "etcdserver: something new")


WITHOUT_FILES = """
import os, resource
from etcd_operator.etcd.channel import Channels
from etcd_operator.etcd.errors import NotProbed
from etcd_operator.etcd.probe import Known, probe
from unit.fakes.etcd.cluster import FakeEtcdCluster
from unit.waiting import eventually

fake = FakeEtcdCluster()
fake.bootstrap({"m0": "http://m0:2380"})
endpoints = [fake.start("m0", peer_url="http://m0:2380").endpoint]
connected = Channels()
assert probe(connected, endpoints, deadline=30.0).quorum
resource.setrlimit(resource.RLIMIT_NOFILE, (200, 200))
held = []
try:
    while True:
        held.append(os.open("/dev/null", os.O_RDONLY))
except OSError:
    pass
assert probe(connected, endpoints, deadline=30.0).quorum
try:
    found = probe(Channels(), endpoints)
except NotProbed as error:
    found = f"{endpoints[0]} was not asked" in str(error)
os.write(1, repr(found).encode())
os._exit(0)
"""


def test_a_member_for_which_no_file_is_left_is_not_reported_silent() -> None:
    """Or all members of healthy clusters are reported as lost when the operator has too many connections."""
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_FILES],
        capture_output=True, text=True, check=False, cwd=Path(__file__).parents[2], timeout=60,
    )  # fmt: skip
    assert done.stdout == "True", done.stdout + done.stderr


@pytest.mark.parametrize(
    ("members", "name"),
    [(MOST_MEMBERS + 1, "m"), (2, "m" * 2000), (50, "m" * LARGEST_REPLY)],
    ids=["more members than a cluster has", "a name that no member has", "megabytes"],
)
def test_a_member_list_that_no_etcd_has_counts_as_no_list(
    fake: FakeEtcdCluster, channels: Channels, members: int, name: str
) -> None:
    """The endpoint of an adoption may be any server, and a list is kept as long as the probe."""
    (endpoint,) = start(fake, 1)
    fake.members += [
        FakeMember(id=1000 + number, peer_urls=("http://m:2380",), name=name, is_learner=True)
        for number in range(members)
    ]
    answer = probe(channels, [endpoint], deadline=LONG, patience=LONG).replies[endpoint]
    assert isinstance(answer, Answered)
    assert answer.members is None
    with pytest.raises((Unavailable, Throttled), match=r"members|longer name|larger than max"):
        EtcdClient(channels, endpoint).member_list(linearizable=False)


def test_texts_of_a_status_are_cut_to_what_etcd_reports(fake: FakeEtcdCluster, channels: Channels) -> None:
    (endpoint,) = start(fake, 1)
    fake.member("m0").version = "3" * 10_000
    answer = probe(channels, [endpoint], deadline=LONG, patience=LONG).replies[endpoint]
    assert isinstance(answer, Answered)
    assert len(answer.status.version) < 100
