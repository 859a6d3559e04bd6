"""When the monkey strikes, waits or skips, and what it counts: with stand-ins for clusters and deeds."""

from collections.abc import Sequence
from typing import Any

import pytest

from chaosmonkey.options import parser, plan
from chaosmonkey.schedule import Deed, Strike
from chaosmonkey.striking import Due, Striker
from chaosmonkey.victims import Member, Sight
from localcluster.console import RefusalError


class Watch:
    """A watch of a cluster with one member on each of `nodes`."""

    def __init__(self, name: str) -> None:
        self.nodes = ["node-0", "node-1", "node-2"]
        self.is_whole = True
        self.name = name
        self.open = 0
        self.struck = 0

    @property
    def sight(self) -> Sight:
        members = tuple(Member(pod=f"{self.name}-{n}", node=node) for n, node in enumerate(self.nodes))
        return Sight(name=self.name, size=3, members=members, is_whole=self.is_whole)

    def begin_strike(self, victims: int) -> None:
        self.open += 1
        self.struck += victims

    def end_strike(self) -> None:
        self.open -= 1


class Subject:
    def __init__(self, name: str) -> None:
        self.name = name
        self.watch = Watch(name)
        self.was_beyond_quorum = False


class Deeds:
    def __init__(self) -> None:
        self.node_out = ""
        self.done: list[str] = []
        self.error: Exception | None = None

    def member(self, deed: Deed, pod: str, _: Watch) -> None:
        self._do(f"{deed} {pod}")

    def node(self, deed: Deed, node: str, watches: Sequence[Watch]) -> None:
        self._do(f"{deed} {node} of {len(watches)}")

    def _do(self, what: str) -> None:
        if self.error is not None:
            raise self.error
        self.done.append(what)


class Scene:
    """A striker, two subjects and the control."""

    def __init__(self, *arguments: str) -> None:
        self.subjects = [Subject("chaos-1"), Subject("chaos-2"), Subject("control")]
        self.deeds = Deeds()
        self.log: list[str] = []
        everyone: Any = self.subjects
        deeds: Any = self.deeds
        self.striker = Striker(
            plan(parser().parse_args(arguments), nodes=3), everyone, deeds, self.log.append
        )

    def strike(self, deed: Deed, cluster: int = 0, draw: float = 0.4) -> bool:
        return self.striker.strike(Strike(number=1, wait=0.0, deed=deed, cluster=cluster, draw=draw))


def test_a_deletion_is_over_at_once_and_a_frozen_member_until_it_is_mended() -> None:
    scene = Scene()
    assert scene.strike(Deed.DELETE)
    assert scene.strike(Deed.FREEZE, cluster=1)
    assert scene.deeds.done == ["delete chaos-1-1", "freeze chaos-2-1"]
    assert [subject.watch.open for subject in scene.subjects] == [0, 1, 0]
    assert str(scene.striker.struck) == "1 delete, 1 freeze"
    assert scene.log[0] == "delete    chaos-1: chaos-1-1 on node-1"


def test_a_cluster_that_is_not_whole_is_waited_for_and_the_log_has_it_once() -> None:
    scene = Scene()
    scene.subjects[0].watch.is_whole = False
    assert [scene.strike(Deed.KILL), scene.strike(Deed.KILL)] == [False, False]
    assert scene.log == ["waiting   until chaos-1 is whole"]
    scene.subjects[0].watch.is_whole = True
    assert scene.strike(Deed.KILL)
    scene.subjects[0].watch.is_whole = False
    assert not scene.strike(Deed.KILL)
    assert scene.log.count("waiting   until chaos-1 is whole") == 2


def test_a_strike_that_fails_leaves_no_recovery_open() -> None:
    scene = Scene()
    scene.deeds.error = RefusalError("no running container")
    for deed in (Deed.FREEZE, Deed.NODE_STOP):
        with pytest.raises(RefusalError):
            scene.strike(deed)
    assert [subject.watch.open for subject in scene.subjects] == [0, 0, 0]
    assert str(scene.striker.struck) == "none"


def test_a_node_strikes_all_clusters_with_members_there_the_control_included() -> None:
    scene = Scene()
    assert scene.strike(Deed.NODE_CUT)
    assert scene.deeds.done == ["node-cut node-1 of 3"]
    assert [subject.watch.struck for subject in scene.subjects] == [1, 1, 1]
    assert scene.log == ["node-cut  node-1 with 1 of chaos-1, 1 of chaos-2, 1 of control"]
    scene.deeds.node_out = "node-1 cut off"
    assert not scene.strike(Deed.DELETE)
    assert scene.log[-1] == "waiting   until node-1 cut off is over"


def test_a_node_that_no_cluster_can_spare_is_skipped() -> None:
    scene = Scene()
    for subject in scene.subjects:
        subject.watch.nodes = ["node-0"] * 3
    assert scene.strike(Deed.NODE_STOP)
    assert scene.deeds.done == []
    assert scene.log[0].startswith("skipped   node-stop no. 1: each node has more members")


def test_more_than_a_quorum_can_spare_is_remembered() -> None:
    scene = Scene("--beyond-quorum", "--at-once", "2")
    assert scene.strike(Deed.DELETE, draw=0.0)
    assert scene.deeds.done == ["delete chaos-1-0", "delete chaos-1-1"]
    assert [subject.was_beyond_quorum for subject in scene.subjects] == [True, False, False]


def test_a_strike_is_due_after_its_wait_and_the_next_one_when_it_is_done() -> None:
    strikes = [
        Strike(number=n, wait=w, deed=Deed.KILL, cluster=0, draw=0.0) for n, w in ((1, 0.0), (2, 3600.0))
    ]
    due = Due(iter(strikes))
    assert due.now() is strikes[0]
    assert due.now() is strikes[0]
    due.done()
    assert due.now() is None
    assert Due(iter(())).now() is None


def test_the_defaults_of_a_run() -> None:
    local, foreign = plan(parser().parse_args([]), nodes=1), plan(parser().parse_args([]), nodes=0)
    assert (local.seconds, local.interval, local.operator_every, local.patience) == (600.0, 30.0, 60.0, 300.0)
    assert (local.clusters, local.size, local.at_once, local.writes_per_second) == (3, 3, 1, 10)
    assert local.deeds == (Deed.DELETE, Deed.KILL, Deed.FREEZE)
    assert foreign.deeds == foreign.operator_deeds == (Deed.DELETE,)
