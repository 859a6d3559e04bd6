"""etcd's replies as frozen values, so that protobuf messages stay inside this package."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

from etcd_operator.etcd import rpc_pb2 as pb


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberEntry:
    """One entry of etcd's member list; `name` is empty until it has started."""

    id: int
    name: str
    peer_urls: tuple[str, ...]
    is_learner: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberList:
    """The members as one member knows them, and the ID of its cluster."""

    cluster_id: int
    members: tuple[MemberEntry, ...]


class AlarmKind(Enum):
    """Why etcd refuses writes: no space is left, or members' data differ."""

    NOSPACE = "NOSPACE"
    CORRUPT = "CORRUPT"


@dataclass(frozen=True, slots=True, kw_only=True)
class Alarm:
    """An alarm about a member (0: etcd does not know which); it remains until disarmed."""

    member_id: int
    kind: AlarmKind


# As etcd prints the message of an alarm: 3.7 with one space or two, all without a member that is 0. A status
# has one such text for each alarm, and beside them only that there is no leader (3.5 to 3.7).
_ALARM = re.compile(r"(?:memberID:(\d+)\s+)?alarm:(NOSPACE|CORRUPT)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """A member's own status. Sizes are in bytes.

    `leader` is 0 if it knows none; it may name a lost leader for some seconds, so it proves no quorum.
    `errors` are etcd's own reports: no leader, and active alarms.
    """

    cluster_id: int
    member_id: int
    version: str
    leader: int
    is_learner: bool
    raft_index: int
    raft_applied_index: int
    revision: int
    db_size: int
    errors: tuple[str, ...]

    @property
    def alarms(self) -> tuple[Alarm, ...]:
        """The active alarms of all members, as far as this one knows."""
        found = (match for error in self.errors for match in _ALARM.finditer(error))
        return tuple(Alarm(member_id=int(match[1] or 0), kind=AlarmKind(match[2])) for match in found)

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
    members: tuple[MemberEntry, ...] | None


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


def member_of(message: pb.Member) -> MemberEntry:
    """One member, decoded."""
    return MemberEntry(
        id=message.ID,
        name=message.name,
        peer_urls=tuple(message.peerURLs),
        is_learner=message.isLearner,
    )


def members_of(messages: Iterable[pb.Member]) -> tuple[MemberEntry, ...]:
    """A member list, decoded, in order of ID."""
    return tuple(sorted(map(member_of, messages), key=lambda member: member.id))


def status_of(message: pb.StatusResponse) -> Status:
    """A status, decoded."""
    return Status(
        cluster_id=message.header.cluster_id,
        member_id=message.header.member_id,
        version=message.version,
        leader=message.leader,
        is_learner=message.isLearner,
        raft_index=message.raftIndex,
        raft_applied_index=message.raftAppliedIndex,
        revision=message.header.revision,
        db_size=message.dbSize,
        errors=tuple(message.errors),
    )


def alarms_of(messages: Iterable[pb.AlarmMember]) -> tuple[Alarm, ...]:
    """The active alarms, decoded."""
    return tuple(
        Alarm(member_id=message.memberID, kind=AlarmKind(pb.AlarmType.Name(message.alarm)))
        for message in messages
    )
