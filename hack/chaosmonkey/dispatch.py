"""Injects faults into members and nodes when the schedule and the clusters' health allow it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence

from localcluster.console import RefusalError

from .clusters import Subject
from .injector import Injector
from .options import Plan
from .schedule import Fault
from .targets import Skip, Wait, spare, target_members, target_node
from .verdict import Tally


class Due:
    """The next fault of a sequence and when it is time for it; the wait begins when the last one is done."""

    def __init__(self, faults: Iterator[Fault]) -> None:
        self._faults = faults
        self._next: Fault | None = None
        self._at = 0.0
        self.done()

    def now(self) -> Fault | None:
        """The fault, if it is time."""
        return self._next if self._next is not None and time.monotonic() >= self._at else None

    def done(self) -> None:
        """Go on to the next one."""
        self._next = next(self._faults, None)
        if self._next is not None:
            self._at = time.monotonic() + self._next.wait


class Dispatcher:
    """Injects faults into all but the last of `everyone`, the control; `injected` counts by kind."""

    def __init__(
        self, plan: Plan, everyone: Sequence[Subject], injector: Injector, log: Callable[[str], None]
    ) -> None:
        self.injected = Tally()
        self._plan = plan
        self._everyone = everyone
        self._injector = injector
        self._log = log
        self._waiting = ""

    def inject(self, fault: Fault) -> bool:
        """Inject a fault if a target can get one now; false to try again."""
        if self._injector.node_out:
            return self._wait(f"{self._injector.node_out} is over")
        is_done = self._node(fault) if fault.kind.is_of_node else self._members(fault)
        if is_done:
            self._waiting = ""
        return is_done

    def _members(self, fault: Fault) -> bool:
        subject = self._everyone[:-1][fault.cluster]
        sight = subject.watch.sight
        targets = target_members(
            sight, fault.draw, at_once=self._plan.at_once, beyond_quorum=self._plan.beyond_quorum
        )
        if isinstance(targets, Wait):
            return self._wait(targets.until)
        subject.was_beyond_quorum |= not sight.is_whole or len(targets) > spare(sight.size)
        for target in targets:
            self._member(fault, subject, target.pod)
            self.injected.add(fault.kind)
            self._log(f"{fault.kind:<9} {subject.name}: {target.pod} on {target.node}")
        return True

    def _member(self, fault: Fault, subject: Subject, pod: str) -> None:
        subject.watch.begin_fault(1)
        is_open = False
        try:
            self._injector.member(fault.kind, pod, subject.watch)
            is_open = fault.kind.lasts
        finally:
            if not is_open:
                subject.watch.end_fault()

    def _node(self, fault: Fault) -> bool:
        sights = [subject.watch.sight for subject in self._everyone]
        node = target_node(sights, fault.draw, beyond_quorum=self._plan.beyond_quorum)
        if isinstance(node, Wait):
            return self._wait(node.until)
        if isinstance(node, Skip):
            self._log(f"skipped   {fault.kind} no. {fault.number}: {node.why}")
            return True
        counts = [sight.on(node) for sight in sights]
        hit = [(subject, count) for subject, count in zip(self._everyone, counts, strict=True) if count]
        for subject, count in hit:
            subject.was_beyond_quorum |= count > spare(self._plan.size)
            subject.watch.begin_fault(count)
        try:
            self._injector.node(fault.kind, node, [subject.watch for subject, _ in hit])
        except RefusalError:
            for subject, _ in hit:
                subject.watch.end_fault()
            raise
        self.injected.add(fault.kind)
        members = ", ".join(f"{count} of {subject.name}" for subject, count in hit)
        self._log(f"{fault.kind:<9} {node} with {members}")
        return True

    def _wait(self, until: str) -> bool:
        if until != self._waiting:
            self._log(f"waiting   until {until}")
        self._waiting = until
        return False
