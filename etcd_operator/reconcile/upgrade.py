"""What is reported of an upgrade: Events and metrics. How members are replaced is in `reconcile.members`."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime

from etcd_operator.api.persisted import Upgrade
from etcd_operator.clock import Clock
from etcd_operator.core.state import ClusterState
from etcd_operator.keys import Key

Seconds = Callable[[float], None]
"""Told of a duration in seconds."""


def news(before: Upgrade | None, after: Upgrade | None, state: ClusterState) -> list[tuple[str, str]]:
    """The Events that a change of what is remembered about an upgrade stands for."""
    told = []
    if before is not None and before.member and (after is None or before.member != after.member):
        told.append(("MemberUpgraded", f"{before.member} serves at {_running(state, before)}"))
    if after is None and before is not None:
        told.append(("UpgradeFinished", f"all members run {state.desired.version}"))
    elif after is not None and (before is None or before.target != after.target):
        told.append(("UpgradeStarted", f"from {after.origin} to {after.target}"))
    return told


def _running(state: ClusterState, upgrade: Upgrade) -> str:
    member = state.by_name.get(upgrade.member)
    answer = member.answer if member is not None else None
    return answer.version if answer is not None else upgrade.target


@dataclass(kw_only=True)
class UpgradeWatch:
    """Measures upgrades by the looks that are made anyway: how long they take, how long nobody led."""

    clock: Clock
    on_finished: Seconds
    on_leaderless: Seconds
    _without_leader: dict[Key, float] = field(default_factory=dict)

    def saw(self, key: Key, state: ClusterState) -> None:
        """A look at a cluster; only one with an upgrade under way counts."""
        now = self.clock.monotonic()
        since = self._without_leader.pop(key, None)
        if since is not None:
            self.on_leaderless(now - since)
        if state.persisted.upgrade is not None and (state.leader is None or not state.has_quorum):
            self._without_leader[key] = now

    def finished(self, upgrade: Upgrade) -> None:
        """An upgrade is over."""
        if upgrade.since:
            began = datetime.fromisoformat(upgrade.since)
            self.on_finished((self.clock.now() - began).total_seconds())
