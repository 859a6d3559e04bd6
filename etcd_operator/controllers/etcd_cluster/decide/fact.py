"""What several rules ask about a state is found once for each state: `@fact` on a function of the state."""

from collections.abc import Callable
from functools import wraps
from typing import TypeVar

from etcd_operator.controllers.etcd_cluster.decide.state import ClusterState

T = TypeVar("T")


def fact(find: Callable[[ClusterState], T]) -> Callable[[ClusterState], T]:
    """Call `find`, which is pure, once for each state, and keep the result with that state.

    Like that of a cached property: it is no field, and a state made from another one has none of its facts.
    """
    key = f"{find.__module__}.{find.__qualname__}"

    @wraps(find)
    def known(state: ClusterState) -> T:
        kept: dict[str, T] = state.__dict__
        if key not in kept:
            kept[key] = find(state)
        return kept[key]

    return known
