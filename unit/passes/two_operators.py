"""Two operators at once, as after a Lease that was lost unnoticed."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from unit.passes.bench import Bench, bench
from unit.passes.disturbance import AtNthWrite, EachWrite
from unit.passes.harness import Operator
from unit.passes.jobs import Jobs


@contextmanager
def second_operator(made: Bench) -> Iterator[Operator]:
    """Another operator at work on the same API server, beside that of the bench."""
    second = Operator(made.api, made.clock)
    try:
        yield second
    finally:
        second.kill()


def run_all(*operators: Operator) -> None:
    """Passes of all operators until none is due."""
    while sum(operator.run_pass() for operator in operators):
        pass


def let_both_run(
    made: Bench, second: Operator, seconds: int, after_passes: Callable[[], None] = lambda: None
) -> None:
    """Passes of both operators each second, and the Jobs that they create."""
    first = made.operator
    assert first is not None
    for _ in range(seconds):
        first.schedule.advance(1.0)
        second.schedule.advance(0.0)
        run_all(first, second)
        after_passes()
        while Jobs(made).run_all():
            run_all(first, second)


def at_each_write(begin: Callable[[Bench], None], end: Callable[[Bench], None]) -> int:
    """After each write of the first operator the second one does all that it would; how many writes."""
    writes = EachWrite()
    for write in writes:
        with bench() as made:
            made.start()
            with second_operator(made) as second:

                def meanwhile(second: Operator = second) -> None:
                    run_all(second)

                hook = AtNthWrite(write, meanwhile)
                hook.install(made, after=True)
                begin(made)
                end(made)
                writes.goes_on = hook.has_fired
    return writes.runs


def applied(made: Bench, plural: str) -> list[str]:
    """The names of all objects of a kind that were created, whatever the reply was."""
    return [
        str(w.request.body["metadata"]["name"])
        for w in made.writes()
        if (w.request.method, w.request.plural) == ("POST", plural) and w.applied and w.code != 409
    ]
