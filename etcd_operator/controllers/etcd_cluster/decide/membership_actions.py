"""Changes of etcd's own list of members, of its leader, and of its alarms (see `decide.actions`)."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class OnMember:
    """What is done to the member of this name."""

    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OnEntry(OnMember):
    """What is done to an entry of etcd's list."""

    member_id: str


class AddLearner(OnMember):
    """Register a non-voting member: it cannot cost quorum while it catches up."""


class Promote(OnEntry):
    """Let a learner that is in step vote."""


class MoveLeader(OnEntry):
    """Transfer leadership to a member that is kept, before the leader is stopped."""


class RemoveMember(OnEntry):
    """Take a member out of etcd's list for good; its data is never used again."""


class RemoveExternal(OnEntry):
    """Take a member of an adopted cluster, which the operator did not make, out of etcd's list for good."""


class RemoveCorrupt(OnEntry):
    """Take a member with corrupt data out of etcd's list, if a quorum of others has equal data, live."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DisarmCorrupt:
    """Let etcd take writes again: the member with the corrupt data is out, and the others have equal data."""

    member_id: str


MembershipAction = (
    AddLearner | Promote | MoveLeader | RemoveMember | RemoveExternal | RemoveCorrupt | DisarmCorrupt
)
"""Changes of etcd's own list of members and alarms."""
