"""For how long clusters had no leader in upgrades: only what passes have observed counts."""

from dataclasses import replace

from etcd_operator.api.persisted import Upgrade
from etcd_operator.controllers.etcd_cluster.decide.state import ClusterState
from etcd_operator.controllers.etcd_cluster.upgrade_watch import LONGEST_GAP, UpgradeWatch
from etcd_operator.keys import Key
from unit.controllers.etcd_cluster.decide.builders import bootstrapped, ephemeral
from unit.fakes.clock import FakeClock
from unit.passes import bench
from unit.passes.bodies import COREOS
from unit.passes.upgrades import of, set_version

KEY = Key("ns", "db")
SERVING = bootstrapped(ephemeral())
UNDER_WAY = replace(SERVING.persisted, upgrade=Upgrade(origin="3.5.34", target="3.5.35"))
LEADERLESS = replace(SERVING, has_quorum=False, desired=replace(SERVING.desired, persisted=UNDER_WAY))


class Watching:
    """A watch, and what it has counted."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.counted: list[float] = []
        self.watch = UpgradeWatch(
            clock=self.clock, on_finished=lambda _: None, on_leaderless=self.counted.append
        )

    def observe(self, state: ClusterState, after: float = 0.0) -> None:
        self.clock.advance(after)
        self.watch.observed(KEY, state)


def test_the_time_between_two_passes_counts_until_there_is_a_leader() -> None:
    made = Watching()
    for state, after in [(LEADERLESS, 0.0), (LEADERLESS, 2.0), (SERVING, LONGEST_GAP), (SERVING, 5.0)]:
        made.observe(state, after)
    assert made.counted == [2.0, LONGEST_GAP]


def test_a_time_that_no_pass_has_observed_does_not_count() -> None:
    made = Watching()
    made.observe(LEADERLESS)
    made.observe(LEADERLESS, 7200.0)
    made.observe(SERVING, 3.0)
    assert made.counted == [3.0]


def test_the_time_between_two_clusters_of_one_name_does_not_count() -> None:
    kind, body = of(COREOS, "3.5.34")
    with bench.bootstrapped(kind, body) as made:
        assert made.operator is not None
        set_version(made, kind, "3.5.35")
        made.run_until(lambda: made.status(kind).get("upgrade") is not None)
        for name in made.etcd.running[:2]:
            made.etcd.etcd.freeze(name)
        made.run_until(lambda: made.condition(kind, "Available")["status"] == "False")
        made.delete(kind, "c")
        made.wait(30.0)
        before = sum(made.operator.leaderless)
        made.create(kind, body)
        made.settle()
        assert sum(made.operator.leaderless) == before
