"""Which member a snapshot is read from, and what is reported if there is none."""

import dataclasses
from collections.abc import Iterator
from contextlib import closing

import pytest

from etcd_operator.archive import source
from etcd_operator.archive.errors import NoQuorum, NotReachable, SourceError
from etcd_operator.errors import Unavailable
from etcd_operator.etcd.channel import Channels
from etcd_operator.etcd.errors import PermissionDenied, Timeout
from etcd_operator.etcd.values import Answered, MemberReply, NoAnswer, Refused
from etcd_operator.formats import hex_id
from unit.archive.samples import STATUS
from unit.fakes.etcd.cluster import FakeEtcdCluster

NAMES = ("m0", "m1", "m2")


def answer(member_id: int, **changes: object) -> Answered:
    status = dataclasses.replace(STATUS, member_id=hex_id(member_id), **changes)  # type: ignore[arg-type]
    return Answered(status=status, members=())


@pytest.fixture
def fake() -> Iterator[FakeEtcdCluster]:
    cluster = FakeEtcdCluster()
    cluster.bootstrap({name: f"http://{name}:2380" for name in NAMES})
    for name in NAMES:
        cluster.start(name, peer_url=f"http://{name}:2380")
    yield cluster
    cluster.close()


def endpoints(fake: FakeEtcdCluster) -> list[str]:
    return [member.endpoint for member in fake.members]


@pytest.mark.parametrize(
    ("replies", "order"),
    [
        pytest.param(
            {"a": answer(1), "b": answer(2), "c": answer(3)}, "bca", id="followers before the leader"
        ),
        pytest.param({"a": answer(1), "b": answer(2), "c": answer(3, revision=51)}, "cba", id="newer first"),
        pytest.param(
            {"a": answer(1, raft_applied_index=9000), "b": answer(2)},
            "ab",
            id="a follower that lags far behind",
        ),
        pytest.param({"a": answer(1)}, "a", id="the leader, if it is alone"),
        pytest.param({"a": answer(1), "b": answer(2, is_learner=True)}, "a", id="no learner"),
        pytest.param({"a": answer(1), "b": NoAnswer(reason="down")}, "a", id="none that is silent"),
        pytest.param({"a": answer(1), "b": Refused()}, "a", id="none that refuses"),
        pytest.param(
            {"a": answer(1, errors=("memberID:2 alarm:CORRUPT ",)), "b": answer(2)},
            "a",
            id="none that is corrupt",
        ),
        pytest.param(
            {"a": answer(1, errors=("memberID:2 alarm:NOSPACE ",)), "b": answer(2)},
            "ba",
            id="a full one is fine",
        ),
    ],
)
def test_the_order_of_preference(replies: dict[str, MemberReply], order: str) -> None:
    assert "".join(source.rank(replies)) == order


@pytest.mark.parametrize(
    ("replies", "text"),
    [
        (
            {"a": answer(1), "b": answer(2, cluster_id="c2")},
            r"different clusters: a \(cluster c1\), b \(cluster c2\)",
        ),
        ({"a": answer(1, is_learner=True)}, "a is a learner.*name a voter"),
        (
            {"a": answer(1, errors=("memberID:1 alarm:CORRUPT ",))},
            "the data of a is corrupt: name another member",
        ),
        ({"a": Refused()}, "a requires a user: pass --user and --password-file"),
        (
            {"a": NoAnswer(reason="no answer in time")},
            "no endpoint answers: a: no answer in time: check address",
        ),
        ({"a": NoAnswer(reason="Failed to create security handshaker.")}, "a: --cacert, --cert or --key"),
        ({"a": NoAnswer(reason="Unwrap failed (TSI_DATA_CORRUPTED)")}, "a: .* pass --cert and --key"),
        ({"a": NoAnswer(reason="something\nelse")}, "no endpoint answers: a: something else"),
    ],
)
def test_no_source_is_one_sentence(replies: dict[str, MemberReply], text: str) -> None:
    with pytest.raises(SourceError, match=text):
        source.rank(replies)


def test_a_follower_is_chosen_after_a_read_through_it(fake: FakeEtcdCluster, channels: Channels) -> None:
    chosen = source.choose(channels, endpoints(fake))
    assert chosen.has_quorum
    assert not chosen.status.is_leader


def test_a_follower_that_cannot_confirm_a_read_is_passed_over(
    fake: FakeEtcdCluster, channels: Channels
) -> None:
    followers = [member for member in fake.members if member is not fake.leader]
    fake.freeze(followers[0].name)
    chosen = source.choose(channels, endpoints(fake), patience=3.0)
    assert chosen.endpoint == followers[1].endpoint


def test_without_a_quorum_nothing_is_chosen_unless_wanted(fake: FakeEtcdCluster, channels: Channels) -> None:
    fake.stop("m1")
    fake.stop("m2")
    with pytest.raises(NoQuorum, match=r"no quorum.*add --without-quorum"):
        source.choose(channels, endpoints(fake), patience=2.0)
    chosen = source.choose(channels, endpoints(fake), patience=2.0, without_quorum=True)
    assert (chosen.endpoint, chosen.has_quorum) == (fake.member("m0").endpoint, False)


@pytest.mark.parametrize(("alarm", "is_marked"), [("CORRUPT", True), ("NOSPACE", False)])
def test_what_is_read_under_an_alarm_corrupt_is_marked_whomever_it_names(
    fake: FakeEtcdCluster, channels: Channels, alarm: str, *, is_marked: bool
) -> None:
    """A leader that is corrupt itself names its followers, or nobody (0)."""
    assert not source.choose(channels, endpoints(fake)).has_corrupt_alarm
    for member_id in (0, next(member.id for member in fake.members if member is not fake.leader)):
        fake.alarms = {(member_id, alarm)}
        assert source.choose(channels, endpoints(fake)).has_corrupt_alarm is is_marked


def test_no_login_where_none_is_needed_and_without_an_answer(
    fake: FakeEtcdCluster, channels: Channels
) -> None:
    assert source.log_in(channels, endpoints(fake), "root", "secret") is None
    gone = fake.member("m0").endpoint
    fake.stop("m0")
    # Without a connection: one that ends is reported otherwise.
    with (
        closing(Channels()) as unconnected,
        pytest.raises(NotReachable, match=r"cannot log in as 'root': .*connection refused"),
    ):
        source.log_in(unconnected, [gone], "root", "secret")


def test_a_member_that_ends_in_the_middle_is_one_sentence(fake: FakeEtcdCluster, channels: Channels) -> None:
    with fake.changed:
        fake.put(b"big", bytes(400_000))
    chosen = source.choose(channels, endpoints(fake))
    fake.on_chunk = _fail_after_the_first
    with pytest.raises(SourceError, match=f"{chosen.endpoint}.*"):
        list(source.read(channels, chosen, stall=5.0))


def _fail_after_the_first(index: int) -> None:
    if index:
        raise OSError("the disk of the member is gone")


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (PermissionDenied("denied"), "a:1 refuses this user: a backup requires a user with the role root"),
        (Timeout("no data for 60 s"), "a:1 stopped answering, run the backup again: no data for 60 s"),
        (Unavailable("Socket closed"), "the connection to a:1 broke, run the backup again: it closed"),
    ],
)
def test_a_failed_snapshot_is_one_sentence(error: Exception, text: str) -> None:
    assert str(source.explain("a:1", error)).startswith(text)  # type: ignore[arg-type]
