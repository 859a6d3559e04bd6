"""A report of what is stored, and a backup on its way: one after the other, in each order."""

import threading
from pathlib import Path

import pytest

from etcd_operator.archive.errors import NoQuorum
from etcd_operator.archive.source import Source
from etcd_operator.pods.client import restorable
from etcd_operator.programs.backup_tool.restorable_backups import Storing
from unit.archive.samples import STATUS
from unit.fakes.etcd.cluster import FakeEtcdCluster
from unit.programs.backup_tool.support import at, tool
from unit.waiting import eventually


def source(name: str) -> Source:
    return Source(endpoint=name, status=STATUS, has_quorum=True)


def test_nothing_is_reported_any_longer_once_a_backup_has_failed() -> None:
    storing = Storing()
    with pytest.raises(RuntimeError), storing.of(lambda: source("a")):
        raise RuntimeError("the store is full")
    assert storing.may_report()


def test_a_member_that_was_chosen_before_a_report_is_chosen_again() -> None:
    storing = Storing()
    names = iter("abc")

    def choose() -> Source:
        name = next(names)
        assert name == "c" or storing.may_report()
        return source(name)

    with storing.of(choose) as chosen:
        assert chosen.endpoint == "c"
        assert not storing.may_report()


def test_without_a_quorum_the_second_choice_ends_the_turn() -> None:
    storing = Storing()
    answers = iter((source("a"),))

    def choose() -> Source:
        storing.may_report()
        try:
            return next(answers)
        except StopIteration:
            raise NoQuorum("no quorum") from None

    with pytest.raises(NoQuorum), storing.of(choose):
        pytest.fail("a backup is stored that a recovery does not know")
    assert storing.may_report()


def test_a_tool_that_waits_for_lost_members_reports_at_once(
    etcd: FakeEtcdCluster, endpoint: str, tmp_path: Path
) -> None:
    """Its turn takes many seconds without a quorum."""
    etcd.freeze("m0")
    with tool(tmp_path / "backups", endpoint) as (worker, server):
        eventually(lambda: worker.report().is_backing_up)
        found = restorable(at(server.port), "")
        assert (worker.report().is_backing_up, found.is_listed) == (True, True)
        etcd.thaw("m0")


def test_one_that_stores_a_backup_does_not(etcd: FakeEtcdCluster, endpoint: str, tmp_path: Path) -> None:
    begun, go_on = threading.Event(), threading.Event()

    def hold(_: int) -> None:
        begun.set()
        assert go_on.wait(20)

    etcd.on_chunk = hold
    with tool(tmp_path / "backups", endpoint) as (worker, server):
        assert begun.wait(20)
        assert not restorable(at(server.port), "").is_listed
        go_on.set()
        eventually(lambda: worker.report().count == 1)
        eventually(lambda: restorable(at(server.port), "").is_listed)
