"""What follows from the observed state of a cluster, and is found once for each state."""

from collections.abc import Callable
from dataclasses import replace
from functools import wraps
from typing import Any, TypeVar

from etcd_operator.controllers.etcd_cluster.decide.state import ClusterState

T = TypeVar("T")


def fact(find: Callable[[ClusterState], T]) -> Callable[[ClusterState], T]:
    """Call `find`, which is pure, once for each state, and keep the result with that state.

    Like that of a cached property: it is no field, and a state made from another one has none of its facts.
    """
    key = _key(find)

    @wraps(find)
    def known(state: ClusterState) -> T:
        kept: dict[str, T] = state.__dict__
        if key not in kept:
            kept[key] = find(state)
        return kept[key]

    return known


def extended(state: ClusterState, *facts: Callable[[ClusterState], Any], **fields: Any) -> ClusterState:
    """The state with what is observed after these facts, which do not depend on it: they are kept."""
    made = replace(state, **fields)
    keys = [_key(each) for each in facts]
    made.__dict__.update({key: state.__dict__[key] for key in keys if key in state.__dict__})
    return made


def _key(find: Callable[[ClusterState], Any]) -> str:
    return f"{find.__module__}.{find.__qualname__}"
