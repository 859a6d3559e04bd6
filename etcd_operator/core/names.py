"""How members are named and numbered in each kind of cluster."""

from etcd_operator.core.desired import DesiredCluster


def member_name(cluster: DesiredCluster, ordinal: int) -> str:
    """Persistent: `my-cluster-0`. Ephemeral: `my-cluster-0000`, four digits at least."""
    return f"{cluster.name}-{ordinal:0{cluster.kind.digits}d}"


def initial_member_names(cluster: DesiredCluster) -> tuple[str, ...]:
    """The names of the initial members, by number."""
    return tuple(member_name(cluster, ordinal) for ordinal in range(cluster.size))
