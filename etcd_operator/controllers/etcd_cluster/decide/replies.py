"""What members of etcd reply, as values.

Silence is a value of its own: it never means that a member does not exist.
"""

from dataclasses import dataclass

from etcd_operator.etcd.values import EtcdMember, Refused


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What one member reports of itself; IDs are hexadecimal."""

    member_id: str
    cluster_id: str
    version: str
    leader: str  # the member it follows; empty without one
    # Raft index that a quorum holds. Right after a static bootstrap it equals the number of initial members,
    # and only a leader that a quorum followed ever raises it.
    committed: int
    applied: int = 0  # raft index up to which it has applied the log
    revision: int = 0  # of the newest change of data that it has applied
    is_learner: bool = False
    # etcd's own error messages, for people; an alarm of one member is in every answer
    errors: tuple[str, ...] = ()
    # The quota of some member is used up (alarm NOSPACE): no put is taken until that is disarmed.
    is_out_of_space: bool = False
    # IDs of the members whose data etcd found to differ (alarm CORRUPT); `ANYBODY` where etcd does not know
    # whose. It refuses puts and deletions until that is disarmed, but neither reads nor changes of members
    # (3.5 to 3.7); to remove the member does not disarm it.
    corrupt: frozenset[str] = frozenset()
    has_other_errors: bool = False  # one of the errors is no such alarm
    members: tuple[EtcdMember, ...] = ()
    db_size: int = 0  # bytes that its database occupies, which its quota limits

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
        return not self.leader or self.is_corrupt or self.has_other_errors


@dataclass(frozen=True, slots=True, kw_only=True)
class Silence:
    """No answer came in time."""

    seconds: float = 0.0  # since the member last answered, or was first asked


Reply = Answer | Refused | Silence
