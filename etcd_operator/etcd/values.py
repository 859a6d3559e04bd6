"""etcd's replies as frozen values; IDs are hexadecimal, as etcd prints them. Pure: decisions use them."""

import re
from dataclasses import dataclass
from enum import Enum

from etcd_operator.formats import hex_id


@dataclass(frozen=True, slots=True, kw_only=True)
class EtcdMember:
    """An entry of etcd's member list."""

    id: str
    name: str  # empty until the member has started
    peer_urls: tuple[str, ...]
    is_learner: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberList:
    """The members as one member knows them, and the ID of its cluster."""

    cluster_id: str
    members: tuple[EtcdMember, ...]


class AlarmKind(Enum):
    """Why etcd refuses writes: no space is left, or members' data differ."""

    NOSPACE = "NOSPACE"
    CORRUPT = "CORRUPT"


@dataclass(frozen=True, slots=True, kw_only=True)
class Alarm:
    """An alarm about a member, or about `ANYBODY`; it remains until disarmed."""

    member_id: str
    kind: AlarmKind


ANYBODY = "0"
"""The member that an alarm names when etcd cannot decide whose data is wrong."""

# As etcd prints the message of an alarm: 3.7 with one space or two, all without a member that is 0. A status
# has one such text for each alarm, and beside them only that there is no leader (3.5 to 3.7).
_ALARM = re.compile(r"(?:memberID:(\d{1,20})\s+)?alarm:(NOSPACE|CORRUPT)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """A member's own status."""

    cluster_id: str
    member_id: str
    version: str
    leader: str  # empty if it knows none; may name a lost one for some seconds, so it proves no quorum
    is_learner: bool
    raft_index: int
    raft_applied_index: int
    revision: int
    db_size: int  # in bytes
    errors: tuple[str, ...]  # etcd's own reports: no leader, and active alarms

    @property
    def alarms(self) -> tuple[Alarm, ...]:
        """The active alarms of all members, as far as this one knows."""
        found = (match for error in self.errors for match in _ALARM.finditer(error))
        return tuple(Alarm(member_id=hex_id(int(match[1] or 0)), kind=AlarmKind(match[2])) for match in found)

    @property
    def corrupt(self) -> frozenset[str]:
        """IDs of the members that active alarms CORRUPT name; `ANYBODY` where etcd does not know."""
        return frozenset(alarm.member_id for alarm in self.alarms if alarm.kind is AlarmKind.CORRUPT)

    @property
    def other_errors(self) -> tuple[str, ...]:
        """The errors that are no alarm, or one of a kind that is not known."""
        return tuple(error for error in self.errors if _ALARM.search(error) is None)

    @property
    def is_leader(self) -> bool:
        """Whether the member considers itself the leader."""
        return self.leader == self.member_id


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """The member answered. `members` is None if it gave no list: a learner never does."""

    status: Status
    members: tuple[EtcdMember, ...] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """The member requires a user, or another one: it is alive but reports nothing."""

    # it has just confirmed a linearizable read, as only a voter in touch with a quorum can
    is_serving: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class NoAnswer:
    """No answer came in time: that the member is down does not follow."""

    reason: str


MemberReply = Answered | Refused | NoAnswer


@dataclass(frozen=True, slots=True, kw_only=True)
class HashKV:
    """The hash over all keys up to a revision; comparable at equal compact revisions only."""

    hash: int
    compact_revision: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricsPage:
    """What the process at one endpoint reports; None for what its page lacks, or could not be read."""

    leaders_seen: int | None = None  # changes of leader since it started; 0: it has never followed one
    snapshots_saved: int | None = None  # raft snapshots saved since it started
    cluster_version: str | None = None  # the version that its cluster has agreed on, such as 3.6.0
    auth_revision: int | None = None  # grows with each change of users and roles that it has applied


UNREAD = MetricsPage()


class Access(Enum):
    """What a permission allows."""

    READ = "READ"
    WRITE = "WRITE"
    READ_WRITE = "READWRITE"


OPEN_END = b"\0"
"""The end of a range that has none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Permission:
    """Access to a key, or to a range of keys; a role has one for each key and end at most."""

    key: bytes  # never empty
    range_end: bytes = b""  # the first key behind the range; empty for the one key, or `OPEN_END`
    access: Access


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthStatus:
    """Whether requests need a user, and the revision of users and roles."""

    is_enabled: bool
    revision: int
    cluster_id: str
