"""The checks that all scenarios rest on notice what they are there for."""

import time

import pytest

from e2e.support import steady
from e2e.support.audit import Window
from e2e.support.checks import assert_consistent
from e2e.support.clusters import ephemeral
from e2e.support.intervals import Interval
from e2e.support.leaders import LeaderWatch
from e2e.support.resizing import leaders_pod
from e2e.support.shell import etcdctl_in_member
from e2e.support.space import Space
from e2e.support.steady import SteadyWriter
from e2e.support.waiting import wait_until
from e2e.support.writer import QuorumWatch, Writer
from etcd_operator.kube import resources


def test_the_writer_notices_a_lost_key_and_an_older_value(space: Space) -> None:
    document = space.created(ephemeral(size=1))
    with Writer(lambda: space.addresses(document)) as writer:
        writer.go_on(5)
    writer.verify()
    key = writer.newest_key  # on a busy machine any other put may have been left without an answer
    space.put(document, key.encode(), b"-1")
    with pytest.raises(AssertionError, match=key):
        writer.verify()
    endpoint = f"--endpoints=http://{space.addresses(document)[0]}:2379"
    etcdctl_in_member(space, space.pods(document)[0]["metadata"]["name"], endpoint, "del", key)
    with pytest.raises(AssertionError, match="lost"):
        writer.verify()


def test_the_quorum_watch_and_the_writer_notice_frozen_members(space: Space) -> None:
    space.require_local("members of this cluster are not ours to freeze")
    document = space.created(ephemeral(size=1))
    with (
        QuorumWatch(lambda: space.addresses(document)) as quorum,
        Writer(lambda: space.addresses(document)) as writer,
    ):
        writer.go_on(5)
        with space.frozen(space.pods(document)[0]["metadata"]["name"]):
            space.wait_condition(document, "Degraded", "QuorumLost")
        writer.go_on(1)
        space.wait_settled(document)
    writer.verify()
    longest = max(quorum.losses, default=0.0)
    assert min(writer.longest_gap, longest) > 1, f"{writer.longest_gap:.2f} and {longest:.2f} s"


def test_the_leader_watch_and_the_steady_writer_notice_a_killed_leader(
    space: Space, monkeypatch: pytest.MonkeyPatch
) -> None:
    space.require_local("members of this cluster are not ours to kill")
    monkeypatch.setattr(steady, "PAGE", 20)
    document = space.created(ephemeral())
    with (
        LeaderWatch(lambda: space.addresses(document), voters=3) as leaders,
        SteadyWriter(lambda: space.addresses(document)) as writer,
    ):
        began = time.monotonic()
        wait_until(lambda: writer.acknowledged() >= 50, "50 writes are acknowledged")
        leader = leaders_pod(space, document)
        space.testbed.fault("kill", f"{space.namespace}/{leader}")
        space.wait_serving(document)
        before = writer.acknowledged()
        wait_until(lambda: writer.acknowledged() >= before + 50, "writes go on")
        during = Interval(began, time.monotonic())
    # Followers begin an election one second after the leader's last heartbeat. A watch that was suspended
    # itself may have missed it.
    window = max((each.length for each in leaders.windows(during)), default=0.0)
    gap, silence = writer.longest_gap(during), leaders.longest_silence(during)
    assert max(window, silence) > 0.5, f"without a leader: {window:.2f} s, without an answer: {silence:.2f} s"
    assert gap > 0.5, f"without a write: {gap:.2f} s"
    assert writer.lost() == []

    address = space.addresses(document)[0]
    deleted, changed = writer.keys()[:2]  # on a busy machine any other put may have failed
    etcdctl_in_member(space, leader, f"--endpoints=http://{address}:2379", "del", deleted)
    space.put(document, changed.encode(), b"later")
    assert writer.lost() == sorted([deleted, changed])


def test_the_consistency_check_counts_members_and_the_audit_log_counts_writes(space: Space) -> None:
    window = Window(space.testbed.audit_log, space.operator.user) if space.testbed.is_local else None
    document = space.created(ephemeral(size=1))
    assert_consistent(space, document)
    with pytest.raises(AssertionError, match="of 3 members"):
        assert_consistent(space, ephemeral(size=3))
    if window is not None:
        wait_until(
            lambda: (
                {"create pods", "create services", "patch etcdclusters/status"}
                <= {request.kind for request in window.writes(namespace=space.namespace)}
            ),
            "the operator's writes are in the audit log",
        )
    assert space.names(resources.PODS) == ["example-etcd-cluster-0000"]
