"""How the etcd of a member starts for the first time: the closed set of ways."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class _Start:
    """token: `--initial-cluster-token`."""

    token: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Bootstrapping(_Start):
    """Start as one of the initial members: `--initial-cluster-state=new`, the whole list, their token."""

    initial_members: tuple[str, ...]


class Resuming(_Start):
    """Start from the data on the volume; refuse to start without it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Joining(_Start):
    """Start as a member that etcd's list already names: `existing`, with that whole list."""

    members: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Seeding(_Start):
    """Start as the only member of a new cluster, from a snapshot of a survivor of the old one."""

    survivor: str


Start = Bootstrapping | Resuming | Joining | Seeding
