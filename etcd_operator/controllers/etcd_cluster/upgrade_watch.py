"""What is reported of an upgrade: Events and metrics. `etcd_cluster.members` replaces members."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime

from etcd_operator.api.persisted import Upgrade
from etcd_operator.clock import Clock
from etcd_operator.controllers.etcd_cluster.decide.state import ClusterState
from etcd_operator.keys import Key

LONGEST_GAP = 60.0
"""Seconds between two passes; after a longer one, as where another operator led, counts begin again."""

Seconds = Callable[[float], None]
"""Called with a duration in seconds."""


def events_of(before: Upgrade | None, after: Upgrade | None, state: ClusterState) -> list[tuple[str, str]]:
    """The Events for a change of the upgrade on record: reason and message of each.

    A member that is on record may not have been restarted: its leadership is moved first, and another edit
    may come in between, or the member may be removed.
    """
    events = []
    is_next = before is not None and (after is None or before.member != after.member)
    if before is not None and is_next and _serves_at_target(state, before):
        done = ("MemberRestarted", "serves again") if before.restart else ("MemberUpgraded", "serves at")
        at = "" if before.restart else f" {before.target}"
        events.append((done[0], f"{before.member} {done[1]}{at}"))
    if after is None and before is not None and before.restart:
        events.append(("RestartsFinished", "all members have been restarted"))
    elif after is None and before is not None:
        events.append(("UpgradeFinished", f"all members run {state.desired.version}"))
    elif after is not None and before is None and after.restart:
        events.append(("RestartsStarted", "members are started again, one at a time, for their TLS"))
    elif after is not None and (before is None or before.target != after.target):
        events.append(("UpgradeStarted", _started(before, after)))
    return events


def _serves_at_target(state: ClusterState, upgrade: Upgrade) -> bool:
    member = state.by_name.get(upgrade.member)
    if member is None or member.entry is None or member.answer is None:
        return False
    return member.is_healthy and member.answer.version == upgrade.target


def _started(before: Upgrade | None, after: Upgrade) -> str:
    """The origin is the lowest version that runs: at a rollback the target itself."""
    if after.origin != after.target:
        return f"from {after.origin} to {after.target}"
    return f"from {before.target} back to {after.target}" if before is not None else f"back to {after.target}"


@dataclass(kw_only=True)
class UpgradeWatch:
    """Measures upgrades by the observations of passes: how long they take, how long there was no leader."""

    clock: Clock
    on_finished: Seconds
    on_leaderless: Seconds
    _without_leader: dict[Key, float] = field(default_factory=dict)

    def observed(self, key: Key, state: ClusterState) -> None:
        """Count the time without a leader between two passes; only while an upgrade is under way."""
        now = self.clock.monotonic()
        since = self._without_leader.pop(key, None)
        if since is not None and now - since <= LONGEST_GAP:
            self.on_leaderless(now - since)
        if state.persisted.upgrade is not None and (state.leader is None or not state.has_quorum):
            self._without_leader[key] = now

    def forget(self, key: Key) -> None:
        """The cluster is deleted."""
        self._without_leader.pop(key, None)

    def finished(self, upgrade: Upgrade) -> None:
        """Report how long an upgrade took."""
        if upgrade.since:
            began = datetime.fromisoformat(upgrade.since)
            self.on_finished((self.clock.now() - began).total_seconds())


@dataclass(eq=False, kw_only=True)
class UpgradeWaits:
    """For how long the upgrading member of each cluster has been waited for; in memory, as in `Waits`."""

    clock: Clock
    _counts: dict[Key, tuple[str, float, float]] = field(default_factory=dict)

    def seconds(self, key: Key, state: ClusterState) -> float:
        """Since passes have seen the member not to serve, at the version that it is to run now."""
        member = state.upgrading_member
        if member is None:
            self.forget(key)
            return 0.0
        what, now = f"{member.name} {member.requested_version}", self.clock.monotonic()
        known, since, last = self._counts.get(key, ("", now, now))
        if known != what or now - last > LONGEST_GAP:
            since = now
        self._counts[key] = (what, since, now)
        return now - since

    def forget(self, key: Key) -> None:
        """Nothing is waited for."""
        self._counts.pop(key, None)
