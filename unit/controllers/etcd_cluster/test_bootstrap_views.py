"""Bootstraps by operators whose caches are behind, and what a bootstrap costs."""

import pytest

from unit.passes.bench import Bench, bench, bootstrapped
from unit.passes.bodies import COREOS, IMPROBABLE, MAKERS, ephemeral, persistent
from unit.passes.expected import assert_finished


@MAKERS
def test_an_operator_that_starts_on_an_older_view_makes_nothing_twice(make: type) -> None:
    with bench() as first:
        kind, body = make(size=1)
        begin = first.api.objects.store.revision
        first.create(kind, body)
        first.start()
        first.settle()
        revisions = first.api.objects.store.revision - begin
    for behind in range(1, revisions, 3):
        with bootstrapped(*make(size=1)) as made:
            made.kill()
            made.api.freeze_views(made.api.objects.store.revision - behind)
            made.start()
            before = made.status(kind)
            drive(made)
            assert made.status(kind) == before
            made.api.thaw_views()
            made.settle()
            assert_finished(made, kind, 1)


@MAKERS
def test_an_operator_does_not_act_again_before_it_has_seen_its_own_writes(make: type) -> None:
    with bench() as made:
        kind, body = make()
        made.create(kind, body)
        made.api.freeze_views()
        made.start()
        drive(made)
        paths = [(w.request.method, w.request.path, str(w.request.body)) for w in made.writes()]
        assert paths
        assert len(set(paths)) == len(paths)
        made.api.thaw_views()
        made.settle()
        assert_finished(made, kind, 3)


def drive(made: Bench) -> None:
    """Some turns, with time between them."""
    for _ in range(25):
        if not made.turn():
            assert made.operator is not None
            made.operator.schedule.advance(0.5)


@MAKERS
def test_a_cluster_deleted_and_made_again_behind_one_event_is_a_new_one(make: type) -> None:
    kind, body = make()
    with bootstrapped(kind, body) as made:
        old = made.get(kind)["metadata"]["uid"]
        for stream in made.api.watches:
            stream.stall()
        made.delete(kind, "c")
        made.clock.advance(60.0)
        made.create(kind, body)
        for stream in made.api.watches:
            stream.resume(coalesce=True)
        made.settle()
        assert_finished(made, kind, 3)
        assert made.get(kind)["metadata"]["uid"] != old
        assert bool(made.etcd.etcd.keys) is (kind is IMPROBABLE)


def test_an_edit_that_is_hidden_behind_a_later_one_does_no_harm() -> None:
    with bootstrapped(*ephemeral(size=1)) as made:
        for stream in made.api.watches:
            stream.stall()
        made.edit(COREOS, "c", {"spec": {"size": 0}})
        made.edit(COREOS, "c", {"spec": {"size": 1}})
        for stream in made.api.watches:
            stream.resume(coalesce=True)
        made.settle()
        assert_finished(made, COREOS, 1)


@pytest.mark.parametrize(
    ("make", "size", "most"),
    [(ephemeral, 3, 14), (ephemeral, 1, 8), (persistent, 3, 34), (persistent, 1, 15)],
)
def test_a_bootstrap_costs_few_writes(make: type, size: int, most: int) -> None:
    with bootstrapped(*make(size=size)) as made:
        assert len(made.writes()) <= most
