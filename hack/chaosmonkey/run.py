"""One run: clusters of its own under writers and watches, strikes until the time is over, a verdict."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from statistics import fmean

from e2e.support.clusters import COREOS, Document, ephemeral, persistent
from e2e.support.space import Space
from e2e.support.writer import QuorumWatch, Writer
from etcd_operator.errors import OperatorError
from localcluster.console import RefusalError

from .deeds import Deeds
from .health import Watch
from .operators import Operators
from .schedule import Deed, Strike, against_members, against_operator
from .verdict import Tally, duration
from .victims import Skip, Wait, members_to_strike, node_to_strike, spare

TICK = 0.2
BYSTANDER = "control"
"""The cluster that no strike is meant for: what its clients notice as well is the machine's doing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What was asked for. Times in seconds; `operator_every` 0 leaves the operator alone."""

    seed: int
    seconds: float
    interval: float
    at_once: int
    deeds: tuple[Deed, ...]
    operator_every: float
    operator_deeds: tuple[Deed, ...]
    clusters: int
    size: int
    writes_per_second: float
    beyond_quorum: bool
    patience: float


@dataclass(slots=True, kw_only=True)
class Subject:
    """One cluster with those who look at it; `uids` are those of its pods at the beginning."""

    watch: Watch
    uids: frozenset[str]
    writer: Writer
    quorum: QuorumWatch
    cluster_id: str
    was_beyond_quorum: bool = False
    losses_told: int = 0

    @property
    def document(self) -> Document:
        """Its resource, as it was created."""
        return self.watch.document

    @property
    def name(self) -> str:
        """Its name."""
        return self.watch.name

    @property
    def is_ephemeral(self) -> bool:
        """Whether its data live with its pods."""
        return bool(self.document["apiVersion"] == COREOS)


def documents(plan: Plan, storage_class: str) -> list[Document]:
    """The clusters, of both kinds in turn (without a storage class the default one), and the bystander."""
    made = []
    for number in range(1, plan.clusters + 1):
        name = f"chaos-{number}"
        document = ephemeral(name, plan.size) if number % 2 else persistent(name, plan.size)
        if not number % 2:
            template = document["spec"]["storage"]["volumeClaimTemplate"]
            template["storageClassName"] = storage_class
            if not storage_class:
                del template["storageClassName"]
        made.append(document)
    return [*made, ephemeral(BYSTANDER, plan.size)]


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


class Run:
    """Strikes all but the last of `everyone` by the plan, until `stop` or until the time is over."""

    def __init__(
        self,
        plan: Plan,
        space: Space,
        everyone: Sequence[Subject],
        operators: Operators,
        deeds: Deeds,
        say: Callable[[str], None],
    ) -> None:
        self.plan = plan
        self.space = space
        self.everyone = everyone
        self.subjects, self.bystander = everyone[:-1], everyone[-1]
        self.operators = operators
        self.deeds = deeds
        self.say = say
        self.stop = threading.Event()
        self.struck = Tally()
        self.operator_struck = Tally()
        self.began = time.monotonic()
        self._held = ""
        self._recovered = [0] * len(everyone)
        self._loads: list[float] = []
        self._is_impatient = False

    @property
    def seconds(self) -> float:
        """How long it has lasted."""
        return time.monotonic() - self.began

    @property
    def load(self) -> float:
        """The mean of the machine's load average over the run: what slow recoveries have to be read with."""
        return fmean(self._loads) if self._loads else 0.0

    def strike(self) -> None:
        """The loop; returns when the time is over, it was stopped, or a cluster did not recover in time."""
        plan = self.plan
        members = Due(
            against_members(plan.seed, interval=plan.interval, clusters=plan.clusters, deeds=plan.deeds)
        )
        operator = Due(
            against_operator(plan.seed, every=plan.operator_every, deeds=plan.operator_deeds)
            if plan.operator_every
            else iter(())
        )
        self.began = time.monotonic()
        while self.seconds < plan.seconds and not self.stop.is_set() and not self._is_impatient:
            self.mend(everything=False)
            self._attempt(operator, self._strike_operator)
            self._attempt(members, self._strike)
            self._tell_news()
            self._loads.append(os.getloadavg()[0])
            self.stop.wait(TICK)

    def settle(self) -> None:
        """Wait until all clusters are whole again, at most `patience` seconds after the last strike."""
        self._tell_news()
        while any(0 < subject.watch.broken_for < self.plan.patience for subject in self.everyone):
            self.mend(everything=True)
            self._tell_news()
            time.sleep(TICK)

    def mend(self, *, everything: bool) -> None:
        """Mend what is due, or everything."""
        for what in self.deeds.mend(everything=everything):
            self.say(f"mended    {what} no longer")

    def _attempt(self, due: Due, act: Callable[[Strike], bool]) -> None:
        """Act if it is time; what was not done is tried again at the next tick."""
        strike = due.now()
        if strike is None:
            return
        try:
            is_done = act(strike)
        except (OperatorError, RefusalError) as error:
            # A pod that went by itself, an API server that is away for a moment: the sequence goes on.
            self.say(f"failed    {strike.deed} no. {strike.number}: {error}")
            is_done = True
        if is_done:
            due.done()

    def _strike_operator(self, strike: Strike) -> bool:
        name = self.operators.kill(strike.deed, strike.draw)
        if not name:
            return False
        self.operator_struck.add(strike.deed)
        self.say(f"{strike.deed:<9} operator {name}")
        return True

    def _strike(self, strike: Strike) -> bool:
        if self.deeds.node_out:
            return self._hold(f"{self.deeds.node_out} is over")
        return self._strike_node(strike) if strike.deed.is_of_node else self._strike_members(strike)

    def _strike_members(self, strike: Strike) -> bool:
        subject = self.subjects[strike.cluster]
        sight = subject.watch.sight
        victims = members_to_strike(
            sight, strike.draw, at_once=self.plan.at_once, beyond_quorum=self.plan.beyond_quorum
        )
        if isinstance(victims, Wait):
            return self._hold(victims.until)
        subject.was_beyond_quorum |= not sight.is_whole or len(victims) > spare(sight.size)
        for victim in victims:
            subject.watch.begin_strike(1)
            is_open = False
            try:
                self.deeds.member(strike.deed, victim.pod, subject.watch)
                is_open = strike.deed.lasts
            finally:
                if not is_open:
                    subject.watch.end_strike()
            self.struck.add(strike.deed)
            self.say(f"{strike.deed:<9} {subject.name}: {victim.pod} on {victim.node}")
        return self._go_on()

    def _strike_node(self, strike: Strike) -> bool:
        sights = [subject.watch.sight for subject in self.everyone]
        node = node_to_strike(sights, strike.draw, beyond_quorum=self.plan.beyond_quorum)
        if isinstance(node, Wait):
            return self._hold(node.until)
        if isinstance(node, Skip):
            self.say(f"skipped   {strike.deed} no. {strike.number}: {node.why}")
            return self._go_on()
        hit = [
            (subject, sight.on(node))
            for subject, sight in zip(self.everyone, sights, strict=True)
            if sight.on(node)
        ]
        for subject, count in hit:
            subject.was_beyond_quorum |= count > spare(self.plan.size)
            subject.watch.begin_strike(count)
        try:
            self.deeds.node(strike.deed, node, [subject.watch for subject, _ in hit])
        except RefusalError:
            for subject, _ in hit:
                subject.watch.end_strike()
            raise
        self.struck.add(strike.deed)
        told = ", ".join(f"{count} of {subject.name}" for subject, count in hit)
        self.say(f"{strike.deed:<9} {node} with {told}")
        return self._go_on()

    def _hold(self, until: str) -> bool:
        if until != self._held:
            self.say(f"waiting   until {until}")
        self._held = until
        return False

    def _go_on(self) -> bool:
        self._held = ""
        return True

    def _tell_news(self) -> None:
        for index, subject in enumerate(self.everyone):
            recoveries = subject.watch.recoveries
            for seconds in recoveries[self._recovered[index] :]:
                self.say(f"whole     {subject.name} after {seconds:.1f} s")
            self._recovered[index] = len(recoveries)
            for loss in subject.quorum.losses[subject.losses_told :]:
                self.say(f"quorum    {subject.name} was without for {loss:.1f} s")
                subject.losses_told += 1
            if subject.watch.broken_for > self.plan.patience and not self.deeds.outages:
                self._is_impatient = True


def open_subjects(
    stack: ExitStack, space: Space, made: Sequence[Document], ids: Sequence[str], per_second: float
) -> list[Subject]:
    """Begin to watch and to write to clusters that serve; `stack` ends it."""
    subjects = []
    for document, cluster_id in zip(made, ids, strict=True):

        def addresses(document: Document = document) -> list[str]:
            return space.addresses(document)

        subjects.append(
            Subject(
                watch=stack.enter_context(Watch(space, document)),
                uids=uids_of(space, document),
                writer=stack.enter_context(Writer(addresses, per_second=per_second, prefix="chaos")),
                quorum=stack.enter_context(QuorumWatch(addresses)),
                cluster_id=cluster_id,
            )
        )
    return subjects


def uids_of(space: Space, document: Document) -> frozenset[str]:
    """Which pods a cluster has."""
    return frozenset(str(pod["metadata"]["uid"]) for pod in space.pods(document))


def longest_gap(subject: Subject, began: float) -> str:
    """`2.1 s at 00:12:07`."""
    begin, length = max(subject.writer.gaps(0.0), key=lambda gap: gap[1], default=(began, 0.0))
    return f"{length:.1f} s at {duration(max(0.0, begin - began))}"
