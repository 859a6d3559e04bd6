"""What all controllers know of clusters of both API groups, and of members' names: `CLUSTER-NUMBER`."""

from dataclasses import dataclass
from typing import Protocol

from etcd_operator.api.meta import HasMetadata
from etcd_operator.api.persisted import ClusterStatus


class ClusterResource(HasMetadata, Protocol):
    """A stored cluster resource of either group."""

    @property
    def status(self) -> ClusterStatus:
        """Its status, of the type of its group."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Defaults:
    """The settings of the operator that apply to all clusters."""

    repository: str  # of etcd's images, without a tag
    version: str  # for specs without a version


def ordinal_of(name: str) -> int:
    """The number at the end of a member's name; names are compared by it, never as text.

    Raises ValueError for a name without one.
    """
    return int(name.rpartition("-")[2])


def member_name(cluster: str, ordinal: int, *, digits: int) -> str:
    """The name of a member of the cluster of that name. digits: how many its number has at least."""
    return f"{cluster}-{ordinal:0{digits}d}"


def is_member_name(name: str, cluster: str) -> bool:
    """Whether this is the name of a member of a cluster of that name: `CLUSTER-<number>`."""
    number = name.rpartition("-")[2]
    return cluster_of_member(name) == cluster and number.isdecimal() and number.isascii()


def cluster_of_member(name: str) -> str:
    """The name of the cluster of the member with this name."""
    return name.rpartition("-")[0]
