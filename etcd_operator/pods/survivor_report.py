"""What is read of a member that restarted without a quorum, as JSON of `/v1/survivor`."""

from etcd_operator.api.meta import Value

NAME = "survivor"
"""What its database is called where backups have names."""

FOLLOWED_A_LEADER = 4
"""The exit code of a reader that is not needed, because its member follows a leader."""


class ListedVoter(Value, frozen=True, kw_only=True):
    """An entry of its member list; id: hexadecimal."""

    id: str
    name: str = ""
    peer_urls: tuple[str, ...] = ()
    is_learner: bool = False


class SurvivorReport(Value, frozen=True, kw_only=True):
    """What its data directory has; while there is a `problem`, nothing else counts.

    cluster_id, member_id: hexadecimal, as its log names them. committed: the raft index up to which it knows
    the log to be committed; the database has all of it. revision: of its newest change.
    is_passing: the problem goes away by itself.
    sha256: of the database followed by etcd's hash, as it can be fetched. has_leader: it follows a leader;
    a learner only if it hears from that.
    """

    problem: str = ""
    is_passing: bool = False
    has_leader: bool = False
    cluster_id: str = ""
    member_id: str = ""
    committed: int = 0
    revision: int = 0
    sha256: str = ""
    members: tuple[ListedVoter, ...] = ()
