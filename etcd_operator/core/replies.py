"""What members of etcd reply, as values.

Silence is a value of its own: it never means that a member does not exist.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class EtcdMember:
    """An entry of etcd's member list; `name` is empty until the member has started."""

    id: str
    name: str
    peer_urls: tuple[str, ...]
    is_learner: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What one member reports of itself.

    committed: raft index that a quorum holds; right after a static bootstrap it equals the
    number of initial members, and only a leader that a quorum followed ever raises it.
    applied: raft index up to which it has applied the log.
    leader: the member it follows, empty without one. ids are hexadecimal.
    revision: of the newest change of data that it has applied.
    errors: etcd's own error messages; an alarm of one member is in every answer.
    corrupt: IDs of the members whose data etcd found to differ (alarm CORRUPT); `ANYBODY` where it
    does not know whose.
    db_size: bytes that its database occupies, which its quota limits.
    """

    member_id: str
    cluster_id: str
    version: str
    leader: str
    committed: int
    applied: int = 0
    revision: int = 0
    is_learner: bool = False
    errors: tuple[str, ...] = ()
    corrupt: frozenset[str] = frozenset()
    members: tuple[EtcdMember, ...] = ()
    db_size: int = 0

    @property
    def is_out_of_space(self) -> bool:
        """Whether the quota of some member is used up: no put is taken until the alarm is disarmed."""
        return any(OUT_OF_SPACE in error for error in self.errors)

    @property
    def is_corrupt(self) -> bool:
        """Whether etcd found its own data to differ."""
        return self.member_id in self.corrupt

    @property
    def is_unhealthy(self) -> bool:
        """Whether it has no leader, its data differs, or it reports an error that is no alarm.

        Every member reports every alarm. With a full store, or corrupt data on one member, the others
        still answer reads and accept changes of membership, so a member that reports an alarm counts as
        healthy: a lost member must be replaced then, too.
        """
        if not self.leader or self.is_corrupt:
            return True
        return any(not any(alarm in error for alarm in ALARMS) for error in self.errors)


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """The reply of a member that requires a user: it is alive, and reports nothing else.

    is_serving: it confirmed a linearizable read, as only a voter in touch with a quorum can.
    """

    is_serving: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Silence:
    """Nothing was heard in time. seconds: since the member was last heard, or first asked."""

    seconds: float = 0.0


Reply = Answer | Refusal | Silence

OUT_OF_SPACE = "NOSPACE"
"""As in etcd's alarm (`memberID:... alarm:NOSPACE`, the same from 3.4 to 3.7)."""

CORRUPT = "CORRUPT"
"""The alarm for data that differs: etcd refuses puts and deletions until the alarm is disarmed, but neither
reads nor changes of members (3.5 to 3.7). Removing the member does not disarm it."""

ALARMS = (OUT_OF_SPACE, CORRUPT)

ANYBODY = "0"
"""The member that the alarm names when etcd cannot decide whose data is wrong."""
