"""The names of members: `CLUSTER-NUMBER`."""


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
