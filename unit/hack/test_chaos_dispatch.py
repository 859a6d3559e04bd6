"""When faults are injected, delayed or skipped, and what is counted; clusters are stand-ins."""

from collections.abc import Sequence
from typing import Any

import pytest

from chaosmonkey.dispatch import Dispatcher, Due
from chaosmonkey.options import parser, plan
from chaosmonkey.schedule import Fault, FaultKind
from chaosmonkey.targets import Member, Sight
from localcluster.console import RefusalError


class Watch:
    """A watch of a cluster with one member on each of `nodes`."""

    def __init__(self, name: str) -> None:
        self.nodes = ["node-0", "node-1", "node-2"]
        self.is_whole = True
        self.name = name
        self.open = 0
        self.faults = 0

    @property
    def sight(self) -> Sight:
        members = tuple(Member(pod=f"{self.name}-{n}", node=node) for n, node in enumerate(self.nodes))
        return Sight(name=self.name, size=3, members=members, is_whole=self.is_whole)

    def begin_fault(self, targets: int) -> None:
        self.open += 1
        self.faults += targets

    def end_fault(self) -> None:
        self.open -= 1


class Subject:
    def __init__(self, name: str) -> None:
        self.name = name
        self.watch = Watch(name)
        self.was_beyond_quorum = False


class Injector:
    def __init__(self) -> None:
        self.node_out = ""
        self.done: list[str] = []
        self.error: Exception | None = None

    def member(self, kind: FaultKind, pod: str, _: Watch) -> None:
        self._do(f"{kind} {pod}")

    def node(self, kind: FaultKind, node: str, watches: Sequence[Watch]) -> None:
        self._do(f"{kind} {node} of {len(watches)}")

    def _do(self, what: str) -> None:
        if self.error is not None:
            raise self.error
        self.done.append(what)


class Scene:
    """A dispatcher, two subjects and the control."""

    def __init__(self, *arguments: str) -> None:
        self.subjects = [Subject("chaos-1"), Subject("chaos-2"), Subject("control")]
        self.injector = Injector()
        self.log: list[str] = []
        everyone: Any = self.subjects
        injector: Any = self.injector
        self.dispatcher = Dispatcher(
            plan(parser().parse_args(arguments), nodes=3), everyone, injector, self.log.append
        )

    def inject(self, kind: FaultKind, cluster: int = 0, draw: float = 0.4) -> bool:
        return self.dispatcher.inject(Fault(number=1, wait=0.0, kind=kind, cluster=cluster, draw=draw))


def test_a_deletion_is_over_at_once_and_a_frozen_member_until_it_is_mended() -> None:
    scene = Scene()
    assert scene.inject(FaultKind.DELETE)
    assert scene.inject(FaultKind.FREEZE, cluster=1)
    assert scene.injector.done == ["delete chaos-1-1", "freeze chaos-2-1"]
    assert [subject.watch.open for subject in scene.subjects] == [0, 1, 0]
    assert str(scene.dispatcher.injected) == "1 delete, 1 freeze"
    assert scene.log[0] == "delete    chaos-1: chaos-1-1 on node-1"


def test_a_cluster_that_is_not_whole_is_waited_for_and_the_log_has_it_once() -> None:
    scene = Scene()
    scene.subjects[0].watch.is_whole = False
    assert [scene.inject(FaultKind.KILL), scene.inject(FaultKind.KILL)] == [False, False]
    assert scene.log == ["waiting   until chaos-1 is whole"]
    scene.subjects[0].watch.is_whole = True
    assert scene.inject(FaultKind.KILL)
    scene.subjects[0].watch.is_whole = False
    assert not scene.inject(FaultKind.KILL)
    assert scene.log.count("waiting   until chaos-1 is whole") == 2


def test_a_fault_that_fails_leaves_no_recovery_open() -> None:
    scene = Scene()
    scene.injector.error = RefusalError("no running container")
    for kind in (FaultKind.FREEZE, FaultKind.NODE_STOP):
        with pytest.raises(RefusalError):
            scene.inject(kind)
    assert [subject.watch.open for subject in scene.subjects] == [0, 0, 0]
    assert str(scene.dispatcher.injected) == "none"


def test_a_fault_of_a_node_affects_all_clusters_with_members_there_the_control_included() -> None:
    scene = Scene()
    assert scene.inject(FaultKind.NODE_CUT)
    assert scene.injector.done == ["node-cut node-1 of 3"]
    assert [subject.watch.faults for subject in scene.subjects] == [1, 1, 1]
    assert scene.log == ["node-cut  node-1 with 1 of chaos-1, 1 of chaos-2, 1 of control"]
    scene.injector.node_out = "node-1 cut off"
    assert not scene.inject(FaultKind.DELETE)
    assert scene.log[-1] == "waiting   until node-1 cut off is over"


def test_a_node_that_no_cluster_can_spare_is_skipped() -> None:
    scene = Scene()
    for subject in scene.subjects:
        subject.watch.nodes = ["node-0"] * 3
    assert scene.inject(FaultKind.NODE_STOP)
    assert scene.injector.done == []
    assert scene.log[0].startswith("skipped   node-stop no. 1: each node has more members")


def test_more_than_a_quorum_can_spare_is_remembered() -> None:
    scene = Scene("--beyond-quorum", "--at-once", "2")
    assert scene.inject(FaultKind.DELETE, draw=0.0)
    assert scene.injector.done == ["delete chaos-1-0", "delete chaos-1-1"]
    assert [subject.was_beyond_quorum for subject in scene.subjects] == [True, False, False]


def test_a_fault_is_due_after_its_wait_and_the_next_one_when_it_is_done() -> None:
    faults = [
        Fault(number=n, wait=w, kind=FaultKind.KILL, cluster=0, draw=0.0) for n, w in ((1, 0.0), (2, 3600.0))
    ]
    due = Due(iter(faults))
    assert due.now() is faults[0]
    assert due.now() is faults[0]
    due.done()
    assert due.now() is None
    assert Due(iter(())).now() is None
