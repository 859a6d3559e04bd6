"""What the prober keeps of each cluster."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from etcd_operator.etcd.channel import Channels, TlsCredentials
from etcd_operator.etcd.probe import Probe
from etcd_operator.etcd.values import Answered, MemberReply, NoAnswer, Refused

EMPTY = Probe(replies={}, quorum=None)
"""The result of a probe that asked nobody."""

PagesNeeded = Callable[[Probe], frozenset[str]]
"""The endpoints whose metrics pages have to be read, once it is known who replied."""


def no_pages(_: Probe) -> frozenset[str]:
    """What most passes need."""
    return frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """How the members of a cluster are reached."""

    credentials: TlsCredentials | None = None  # of this cluster only; None where its members use no TLS
    names: Mapping[str, str] = field(
        default_factory=dict
    )  # that each must have, by endpoint; with credentials


OPEN = Access()
"""Without TLS."""


@dataclass(slots=True)
class Slot:
    """The probes of one cluster: at most one under way, at most one result waiting."""

    endpoints: frozenset[str]
    channels: Channels
    is_under_way: bool = False
    is_outdated: bool = False
    turn: int = 0  # of what was queued for it, only the last is done
    failure: str = ""  # why the last probe failed
    result: Probe | None = None
    made_at: float = 0.0
    answered: frozenset[str] = frozenset()  # of the last result
    leaving: frozenset[str] = frozenset()  # endpoints expected to fall silent
    removed: frozenset[str] = frozenset()  # endpoints of no members
    gone: frozenset[str] = frozenset()  # those that a later pass would not have asked any more
    voters: tuple[str, ...] = ()  # of the last result
    pages_needed: PagesNeeded = no_pages
    pages_read: frozenset[str] = frozenset()
    has_no_quorum: bool = False
    is_distrusted: bool = False  # whether a quorum check was not answered since
    unproven_since: float = 0.0  # monotonic
    fully_probed_at: float = -math.inf  # monotonic
    silent_since: dict[str, float] = field(default_factory=dict)
    epoch: int = 0

    def identify(self, access: Access) -> None:
        """An open connection goes on with the credentials that it began with, and fails when it breaks."""
        if self.channels.credentials != access.credentials:
            self.channels.close()
            self.channels = Channels(access.credentials)
            self.result, self.is_outdated = None, True
        self.channels.identify(access.names)

    def silent_for(self, result: Probe, now: float, epoch: int) -> dict[str, float]:
        """Seconds since each silent member last answered, or was first asked in this epoch."""
        silent = [at for at, reply in result.replies.items() if isinstance(reply, NoAnswer)]
        known = self.silent_since if epoch == self.epoch else {}
        self.silent_since, self.epoch = {at: known.get(at, now) for at in silent}, epoch
        return {at: now - since for at, since in self.silent_since.items()}


def voters(result: Probe) -> tuple[str, ...]:
    """Those that can prove the quorum that there is, in a stable order; none without one."""
    replies = result.replies.items() if result.quorum else ()
    return tuple(sorted(at for at, reply in replies if _may_prove(reply)))


def _may_prove(reply: MemberReply) -> bool:
    match reply:
        case Answered():
            return not reply.status.is_learner
        case Refused():
            return reply.is_serving
        case NoAnswer():
            return False


def answering(result: Probe) -> frozenset[str]:
    """Those whose silence would be news; of those that require a user the proof is what counts."""
    return frozenset(
        at
        for at, reply in result.replies.items()
        if isinstance(reply, Answered) or (isinstance(reply, Refused) and reply.is_serving)
    )
