"""One run: faults in the order of the seed until the time is over, while everything is observed."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Sequence
from statistics import fmean

from e2e.support.space import Space
from etcd_operator.errors import OperatorError
from localcluster.console import RefusalError

from .clusters import Subject
from .dispatch import Dispatcher, Due
from .injector import Injector
from .operators import Operators
from .options import Plan
from .schedule import Fault, against_members, against_operator
from .verdict import Tally

TICK = 0.2


class Run:
    """Injects faults into all but the last of `everyone`, until `stop` or until the time is over."""

    def __init__(
        self,
        plan: Plan,
        space: Space,
        everyone: Sequence[Subject],
        operators: Operators,
        injector: Injector,
        log: Callable[[str], None],
    ) -> None:
        self.plan = plan
        self.space = space
        self.everyone = everyone
        self.control = everyone[-1]
        self.operators = operators
        self.stop = threading.Event()
        self.began = time.monotonic()
        self._injector = injector
        self._log = log
        self._dispatcher = Dispatcher(plan, everyone, injector, log)
        self.operator_faults = Tally()
        self._recovered = [0] * len(everyone)
        self._losses = [0] * len(everyone)
        self._loads: list[float] = []
        self._is_impatient = False

    @property
    def injected(self) -> Tally:
        """The faults of members and nodes."""
        return self._dispatcher.injected

    @property
    def seconds(self) -> float:
        """How long it has lasted."""
        return time.monotonic() - self.began

    @property
    def load(self) -> float:
        """The machine's mean load average over the run, which explains slow recoveries."""
        return fmean(self._loads) if self._loads else 0.0

    def inject(self) -> None:
        """The loop; returns when the time is over, it was stopped, or a cluster did not recover in time."""
        plan = self.plan
        members = Due(
            against_members(plan.seed, interval=plan.interval, clusters=plan.clusters, kinds=plan.kinds)
        )
        operator = Due(
            against_operator(plan.seed, every=plan.operator_every, kinds=plan.operator_kinds)
            if plan.operator_every
            else iter(())
        )
        self.began = time.monotonic()
        while self.seconds < plan.seconds and not self.stop.is_set() and not self._is_impatient:
            self.mend(everything=False)
            self._attempt(operator, self._kill_operator)
            self._attempt(members, self._dispatcher.inject)
            self._log_news()
            self._loads.append(os.getloadavg()[0])
            self.stop.wait(TICK)

    def settle(self) -> None:
        """Wait until all clusters are whole again, at most `patience` seconds after the last fault."""
        self._log_news()
        while any(0 < subject.watch.broken_for < self.plan.patience for subject in self.everyone):
            self.mend(everything=True)
            self._log_news()
            time.sleep(TICK)

    def mend(self, *, everything: bool) -> None:
        """Mend what is due, or everything."""
        for what in self._injector.mend(everything=everything):
            self._log(f"mended    {what} no longer")

    def _attempt(self, due: Due, act: Callable[[Fault], bool]) -> None:
        """Act if it is time; what was not done is tried again at the next tick."""
        fault = due.now()
        if fault is None:
            return
        try:
            is_done = act(fault)
        except (OperatorError, RefusalError) as error:
            # A pod that ended by itself, an API server that is away for a moment: the sequence continues.
            self._log(f"failed    {fault.kind} no. {fault.number}: {error}")
            is_done = True
        if is_done:
            due.done()

    def _kill_operator(self, fault: Fault) -> bool:
        name = self.operators.kill(fault.kind, fault.draw)
        if not name:
            return False
        self.operator_faults.add(fault.kind)
        self._log(f"{fault.kind:<9} operator {name}")
        return True

    def _log_news(self) -> None:
        for index, subject in enumerate(self.everyone):
            recoveries, losses = subject.watch.recoveries, subject.quorum.losses
            for seconds in recoveries[self._recovered[index] :]:
                self._log(f"whole     {subject.name} after {seconds:.1f} s")
            self._recovered[index] = len(recoveries)
            for loss in losses[self._losses[index] :]:
                self._log(f"quorum    {subject.name} was without for {loss:.1f} s")
                self._losses[index] += 1
            if subject.watch.broken_for > self.plan.patience and not self._injector.outages:
                self._is_impatient = True
