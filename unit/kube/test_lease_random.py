"""Electors under random faults, pauses and clocks: there are never two leaders."""

from datetime import timedelta

import pytest
import urllib3
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from etcd_operator.kube.lease import Elector
from unit.fakes.apiserver import Answer, ApiServer, Cut, Fault, Hook, Request, no_fault
from unit.kube.electors import Bench, SkewedClock

Step = tuple[str, str, float]
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["first", "second"]),
        st.sampled_from(
            ["ok", "ok", "refused", "unsent", "lost", "slow before", "slow after", "interleaved"]
        ),
        st.sampled_from([0.0, 0.5, 2.0, 4.9, 9.9, 15.1]),
    ),
    min_size=1,
    max_size=25,
)


@pytest.mark.exhaustive
@given(steps=STEPS, skews=st.lists(st.integers(-86400, 86400), min_size=2, max_size=2))
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_there_are_never_two_leaders(steps: list[Step], skews: list[int]) -> None:
    with ApiServer() as api, urllib3.PoolManager(maxsize=8) as pool:
        bench = Bench(api, pool)
        clocks = [SkewedClock(bench.clock) for _ in skews]
        for clock, skew in zip(clocks, skews, strict=True):
            clock.skew = timedelta(seconds=skew)
        electors = dict(
            zip(
                ("first", "second"),
                (bench.elector(n, c) for n, c in zip("ab", clocks, strict=True)),
                strict=True,
            )
        )
        for who, fault, seconds in steps:
            _one_attempt(bench, electors, who, fault, seconds)
            _check(electors)
        _ends_with_a_leader(bench, electors)


def _one_attempt(bench: Bench, electors: dict[str, Elector], who: str, fault: str, seconds: float) -> None:
    other = electors["second" if who == "first" else "first"]

    def pass_time(_request: Request) -> Fault | None:
        bench.clock.advance(seconds)
        _check(electors)
        return None

    def interleave(request: Request) -> Fault | None:
        bench.api.before = no_fault
        pass_time(request)
        other._attempt()
        return pass_time(request)

    def lose_reply(request: Request) -> Fault | None:
        return Cut() if request.is_write else None

    before: dict[str, Hook] = {
        "refused": lambda _: Answer(code=503),
        "unsent": lambda _: Cut(),
        "slow before": pass_time,
        "interleaved": interleave,
    }
    after: dict[str, Hook] = {"lost": lose_reply, "slow after": pass_time}
    bench.api.before, bench.api.after = before.get(fault, no_fault), after.get(fault, no_fault)
    electors[who]._attempt()
    bench.api.before = bench.api.after = no_fault
    bench.clock.advance(seconds)


def _check(electors: dict[str, Elector]) -> None:
    assert sum(elector.is_leader() for elector in electors.values()) <= 1


def _ends_with_a_leader(bench: Bench, electors: dict[str, Elector]) -> None:
    """Once faults stop, someone leads within one lease and a retry."""
    for _ in range(10):
        bench.clock.advance(2.0)
        for elector in electors.values():
            elector._attempt()
            _check(electors)
    assert any(elector.is_leader() for elector in electors.values())
