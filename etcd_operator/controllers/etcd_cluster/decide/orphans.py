"""Objects of a cluster that lack what shows whose they are: their labels, or their owner."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Unlabelled:
    """A pod that runs a member of this cluster and lacks labels by which it is known."""

    name: str
    uid: str
    member: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Orphan:
    """An object that was made for a cluster of this name, and has no owner any more."""

    kind: str
    name: str
    uid: str
    version: str = ""  # its resourceVersion
    token: str = ""  # of the etcd cluster that a Service of persistent members selects
