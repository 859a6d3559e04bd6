"""A pass relies on caches only if they showed all of our writes before it read them."""

from typing import Any
from unittest.mock import patch

from etcd_operator.keys import Key
from unit.fakes.apiserver import Kind
from unit.passes.bench import bench
from unit.passes.bodies import MAKERS

KEY = Key("default", "c")


@MAKERS
def test_a_cache_that_catches_up_after_it_was_read_has_shown_too_little(make: Any) -> None:
    with bench() as made:
        kind: Kind
        kind, body = make()
        made.create(kind, body)
        made.start()
        assert made.operator is not None
        made.operator.catch_up()
        group = next(group for group in made.operator.groups if group.name == kind.group)
        reconcile: Any = group.controllers[0].reconcile
        observer = reconcile.__self__.observer
        members, seen = type(observer.cached).members, []

        def read(*arguments: Any) -> Any:
            found = members(*arguments)
            seen.append(found)
            return found

        with (
            patch.object(type(observer.cached), "members", read),
            patch.object(observer.expectations, "are_met", lambda _: bool(seen)),
        ):
            reconcile(KEY)
            assert seen
            assert not made.writes()
        reconcile(KEY)
        assert made.writes()
