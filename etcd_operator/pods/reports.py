"""What the programs in pods report as JSON, and the operator reads."""

from typing import Annotated

import msgspec

from etcd_operator.api.meta import Value

SURVIVOR = "survivor"
"""What the database of a survivor is called where backups have names."""

FOLLOWED_A_LEADER = 4
"""The exit code of a reader that is not needed, because its member follows a leader."""


class BackupReport(Value, frozen=True, kw_only=True, omit_defaults=False):
    """A backup that a backup tool has stored."""

    name: str
    time: str  # RFC 3339
    revision: int
    etcd_version: str
    cluster_id: str = ""  # of etcd; empty if an earlier version of the tool reports
    size: int = 0  # of the snapshot in bytes
    sha256: str = ""  # of the snapshot in it, which the tool serves
    is_authentic: bool = False  # stored by this tool, or where nobody else can write; else only listed
    key_id: str = ""  # of the key that encrypted it, else empty
    refusal: str = ""  # why the tool does not read it with its keys, and what to do; empty if it does
    corrupt_alarm: bool = False  # taken while an alarm CORRUPT was raised
    age: float = 0.0  # seconds since `time` by the clock of the tool
    took: float = 0.0  # seconds that storing it took, 0 if not known

    def is_known(self, name: str, sha256: str) -> bool:
        """Whether the tool has stored it, by itself or by the name and SHA-256 that are on record."""
        return self.is_authentic or (self.name, self.sha256) == (name, sha256)


class LastFailure(Value, frozen=True, kw_only=True, omit_defaults=False):
    """Why the last try failed: the kind of the error, and a sentence."""

    time: str
    reason: str
    message: str


class ToolReport(Value, frozen=True, kw_only=True, omit_defaults=False):
    """`/v1/status` of a backup tool: what is stored for a cluster, and how the last try went."""

    newest: BackupReport | None = None
    count: int = 0
    total_size: int = 0  # bytes of all backups
    unknown: BackupReport | None = None  # what would be the newest, and is not authentic
    foreign_owner: str | None = None  # UID of another resource that stores in the same folder; may be empty
    # Seconds since it was last known that the newest backup has all data: it was stored, or nothing had
    # changed since. None if that never was. It is an age: the clocks of two machines differ.
    since_success: float | None = None
    failure: LastFailure | None = None  # of the last try; None if that succeeded
    failures: int = 0  # how many tries have failed since the tool was started
    is_backing_up: bool = False
    is_starting: bool = False  # no try has ended since the tool was started


class RestorableBackups(Value, frozen=True, kw_only=True, omit_defaults=False):
    """`/v1/restorable` of a backup tool: what can be restored."""

    is_listed: bool = False  # false while the tool stores a backup, or lists what is stored
    candidate: BackupReport | None = None  # the newest backup by its manifest
    is_checked: bool = False  # false while the tool still reads
    # The newest backup of which every byte was read and checked; if there is none, one that was refused.
    newest: BackupReport | None = None
    damaged: tuple[str, ...] = ()  # names of newer backups that are not whole


class ListedVoter(Value, frozen=True, kw_only=True):
    """An entry of the member list of a survivor."""

    id: str  # hexadecimal
    name: str = ""
    peer_urls: tuple[str, ...] = ()
    is_learner: bool = False


class SurvivorReport(Value, frozen=True, kw_only=True):
    """`/v1/survivor` of a reader: what a member has that restarted without a quorum."""

    problem: str = ""  # while there is one, nothing but the next two fields counts
    is_passing: bool = False  # the problem goes away by itself
    has_leader: bool = False  # it follows a leader; a learner only if it hears from that leader
    cluster_id: str = ""  # hexadecimal, as the log names it
    member_id: str = ""  # the same
    committed: int = 0  # the raft index up to which it knows the log to be committed; all is in the database
    revision: int = 0  # of its newest change
    sha256: str = ""  # of the database followed by etcd's hash, as it can be fetched
    members: tuple[ListedVoter, ...] = ()
    corrupt: tuple[str, ...] = ()  # IDs of the members that alarms CORRUPT name, hexadecimal


class Progress(Value, frozen=True, kw_only=True):
    """`/v1/progress` of a command that restores: how much of this step is done."""

    step: str  # checking, fetching or restoring
    bytes: Annotated[int, msgspec.Meta(ge=0)]
    total_bytes: Annotated[int, msgspec.Meta(ge=1)]
