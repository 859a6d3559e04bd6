"""Claims of members that joined and were removed: they are cleaned up, whatever became of a write."""

from collections import Counter
from collections.abc import Callable

import pytest

from unit.fakes.apiserver import Answer, Json
from unit.fakes.apiserver.faults import Fault, Request
from unit.fakes.apiserver.kinds import CLAIMS
from unit.passes.bench import Bench, bootstrapped
from unit.passes.bodies import IMPROBABLE, PEERS, persistent
from unit.passes.expected import assert_finished


def resize(made: Bench, replicas: int) -> None:
    """As `kubectl scale`."""
    made.edit(IMPROBABLE, "c", {"spec": {"replicas": replicas}})


def test_a_claim_whose_creation_is_applied_late_is_cleaned_up_and_not_in_the_way() -> None:
    """The answer is a timeout, the member is removed again, and only then the claim comes into being."""
    late: list[Json] = []

    def timing_out(request: Request) -> Fault | None:
        if request.plural != "persistentvolumeclaims" or request.method != "POST":
            return None
        late.append(request.body)
        return Answer(code=504, reason="Timeout", message="the webhook did not answer in time")

    with bootstrapped(*persistent()) as made:
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
    with bootstrapped(*persistent(size=size)) as made:
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
    with bootstrapped(*persistent(size=3)) as made:
        before = len(made.writes())
        resize(made, 5)
        made.settle()
        annotated = [
            write.request.path.rpartition("/")[2]
            for write in made.writes()[before:]
            if write.request.plural == "persistentvolumeclaims" and "/voters" in str(write.request.body)
        ]
        # The first annotation of c-3 and c-4 names the voters of the time before they vote themselves.
        assert Counter(annotated) == {"c-0": 2, "c-1": 2, "c-2": 2, "c-3": 3, "c-4": 2}


def test_claims_that_an_earlier_version_annotated_are_updated_once() -> None:
    with bootstrapped(*persistent(size=3)) as made:
        made.kill()
        old = {f"{IMPROBABLE.group}/{name}": None for name in ("voters", "voters-revision")}
        size = {f"{IMPROBABLE.group}/cluster-size": "3"}
        for name in made.names(CLAIMS):
            made.edit(CLAIMS, name, {"metadata": {"annotations": old | size}})
        made.start()
        made.settle()
        assert_finished(made, IMPROBABLE, 3)
        annotations = made.get(CLAIMS, "c-1")["metadata"]["annotations"]
        assert f"{IMPROBABLE.group}/cluster-size" not in annotations


def message(made: Bench) -> str:
    return str(made.condition(IMPROBABLE, "Degraded")["message"])


def refusing_to_delete(code: int, reason: str) -> Callable[[Request], Fault | None]:
    """Claims cannot be deleted."""

    def hook(request: Request) -> Fault | None:
        is_meant = request.plural == "persistentvolumeclaims" and request.method == "DELETE"
        return Answer(code=code, reason=reason, message="a webhook denies it") if is_meant else None

    return hook


@pytest.mark.exhaustive
@pytest.mark.parametrize(("code", "reason"), [(403, "Forbidden"), (500, "InternalError"), (422, "Invalid")])
def test_a_claim_that_cannot_be_deleted_holds_the_deletion_of_its_peer_for_minutes_and_not_for_ever(
    code: int, reason: str
) -> None:
    with bootstrapped(*persistent()) as made:
        made.api.before = refusing_to_delete(code, reason)
        resize(made, 2)
        made.run_until(lambda: "deletionTimestamp" in made.get(PEERS, "c-2")["metadata"])
        made.wait(240.0)
        assert "c-2" in made.names(PEERS)
        made.wait(120.0)
        assert "c-2" not in made.names(PEERS)
        assert "c-2" in made.names(CLAIMS)
        (given_up,) = (event for event in made.events() if event["reason"] == "CleanupGivenUp")
        assert given_up["type"] == "Warning"
        assert "a webhook denies it" in given_up["message"]
        made.api.before = lambda _: None
        made.settle()
        assert_finished(made, IMPROBABLE, 2, (0, 1))


def test_a_claim_that_cannot_be_deleted_for_a_moment_is_deleted_with_its_peer() -> None:
    with bootstrapped(*persistent()) as made:
        made.api.before = refusing_to_delete(403, "Forbidden")
        resize(made, 2)
        made.run_until(lambda: "deletionTimestamp" in made.get(PEERS, "c-2")["metadata"])
        made.wait(30.0)
        made.api.before = lambda _: None
        made.settle()
        assert_finished(made, IMPROBABLE, 2, (0, 1))


def test_the_claim_of_a_removed_member_is_deleted_although_no_cache_shows_it() -> None:
    with bootstrapped(*persistent()) as made:
        resize(made, 2)
        made.run_until(lambda: "deletionTimestamp" in made.get(PEERS, "c-2")["metadata"])
        labels = dict.fromkeys(made.get(CLAIMS, "c-2")["metadata"]["labels"])
        made.edit(CLAIMS, "c-2", {"metadata": {"labels": labels}})
        made.settle()
        assert_finished(made, IMPROBABLE, 2, (0, 1))


def test_a_claim_that_somebody_put_in_the_place_of_ours_outlives_the_member() -> None:
    with bootstrapped(*persistent()) as made:
        labels = made.get(CLAIMS, "c-2")["metadata"]["labels"]
        resize(made, 2)
        made.run_until(lambda: "deletionTimestamp" in made.get(PEERS, "c-2")["metadata"])
        made.lose_claim("c-2")
        made.create(CLAIMS, {"metadata": {"name": "c-2", "labels": labels}, "spec": {}})
        made.run_until(lambda: "c-2" not in made.names(PEERS))
        made.wait(20.0)
        assert "deletionTimestamp" not in made.get(CLAIMS, "c-2")["metadata"]


def test_a_copy_of_the_claim_of_a_member_is_neither_started_nor_deleted() -> None:
    """A clone of the volume has the annotations of the claim, too."""
    with bootstrapped(*persistent()) as made:
        made.settle()
        made.delete(IMPROBABLE, "c")
        made.run_until(lambda: not made.etcd_runs())
        found = made.get(CLAIMS, "c-2")
        metadata = {"name": "c-3", **{key: found["metadata"][key] for key in ("labels", "annotations")}}
        spec = {name: value for name, value in found["spec"].items() if name != "volumeName"}
        copy = {"metadata": metadata, "spec": spec}
        made.create(CLAIMS, copy)
        made.create(*persistent())
        made.run_until(lambda: made.reason(IMPROBABLE) == "ClaimsConflict")
        made.wait(30.0)
        assert made.names(PEERS) == []
        made.delete(CLAIMS, "c-3")
        made.settle()
        made.create(CLAIMS, copy)
        made.wait(60.0)
        assert made.names(PEERS) == ["c-0", "c-1", "c-2"]
        assert "c-3" in made.names(CLAIMS)
