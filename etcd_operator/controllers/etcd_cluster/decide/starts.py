"""How the process of a member is started: what its etcd begins with."""

from dataclasses import dataclass

from etcd_operator.api.recoveries import REVISION_BUMP, Source


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
class Seeding:
    """Start as the only member of a new cluster, from the data of a survivor or a backup."""

    token: str
    source: Source
    reader: str = ""
    """The host at which a survivor that answers nobody is read; known when the seed is created."""
    bump: int = REVISION_BUMP
    """How much higher revisions are in the new cluster."""


Start = Bootstrapping | Resuming | Joining | Seeding
