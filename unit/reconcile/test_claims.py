"""Claims of members that came and went: what this cluster made is cleaned up, whatever became of a write."""

from collections import Counter

import pytest

from unit.fakes.apiserver import Answer, Json
from unit.fakes.apiserver.faults import Fault, Request
from unit.fakes.apiserver.kinds import CLAIMS
from unit.reconcile.bench import IMPROBABLE, Bench, born, persistent
from unit.reconcile.expected import assert_finished


def resize(made: Bench, replicas: int) -> None:
    """As `kubectl scale`."""
    made.edit(IMPROBABLE, "c", {"spec": {"replicas": replicas}})


def test_a_claim_whose_creation_is_applied_late_is_cleaned_up_and_not_in_the_way() -> None:
    """The answer is a timeout, the member is taken out again, and only then the claim comes into being."""
    late: list[Json] = []

    def timing_out(request: Request) -> Fault | None:
        if request.plural != "persistentvolumeclaims" or request.method != "POST":
            return None
        late.append(request.body)
        return Answer(code=504, reason="Timeout", message="the webhook did not answer in time")

    with born(*persistent()) as made:
        made.api.before = timing_out
        resize(made, 4)
        made.run_until(lambda: len(late) > 0)
        resize(made, 3)
        made.settle()
        made.api.before = lambda _: None
        made.create(CLAIMS, late[0])
        made.world.settle()
        made.settle()
        assert made.names(CLAIMS) == ["c-0", "c-1", "c-2"]
        resize(made, 4)
        made.settle()
        assert_finished(made, IMPROBABLE, 4, (0, 1, 2, 3))


@pytest.mark.parametrize(
    ("size", "to", "lost", "is_resumed"),
    [
        pytest.param(5, 3, ("c-2",), True, id="shrunk to 3: two are a quorum"),
        pytest.param(3, 5, ("c-0", "c-2", "c-4"), False, id="grown to 5: two are none"),
        pytest.param(3, 5, ("c-0", "c-2"), True, id="grown to 5: three are"),
    ],
)
def test_a_cluster_created_again_counts_the_voters_that_it_had_last(
    size: int, to: int, lost: tuple[str, ...], is_resumed: bool
) -> None:
    with born(*persistent(size=size)) as made:
        resize(made, to)
        made.settle()
        made.delete(IMPROBABLE, "c")
        made.drain()
        for name in lost:
            made.lose_claim(name)
        made.create(*persistent(size=to))
        if is_resumed:
            made.settle()
            assert made.etcd.etcd.keys == {b"key": (b"value", 2)}
            assert_finished(made, IMPROBABLE, to, tuple(range(to)))
        else:
            made.run_until(lambda: made.reason(IMPROBABLE) == "ClaimsMissing")
            assert "of a cluster of c-0, c-1, c-2, c-3, c-4 only c-1, c-3 are left" in message(made)
            assert made.objects()["peers"] == []


def test_each_change_of_voters_is_one_write_for_each_claim() -> None:
    with born(*persistent(size=3)) as made:
        before = len(made.writes())
        resize(made, 5)
        made.settle()
        notes = [
            write.request.path.rpartition("/")[2]
            for write in made.writes()[before:]
            if write.request.plural == "persistentvolumeclaims" and "/voters" in str(write.request.body)
        ]
        # What c-3 and c-4 are given first names all members that vote while they do not.
        assert Counter(notes) == {"c-0": 2, "c-1": 2, "c-2": 2, "c-3": 3, "c-4": 2}


def test_claims_that_an_earlier_version_marked_are_brought_up_to_date_once() -> None:
    with born(*persistent(size=3)) as made:
        made.kill()
        old = {f"{IMPROBABLE.group}/{name}": None for name in ("voters", "voters-revision")}
        size = {f"{IMPROBABLE.group}/cluster-size": "3"}
        for name in made.names(CLAIMS):
            made.edit(CLAIMS, name, {"metadata": {"annotations": old | size}})
        made.start()
        made.settle()
        assert_finished(made, IMPROBABLE, 3)
        notes = made.get(CLAIMS, "c-1")["metadata"]["annotations"]
        assert f"{IMPROBABLE.group}/cluster-size" not in notes


def message(made: Bench) -> str:
    return str(made.condition(IMPROBABLE, "Degraded")["message"])
