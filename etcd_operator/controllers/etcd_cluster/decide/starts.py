"""How the etcd of a member starts for the first time: the closed set of ways.

token: `--initial-cluster-token`.
"""

from dataclasses import dataclass

from etcd_operator.api.persisted import REVISION_BUMP, RestoredBackup


@dataclass(frozen=True, slots=True, kw_only=True)
class Bootstrapping:
    """Start as one of the initial members: `--initial-cluster-state=new`, the whole list, their token."""

    token: str
    members: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Resuming:
    """Start from the data on the volume; refuse to start without it."""

    token: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Joining:
    """Start as a member that etcd's list already names: `existing`, with that whole list."""

    token: str
    members: tuple[str, ...]
    # ID and peer URL of members that the operator did not create, once for each URL
    external: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class OfflineSurvivor:
    """A survivor that answers nobody, whose data is fetched from a reader beside it.

    sha256: of the database, as it was read. host, token: of the reader; known when the seed is created.
    """

    sha256: str
    host: str = ""
    token: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seeding:
    """Start as the only member of a new cluster, from a snapshot of a survivor of the old one, or a backup.

    survivor: empty for a backup. offline: where the survivor answers nobody. bump: how much higher revisions
    are in the new cluster.
    """

    token: str
    survivor: str = ""
    backup: RestoredBackup | None = None
    offline: OfflineSurvivor | None = None
    bump: int = REVISION_BUMP


Start = Bootstrapping | Resuming | Joining | Seeding
