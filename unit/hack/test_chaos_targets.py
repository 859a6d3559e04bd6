import pytest

from chaosmonkey.targets import Member, Sight, Skip, Wait, spare, target_members, target_node


def sight(*nodes: str, size: int = 0, is_whole: bool = True, name: str = "one") -> Sight:
    members = tuple(Member(pod=f"{name}-{number}", node=node) for number, node in enumerate(nodes))
    return Sight(name=name, size=size or len(nodes), members=members, is_whole=is_whole)


def targets_of(seen: Sight, draw: float, at_once: int = 1, *, beyond_quorum: bool = False) -> object:
    found = target_members(seen, draw, at_once=at_once, beyond_quorum=beyond_quorum)
    return found if isinstance(found, Wait) else [member.pod for member in found]


@pytest.mark.parametrize(("size", "spared"), [(1, 0), (2, 0), (3, 1), (4, 1), (5, 2), (7, 3)])
def test_a_quorum_can_spare_less_than_half(size: int, spared: int) -> None:
    assert spare(size) == spared


@pytest.mark.parametrize(("draw", "pod"), [(0.0, "one-0"), (0.34, "one-1"), (0.999999, "one-2")])
def test_the_draw_picks_the_member(draw: float, pod: str) -> None:
    assert targets_of(sight("a", "b", "c"), draw) == [pod]


def test_a_cluster_that_is_not_whole_is_waited_for() -> None:
    assert targets_of(sight("a", "b", "c", is_whole=False), 0.0) == Wait("one is whole")


def test_never_more_members_at_once_than_the_quorum_can_spare() -> None:
    assert targets_of(sight("a", "b", "c"), 0.0, at_once=3) == ["one-0"]
    assert targets_of(sight("a", "b", "c", "d", "e"), 0.99, at_once=5) == ["one-4", "one-0"]


def test_the_size_asked_for_counts_not_the_number_of_members_there_are() -> None:
    """Five pods of a cluster of three (old ones that end, say) do not make a larger quorum to spare from."""
    assert targets_of(sight("a", "b", "c", "d", "e", size=3), 0.0, at_once=2) == ["one-0"]


def test_beyond_quorum_nobody_is_spared_nor_waited_for() -> None:
    seen = sight("a", "b", "c", is_whole=False)
    assert targets_of(seen, 0.5, at_once=2, beyond_quorum=True) == ["one-1", "one-2"]
    assert targets_of(seen, 0.5, at_once=9, beyond_quorum=True) == ["one-1", "one-2", "one-0"]


def test_beyond_quorum_a_cluster_without_any_member_is_waited_for() -> None:
    assert targets_of(sight(size=3, is_whole=False), 0.5, beyond_quorum=True) == Wait("one has a member")


def test_a_node_gets_a_fault_that_every_cluster_can_do_without() -> None:
    one, two = sight("a", "a", "b"), sight("a", "b", "c", name="two")
    found = {target_node([one, two], draw / 10, beyond_quorum=False) for draw in range(10)}
    assert found == {"b", "c"}


def test_a_node_gets_no_fault_while_any_cluster_is_not_whole() -> None:
    sights = [sight("a", "b", "c"), sight("d", "e", "f", is_whole=False, name="two")]
    assert target_node(sights, 0.0, beyond_quorum=False) == Wait("two is whole")


def test_no_node_gets_a_fault_when_each_holds_a_quorum_of_someone() -> None:
    assert isinstance(target_node([sight("a", "a", "a")], 0.0, beyond_quorum=False), Skip)
    assert target_node([sight("a", "a", "a")], 0.0, beyond_quorum=True) == "a"
