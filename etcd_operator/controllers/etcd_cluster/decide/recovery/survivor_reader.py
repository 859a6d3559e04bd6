"""The reader beside a member that answers nobody, and what it has read (`recovery.offline`)."""

from dataclasses import dataclass

from etcd_operator.controllers.etcd_cluster.decide.replies import Answer


@dataclass(frozen=True, slots=True, kw_only=True)
class ReaderFacts:
    """The container that reads a member which restarted without a quorum (see `manifests.survivor_reader`).

    number: of how many in its pod it is the last. token: what it requires. problem: why it does not run.
    has_ended: its process, at the time ended_at (RFC 3339), by the clock of its node. found_leader: that was
    because its member followed a leader; the member has not been restarted since.
    """

    name: str
    number: int = 1
    token: str = ""
    is_running: bool = False
    has_ended: bool = False
    ended_at: str = ""
    found_leader: bool = False
    problem: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What was read of the data of a member that answers nobody.

    answer: what it would have answered; without a list, if it is no voter. sha256: of its database.
    """

    answer: Answer
    sha256: str
