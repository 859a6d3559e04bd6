"""Sizes edited while a change is under way, at each of its writes; and how members are numbered."""

from functools import partial

import pytest

from unit.fakes.apiserver import Kind
from unit.fakes.apiserver.kinds import CLAIMS, PODS, SERVICES
from unit.passes.bench import Bench, bootstrapped
from unit.passes.bodies import COREOS, IMPROBABLE, ephemeral, persistent
from unit.passes.disturbance import AtNthWrite, EachWrite
from unit.passes.expected import assert_finished

KINDS = pytest.mark.parametrize("kind", [COREOS, IMPROBABLE], ids=lambda kind: kind.group)


def grown(kind: Kind, size: int) -> tuple[Kind, dict[str, object]]:
    """A cluster of either kind."""
    return ephemeral(size=size) if kind is COREOS else persistent(size=size)


def resize(made: Bench, kind: Kind, size: int) -> None:
    """As a user's edit."""
    made.edit(kind, "c", {"spec": {"size" if kind is COREOS else "replicas": size}})


def edit_in_flight(made: Bench, kind: Kind, sizes: list[int], waits: list[int]) -> list[int]:
    """Ask for the first size, for each next one after so many writes; returns those that it came to."""
    left, waiting = list(sizes), list(waits)

    def edit() -> None:
        resize(made, kind, left.pop(0))
        if waiting:
            AtNthWrite(waiting.pop(0), edit).install(made, after=True)

    edit()
    made.settle()
    return sizes[: len(sizes) - len(left)]


def owners(made: Bench) -> dict[str, str]:
    """The member that each volume belongs to, by the uid of its claim."""
    claims = (claim["metadata"] for claim in made.api.objects.select(CLAIMS))
    return {claim["uid"]: claim["annotations"]["etcd.improbable.io/member-id"] for claim in claims}


def numbers(made: Bench) -> tuple[int, ...]:
    """Of the members that run."""
    return tuple(sorted(int(name.rpartition("-")[2]) for name in made.etcd.running))


def _runs(made: Bench, number: int) -> bool:
    return number in numbers(made)


def assert_sound(made: Bench, kind: Kind, size: int, before: dict[str, str]) -> None:
    """As asked, with the data; no number (ephemeral) and no volume (persistent) is used a second time."""
    assert made.etcd.etcd.keys == {b"key": (b"value", 2)}
    assert_finished(made, kind, size, numbers(made))
    if kind is COREOS:
        made_pods = [event for event in made.events() if event["reason"] == "PodCreated"]
        assert [event["message"] for event in made_pods if event["count"] > 1] == []
        assert len({event["message"] for event in made_pods}) == len(made_pods)
    else:
        assert numbers(made) == tuple(range(size))
        after = owners(made)
        assert {uid: after[uid] for uid in before if uid in after} == {
            uid: member for uid, member in before.items() if uid in after
        }


@KINDS
@pytest.mark.exhaustive
def test_three_one_three_edited_at_any_write(kind: Kind) -> None:
    writes = EachWrite()
    for write in writes:
        with bootstrapped(*grown(kind, 3)) as made:
            before = owners(made) if kind is IMPROBABLE else {}
            asked = edit_in_flight(made, kind, [1, 3], [write])
            assert_sound(made, kind, asked[-1], before)
            writes.goes_on = len(asked) > 1
    assert writes.runs >= 5


@pytest.mark.parametrize(
    ("kind", "pause"),
    [
        pytest.param(COREOS, 1, id="coreos.com-1"),
        pytest.param(IMPROBABLE, 1, id="etcd.improbable.io-1", marks=pytest.mark.long),
        pytest.param(COREOS, 4, id="coreos.com-4", marks=pytest.mark.long),
        pytest.param(IMPROBABLE, 4, id="etcd.improbable.io-4", marks=pytest.mark.long),
    ],
)
@pytest.mark.exhaustive
def test_three_five_three_five_edited_at_any_write(kind: Kind, pause: int) -> None:
    writes = EachWrite()
    for write in writes:
        with bootstrapped(*grown(kind, 3)) as made:
            before = owners(made) if kind is IMPROBABLE else {}
            asked = edit_in_flight(made, kind, [5, 3, 5], [write, pause])
            assert_sound(made, kind, asked[-1], before)
            writes.goes_on = len(asked) > 1
    assert writes.runs >= 5


def test_persistent_members_are_compared_by_number_from_nine_to_eleven_and_back() -> None:
    with bootstrapped(*persistent(size=9)) as made:
        for size in (10, 11, 9):
            resize(made, IMPROBABLE, size)
            made.settle()
            assert numbers(made) == tuple(range(size))
        assert_finished(made, IMPROBABLE, 9, tuple(range(9)))


def test_ephemeral_members_are_compared_by_number_where_a_digit_is_added() -> None:
    with bootstrapped(*ephemeral(size=1)) as made:
        made.edit(COREOS, "c", {"status": {"nextOrdinal": 9998}}, subresource="status")
        resize(made, COREOS, 4)
        made.settle()
        assert numbers(made) == (0, 9998, 9999, 10000)
        resize(made, COREOS, 1)
        made.settle()
        assert_finished(made, COREOS, 1, (10000,))


@pytest.mark.parametrize("has_service", [True, False])
def test_the_number_of_the_highest_member_is_not_used_again_if_it_goes_while_the_operator_is_down(
    has_service: bool,
) -> None:
    with bootstrapped(*ephemeral(size=3)) as made:
        for highest in (2, 3):
            made.kill()
            made.delete(PODS, f"c-{highest:04d}")
            if not has_service:
                made.delete(SERVICES, f"c-{highest:04d}")
            made.world.settle()
            made.start()
            made.run_until(partial(_runs, made, highest + 1))
            made.settle()
        assert_sound(made, COREOS, 3, {})
        assert numbers(made) == (0, 1, 4)
