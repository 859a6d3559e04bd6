"""Ephemeral clusters that lose most of their pods, again and again, while everything else happens.

What a survivor can tell is saved, and all that was acknowledged and that any voter still has is in it. Only
where nobody is left, or one that is left cannot tell what it has, does a run end held.
"""

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import initialize, rule

from etcd_operator.core.starts import Seeding
from unit.core.model import World
from unit.core.model_life import BORN_WITH, SIZES, WHICH, Life
from unit.core.model_machine import profile


class Recoveries(Life):
    """Born ephemeral, and without mercy."""

    is_merciful = False

    @initialize(size=BORN_WITH, asked=SIZES, left=st.sets(WHICH, min_size=1, max_size=3))
    def begin(self, size: int, asked: int, left: set[int]) -> None:
        self.be_bootstrapped(World(is_persistent=False, size=size))
        self.world.resize(asked)
        self.only_these_are_left(left)

    @rule(left=st.sets(WHICH, min_size=1, max_size=3))
    def only_these_are_left(self, left: set[int]) -> None:
        there = sorted(self.world.pods)
        kept = {there[which % len(there)] for which in left} if there else set()
        for name in set(there) - kept:
            self.world.remove_pod(name)

    @rule(is_deleted=st.booleans())
    def the_seed_is_lost(self, is_deleted: bool) -> None:
        seeds = [name for name, pod in self.world.pods.items() if isinstance(pod.start, Seeding)]
        for name in seeds[-1:]:
            if is_deleted:
                self.world.delete_pod(name)
            else:
                self.world.kill(name)


TestRecoveries = pytest.mark.exhaustive(Recoveries.TestCase)
TestRecoveries.settings = profile(150, steps=40)
