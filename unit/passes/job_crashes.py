"""One object whose Jobs do its work, disturbed at each write in turn."""

from collections.abc import Callable
from dataclasses import dataclass

from unit.passes.bench import Bench, bench
from unit.passes.disturbance import Disturbance, EachWrite, run_or_die, survives_lag
from unit.passes.jobs import Jobs


@dataclass(frozen=True)
class Errand:
    """What is created, when it is done, and what must be true then; writes: more than so many are made."""

    create: Callable[[Bench], object]
    is_done: Callable[[Bench], bool]
    check: Callable[[Bench], None]
    writes: int

    def disturbed_at_each_write(self, disturbance: Disturbance) -> None:
        """Whatever happens at any write."""
        self._at_each_write(lambda made, write: self._disturbed(made, disturbance, write))

    def on_lagging_caches(self, *, skips: bool) -> None:
        """On caches that lag from each write on; skips: see `survives_lag`."""
        self._at_each_write(lambda made, write: self._lagging(made, write, skips=skips))

    def _at_each_write(self, survives: Callable[[Bench, int], bool]) -> None:
        writes = EachWrite()
        for write in writes:
            with bench() as made:
                writes.goes_on = survives(made, write)
                self.check(made)
        assert writes.runs >= self.writes

    def _disturbed(self, made: Bench, disturbance: Disturbance, write: int) -> bool:
        jobs = Jobs(made)
        has_come = disturbance.arrange(made, write)
        self.create(made)

        def complete() -> None:
            jobs.until(lambda: self.is_done(made))
            made.wait(5.0)

        if not run_or_die(made, complete):
            if disturbance.world_goes_on:
                jobs.run_all()
            made.start()
            complete()
        return has_come()

    def _lagging(self, made: Bench, write: int, *, skips: bool) -> bool:
        jobs = Jobs(made)
        self.create(made)

        def is_done() -> bool:
            jobs.run_all()
            return self.is_done(made)

        goes_on = survives_lag(made, write, is_done, skips=skips)
        jobs.until(lambda: self.is_done(made))
        return goes_on
