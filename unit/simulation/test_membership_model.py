"""Sizes edited and members lost in any order, after a bootstrap that went well.

A failing run prints the steps that lead to it (and a blob for `@reproduce_failure`).
"""

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import initialize, rule

from unit.simulation.model import World
from unit.simulation.model_life import INITIAL_SIZES, MERCY, SIZES, Life
from unit.simulation.model_machine import profile


class Memberships(Life):
    """One version of etcd, all the time."""

    @initialize(is_persistent=st.booleans(), size=INITIAL_SIZES, asked=SIZES, is_merciful=MERCY)
    def begin(self, is_persistent: bool, size: int, asked: int, is_merciful: bool) -> None:
        self.is_merciful = is_merciful
        self.be_bootstrapped(World(is_persistent=is_persistent, size=size))
        self.world.edit(size=asked)

    @rule(size=SIZES)
    def the_resource_is_created_again(self, size: int) -> None:
        """With the claims that are there: their number, and who voted, is known from them only."""
        if self.world.is_persistent:
            self.world.delete_cluster()
            self.world.create_cluster(size)
            self.operator.restart()


TestMemberships = pytest.mark.exhaustive(Memberships.TestCase)
TestMemberships.settings = profile(150, steps=40)
