"""What all controllers know of clusters of both API groups."""

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
