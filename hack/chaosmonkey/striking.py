"""Strikes at members and nodes when the schedule and the clusters' health allow it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence

from localcluster.console import RefusalError

from .clusters import Subject
from .deeds import Deeds
from .options import Plan
from .schedule import Strike
from .verdict import Tally
from .victims import Skip, Wait, members_to_strike, node_to_strike, spare


class Due:
    """The next strike of a sequence and when it is time for it; the wait begins when the last one is done."""

    def __init__(self, strikes: Iterator[Strike]) -> None:
        self._strikes = strikes
        self._next: Strike | None = None
        self._at = 0.0
        self.done()

    def now(self) -> Strike | None:
        """The strike, if it is time."""
        return self._next if self._next is not None and time.monotonic() >= self._at else None

    def done(self) -> None:
        """Go on to the next one."""
        self._next = next(self._strikes, None)
        if self._next is not None:
            self._at = time.monotonic() + self._next.wait


class Striker:
    """Strikes all but the last of `everyone`, the control; `struck` counts by deed."""

    def __init__(
        self, plan: Plan, everyone: Sequence[Subject], deeds: Deeds, log: Callable[[str], None]
    ) -> None:
        self.struck = Tally()
        self._plan = plan
        self._everyone = everyone
        self._deeds = deeds
        self._log = log
        self._waiting = ""

    def strike(self, strike: Strike) -> bool:
        """Strike if a victim can be struck now; false to try again."""
        if self._deeds.node_out:
            return self._wait(f"{self._deeds.node_out} is over")
        is_done = self._node(strike) if strike.deed.is_of_node else self._members(strike)
        if is_done:
            self._waiting = ""
        return is_done

    def _members(self, strike: Strike) -> bool:
        subject = self._everyone[:-1][strike.cluster]
        sight = subject.watch.sight
        victims = members_to_strike(
            sight, strike.draw, at_once=self._plan.at_once, beyond_quorum=self._plan.beyond_quorum
        )
        if isinstance(victims, Wait):
            return self._wait(victims.until)
        subject.was_beyond_quorum |= not sight.is_whole or len(victims) > spare(sight.size)
        for victim in victims:
            self._member(strike, subject, victim.pod)
            self.struck.add(strike.deed)
            self._log(f"{strike.deed:<9} {subject.name}: {victim.pod} on {victim.node}")
        return True

    def _member(self, strike: Strike, subject: Subject, pod: str) -> None:
        subject.watch.begin_strike(1)
        is_open = False
        try:
            self._deeds.member(strike.deed, pod, subject.watch)
            is_open = strike.deed.lasts
        finally:
            if not is_open:
                subject.watch.end_strike()

    def _node(self, strike: Strike) -> bool:
        sights = [subject.watch.sight for subject in self._everyone]
        node = node_to_strike(sights, strike.draw, beyond_quorum=self._plan.beyond_quorum)
        if isinstance(node, Wait):
            return self._wait(node.until)
        if isinstance(node, Skip):
            self._log(f"skipped   {strike.deed} no. {strike.number}: {node.why}")
            return True
        counts = [sight.on(node) for sight in sights]
        hit = [(subject, count) for subject, count in zip(self._everyone, counts, strict=True) if count]
        for subject, count in hit:
            subject.was_beyond_quorum |= count > spare(self._plan.size)
            subject.watch.begin_strike(count)
        try:
            self._deeds.node(strike.deed, node, [subject.watch for subject, _ in hit])
        except RefusalError:
            for subject, _ in hit:
                subject.watch.end_strike()
            raise
        self.struck.add(strike.deed)
        members = ", ".join(f"{count} of {subject.name}" for subject, count in hit)
        self._log(f"{strike.deed:<9} {node} with {members}")
        return True

    def _wait(self, until: str) -> bool:
        if until != self._waiting:
            self._log(f"waiting   until {until}")
        self._waiting = until
        return False
