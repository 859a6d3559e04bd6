"""The harness of the pass tests: a pass begins only when all that happened before it has queued its keys."""

from typing import Any

from etcd_operator.controllers.etcd_cluster.observe.slots import Slot
from etcd_operator.etcd.probe import Probe
from etcd_operator.keys import Key
from unit.passes.bench import Bench, bench, bootstrapped
from unit.passes.bodies import ephemeral
from unit.passes.harness import Operator


def operator_of(made: Bench) -> Operator:
    assert made.operator is not None
    return made.operator


def test_a_change_that_the_handlers_have_not_seen_is_waited_for() -> None:
    with bench() as made:
        made.start()
        operator, seen = operator_of(made), []

        def observe(_old: Any, _new: Any) -> None:
            seen.append(operator._is_caught_up())

        for informer in operator.informers:
            informer._handlers.insert(0, observe)
        made.create(*ephemeral())
        operator.catch_up()
        assert operator.schedule.due
        assert seen == [False]


def test_a_probe_that_has_not_woken_its_cluster_is_waited_for() -> None:
    with bootstrapped(*ephemeral(size=1)) as made:
        operator, seen = operator_of(made), []
        (prober,) = (group.prober for group in operator.cluster_groups if group.prober._slots)
        probe, on_done = prober._probe, prober._on_done

        def probe_outdated(slot: Slot, **limits: float) -> Probe:
            result = probe(slot, **limits)
            prober.invalidate(Key("default", "c"))
            return result

        def done(key: Key) -> None:
            seen.append(operator._is_caught_up())
            on_done(key)

        prober._probe, prober._on_done = probe_outdated, done  # type: ignore[method-assign]
        operator.schedule.advance()
        assert operator.run_pass()
        operator.catch_up()
        assert operator.schedule.due
        assert seen == [False]
