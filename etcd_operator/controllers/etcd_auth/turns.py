"""Which EtcdUsers a pass comes to. Their Secrets are read one by one, and no pass may hold a worker for long.

What a pass does not come to is left to the next one, which begins at once, but after other clusters that
wait. All of them together are a round. In etcd, in its Secret and in its status, a user whose turn it is not
remains as it is.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from etcd_operator.clock import Clock
from etcd_operator.controllers.etcd_auth.declared import DeclaredUser
from etcd_operator.keys import Key

LONGEST = 30.0
"""Seconds for the Secrets of one pass. It also reads etcd, and writes to it, to Secrets and to statuses; the
health check gives a pass 300 s."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """What one pass comes to."""

    users: tuple[DeclaredUser, ...]
    proven: int | None  # the revision of etcd's users at which passwords are known to be those in Secrets
    inputs: tuple[object, ...]
    clock: Clock
    began: float

    def is_over(self) -> bool:
        """Whether the other users are left to the next pass."""
        return self.clock.monotonic() - self.began >= LONGEST


@dataclass(frozen=True, slots=True, kw_only=True)
class _Left:
    names: frozenset[str]
    proven: int | None
    inputs: tuple[object, ...]
    revision: int


@dataclass(eq=False, kw_only=True)
class Turns:
    """Of all clusters; lost with the process. Only passes over a key call this with it."""

    clock: Clock
    _left: dict[Key, _Left] = field(default_factory=dict)

    def begin(
        self,
        key: Key,
        users: Iterable[DeclaredUser],
        inputs: tuple[object, ...],
        revision: int | None,
        settled_at: int | None,
    ) -> Turn:
        """What is left of a round, if nothing has changed since; else all. First those that are not ready.

        revision: of etcd's users now, None if that is not known. settled_at: when they were as declared.
        """
        left = self._left.pop(key, None)
        if left is not None and (left.inputs != inputs or revision not in (None, left.revision)):
            left = None
        chosen = []
        for user in users:
            if left is None or user.name in left.names or not user.was_ready:
                chosen.append(user)
            else:
                user.wait()
        return Turn(
            users=tuple(sorted(chosen, key=lambda user: user.was_ready)),
            proven=settled_at if left is None else left.proven,
            inputs=inputs,
            clock=self.clock,
            began=self.clock.monotonic(),
        )

    def end(self, key: Key, turn: Turn, revision: int) -> bool:
        """Whether the round goes on. revision: of etcd's users after the pass."""
        later = frozenset(user.name for user in turn.users if user.is_later)
        if not later:
            return False
        failed = {user.name for user in turn.users if user.failure is not None}
        self._left[key] = _Left(
            names=later | failed, proven=turn.proven, inputs=turn.inputs, revision=revision
        )
        return True

    def forget(self, key: Key) -> None:
        """The cluster is gone."""
        self._left.pop(key, None)
