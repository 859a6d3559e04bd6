"""An operator that was killed, and so has not released its Lease: its successor acts within seconds."""

import itertools
import time

import pytest

from e2e.support.checks import assert_nothing_doubled
from e2e.support.clusters import ephemeral, persistent
from e2e.support.kills import RepeatedKills
from e2e.support.measuring import assert_at_most, seconds_until_made
from e2e.support.operators import DeployedOperator, Operator
from e2e.support.resizing import assert_claims_are_their_members, members_of, scale, settle, written_to
from e2e.support.space import Space

pytestmark = pytest.mark.exclusive

LEASE_SECONDS = 15.0
"""How long a Lease lasts that nobody renews."""

STRIKE_EVERY = 5.0
STARTS_BETWEEN_STRIKES = 3.0
"""At least: on a machine so busy that a process takes seconds to start, kills come more slowly."""


@pytest.mark.parametrize(("way", "goal"), [("killed", 2.0), ("deleted-by-force", 5.0)])
def test_an_operator_acts_again_long_before_the_lease_of_its_predecessor_expires(
    space: Space, operator: Operator, way: str, goal: float
) -> None:
    """The goals are those of a quiet machine, and are printed. One that waits for the Lease is always late.

    A process that is deleted by force has a second in which it may act and release its Lease: not here.
    """
    if not isinstance(operator, DeployedOperator):
        pytest.skip("the process for development runs without election")
    kill = operator.kill_process if way == "killed" else operator.silence_and_delete
    normal = seconds_until_made(space, ephemeral("before", size=1))
    numbers = itertools.count()

    def seconds_until_it_acts() -> float:
        operator.renew()
        kill()
        return seconds_until_made(space, ephemeral(f"after-{next(numbers)}", size=1))

    text = f"seconds until it acts again after it was {way} ({normal:.2f} while it was alive)"
    took = assert_at_most(normal + LEASE_SECONDS, seconds_until_it_acts, text)
    operator.wait_ready()
    print(f"{took:.2f} {text}; goal: {goal}")


@pytest.mark.parametrize(
    "sizes",
    [
        pytest.param((3, 5, 3), id="1-3-5-3"),
        pytest.param((3, 5, 3) * 4, id="1-3-5-3-four-times", marks=pytest.mark.long),
    ],
)
def test_sizes_are_reached_while_the_operator_is_killed_every_five_seconds(
    space: Space, operator: Operator, sizes: tuple[int, ...]
) -> None:
    if not isinstance(operator, DeployedOperator):
        pytest.skip("the process for development runs without election")
    documents = [
        space.settled(ephemeral("ephemeral", size=1)),
        space.settled(persistent("persistent", replicas=1)),
    ]
    operator.renew()
    operator.kill_process()
    start = seconds_until_made(space, ephemeral("probe", size=1))
    every = max(STRIKE_EVERY, STARTS_BETWEEN_STRIKES * start)
    print(f"acts again {start:.2f} s after a SIGKILL: killed every {every:.1f} s")
    operator.renew()
    began = time.monotonic()
    with written_to(space, *documents):
        with RepeatedKills(operator, every=every) as kills:
            for size in sizes:
                documents = [scale(space, document, size) for document in documents]
                for document in documents:
                    settle(space, document)
                print(f"{size} members each after {time.monotonic() - began:.0f} s, {kills.count} kills")
        operator.wait_ready()
        for document in documents:
            settle(space, document)
    for document in documents:
        assert_nothing_doubled(space, document, members=members_of(space, document))
    assert_claims_are_their_members(space, documents[1])
