"""The entry of a recovery in the status of a cluster: persisted state (see `persisted`)."""

from typing import Literal

import msgspec

from etcd_operator.api.meta import RecordedSpec, Value

REVISION_BUMP = 1_000_000_000
"""How much revisions increase in a recovery.

More than a lost majority can have written: no revision is ever issued twice, and a watcher that continues
from an old revision gets `required revision has been compacted` instead of silently missing writes.
"""


class Survivor(Value, frozen=True, kw_only=True, tag_field="type", tag="Survivor"):
    """A member of the lost cluster that answers."""

    name: str  #: The name of the member, of the backup, or of the EtcdBackup.


class OfflineSurvivor(Value, frozen=True, kw_only=True, tag_field="type", tag="OfflineSurvivor"):
    """A member of the lost cluster that answers nobody, whose data was read."""

    name: str  #: The name of the member, of the backup, or of the EtcdBackup.
    sha256: str  #: The SHA-256 of its database.


class Backup(Value, frozen=True, kw_only=True, tag_field="type"):
    """What all backups have."""

    cluster: str  #: The name of the EtcdCluster that was backed up.
    # Empty until the seed has fetched the newest backup.
    name: str = ""  #: The name of the member, of the backup, or of the EtcdBackup.
    #: The SHA-256 of the snapshot in the backup; for an OfflineSurvivor, of its database.
    sha256: str = ""
    time: str = ""  #: When the backup was taken.
    age: int = 0  #: How many seconds old the backup was when it was chosen.


class ToolBackup(Backup, frozen=True, kw_only=True, tag_field="type", tag="ToolBackup"):
    """A backup that the seed gets from a backup tool."""

    #: Whether the seed gets the backup over TLS.
    has_tls: bool = msgspec.field(default=False, name="tls")


class ClaimBackup(Backup, frozen=True, kw_only=True, tag_field="type", tag="ClaimBackup"):
    """A backup that the seed reads from the claim of a backup tool."""


class BucketBackup(Backup, frozen=True, kw_only=True, tag_field="type", tag="BucketBackup"):
    """A backup that the seed reads from the bucket of a backup tool."""


class StoredBackup(Backup, frozen=True, kw_only=True, tag_field="type", tag="StoredBackup"):
    """The backup of an EtcdBackup, which a Job restores with the credentials of the EtcdBackup."""

    url: str  #: Where the EtcdBackup that is restored stored its backup.
    size: int = 0  #: The size of the snapshot in bytes.
    #: The spec of the EtcdBackup that is restored, which may be deleted meanwhile; it contains the access to
    #: the store.
    spec: RecordedSpec


Source = Survivor | OfflineSurvivor | ToolBackup | ClaimBackup | BucketBackup | StoredBackup
"""Whose data is restored."""

Authority = Literal["Proven", "Requested", "Automatic", "InPlace", "Creation"]
"""Why the data of the old cluster may be given up."""


class Recovery(Value, frozen=True, kw_only=True):
    """The last recovery from a lost quorum, or restore in place, in progress or finished.

    Written before its first object is created. It is in progress while the recorded cluster ID is `replaces`.
    """

    generation: int  #: The number of this recovery; the first one is 1.
    source: Source  #: What is restored.
    #: Why the data of the old cluster may be given up: its loss is proven (Proven), a person requests it
    #: (Requested), spec.recovery allows it after a time (Automatic), a person restores a backup in place
    #: (InPlace), or there was no cluster before (Creation).
    authority: Authority
    revision: int  #: The latest revision of the survivor, or of the backup.
    #: The version of etcd with which the seed starts: that of the survivor or of the backup; with
    #: spec.restore that of the spec; in a restore in place the lowest that a voting member ran.
    version: str
    seed: str  #: The first member of the new cluster.
    token: str  #: etcd's initial cluster token of the new cluster.
    #: etcd's ID of the cluster that was given up, in hexadecimal; empty if its quorum returned in time, or a
    #: restore in place was cancelled or failed.
    replaces: str
    #: etcd's IDs of the clusters that earlier recoveries gave up, in hexadecimal.
    former: tuple[str, ...] = ()
    #: How many attempts there have been since the cluster served, including this one.
    attempt: int = 1
    #: The number that was added to revisions by this recovery. Default: 1000000000.
    bump: int = REVISION_BUMP
    #: Whether this recovery, or one before it, started automatically, and the cluster has not served for an
    #: hour since. Until then, no other recovery starts automatically.
    is_unstable: bool = msgspec.field(default=False, name="unstable")
    #: The last revision that is known of an etcd cluster that clients reached and that was given up: by a
    #: restore in place, or because its seed was lost while it was the only member. Later ones may have been
    #: written.
    given_up: int = 0
    #: etcd's IDs, in hexadecimal, of members that an alarm CORRUPT named when a recovery restored their data.
    corrupt_sources: tuple[str, ...] = ()
    failure: str = ""  #: Why this recovery or restore in place is given up without a change.

    @property
    def survivor(self) -> str:
        """The name of the member whose data is restored; empty for a backup."""
        return "" if isinstance(self.source, Backup) else self.source.name

    @property
    def offline_survivor(self) -> OfflineSurvivor | None:
        """The same member, if it answers nobody."""
        return self.source if isinstance(self.source, OfflineSurvivor) else None

    @property
    def is_copied(self) -> bool:
        """Whether the seed dials a member that answers, and copies its data."""
        return isinstance(self.source, Survivor)

    @property
    def backup(self) -> Backup | None:
        """The backup that is restored; None for the data of a survivor."""
        return self.source if isinstance(self.source, Backup) else None

    @property
    def stored_backup(self) -> StoredBackup | None:
        """The same, if a Job restores it to the claim of the seed before that is started."""
        return self.source if isinstance(self.source, StoredBackup) else None

    @property
    def is_in_place(self) -> bool:
        """Whether a person gives up the data of a cluster that serves."""
        return self.authority == "InPlace"

    @property
    def is_automatic(self) -> bool:
        """Whether members were given up without a person."""
        return self.authority == "Automatic"

    @property
    def is_at_creation(self) -> bool:
        """Whether a new cluster begins with a backup: no other cluster is given up."""
        return self.authority == "Creation"

    def sources_among(self, alarms: frozenset[str]) -> frozenset[str]:
        """Those of these IDs whose data this recovery, or one before it, restored although it was corrupt."""
        return alarms.intersection(self.corrupt_sources)

    def is_under_way(self, cluster_id: str) -> bool:
        """Whether it has not ended. cluster_id: the one on record; empty if there is none."""
        return self.replaces == cluster_id

    def gives_up(self, cluster_id: str) -> bool:
        """Whether this ID is of the etcd cluster that it gives up."""
        return bool(cluster_id) and cluster_id == self.replaces

    @property
    def replaces_cluster(self) -> bool:
        """Whether it gives up an etcd cluster: not at creation, nor where it has ended without a change."""
        return bool(self.replaces)

    @property
    def given_up_ids(self) -> tuple[str, ...]:
        """The IDs of the etcd clusters that this recovery and those before it give up."""
        return (*self.former, self.replaces) if self.replaces else self.former


def recovery_token(uid: str, generation: int) -> str:
    """The token of the cluster that a recovery makes; uid: of the resource. No other cluster has it."""
    return f"{uid}-{generation}"


def is_recovery_token(uid: str, token: str) -> bool:
    """Whether a token is that of some recovery of the resource with this UID."""
    generation = token.removeprefix(f"{uid}-")
    return token != generation and generation.isdecimal()
