"""One member that a probe asks: what was requested of it, and what it has replied so far."""

from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from google.protobuf.message import Message

from etcd_operator.errors import Forbidden, OperatorError, Unavailable
from etcd_operator.etcd import rpc_pb2 as pb
from etcd_operator.etcd.channel import Connection
from etcd_operator.etcd.methods import members_of, status_of
from etcd_operator.etcd.values import (
    Answered,
    EtcdMember,
    MemberReply,
    NoAnswer,
    Refused,
    Status,
)


@dataclass(slots=True, kw_only=True, eq=False)
class Target:
    """One endpoint."""

    connection: Connection
    status: Status | None = None
    members: tuple[EtcdMember, ...] | None = None
    error: OperatorError | None = None  # of its Status request
    has_answered: bool = False
    proof_sent: bool = False  # whether it was asked to prove a quorum
    gave_proof: bool = False
    is_no_voter: bool = False

    @property
    def may_prove(self) -> bool:
        """Whether it lives and, by its own report, is a voter not yet asked for the proof."""
        if self.proof_sent:
            return False
        if self.status is None:
            return self.is_refusing
        return not self.status.is_learner

    @property
    def is_refusing(self) -> bool:
        """Whether it requires a user."""
        return self.status is None and isinstance(self.error, Forbidden)

    @property
    def knows_no_leader(self) -> bool:
        """Whether it replied so."""
        return self.status is not None and not self.status.leader

    @property
    def is_voter(self) -> bool:
        """Whether it replied so."""
        return self.status is not None and not self.status.is_learner

    @property
    def majority(self) -> int:
        """How many voters a quorum needs by its own list; 0 if that is not known."""
        voters = [member for member in self.members or () if not member.is_learner]
        return len(voters) // 2 + 1 if voters else 0

    def record(self, response: Message) -> None:
        """Keep what it has replied."""
        self.has_answered = True
        if isinstance(response, pb.StatusResponse):
            self.status = status_of(response)
        elif isinstance(response, pb.MemberListResponse):
            # None if it is no list that an etcd has: it counts as one that did not come.
            with suppress(Unavailable):
                self.members = members_of(response.members)
        else:
            self.gave_proof = True

    def reply(self) -> MemberReply:
        """What became of it in the end."""
        if self.status is not None:
            return Answered(status=self.status, members=self.members)
        if self.is_refusing:
            return Refused(is_serving=self.gave_proof)
        return NoAnswer(reason=str(self.error) if self.error is not None else "no answer in time")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PendingCall:
    """One call under way; `sent` is monotonic."""

    target: Target
    name: str
    sent: float
    future: Any  # a `grpc.Call` and a `grpc.Future` in one, for which gRPC has no public type
