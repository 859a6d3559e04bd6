"""What a group writes on the pods of its members, and under which names.

A member's pod carries three marks. How its etcd starts stands in two annotations, from which
the kubelet fills etcd's environment anew at every start of the container: so a running pod
can be told to refuse an empty volume from now on. Whether the member serves stands in a
condition that a readiness gate of the pod asks for: so a disruption budget counts members as
etcd sees them.
"""

from dataclasses import dataclass

NEW, EXISTING = "new", "existing"
"""The values of `--initial-cluster-state`."""


@dataclass(frozen=True, slots=True)
class PodKeys:
    """The names of the marks of one API group."""

    group: str

    @property
    def serves(self) -> str:
        """The condition: a started, voting, healthy member."""
        return f"{self.group}/member-serves"

    @property
    def initial_cluster(self) -> str:
        """The annotation for `--initial-cluster`."""
        return f"{self.group}/initial-cluster"

    @property
    def initial_cluster_state(self) -> str:
        """The annotation for `--initial-cluster-state`."""
        return f"{self.group}/initial-cluster-state"

    def refusing(self, name: str, peer_url: str) -> dict[str, str]:
        """The annotations of a member that starts from its data and refuses to start without."""
        return {self.initial_cluster: f"{name}={peer_url}", self.initial_cluster_state: EXISTING}

    def is_refusing(self, annotations: dict[str, str]) -> bool:
        """Whether these annotations let a member start from its data only."""
        members = annotations.get(self.initial_cluster, "")
        is_alone = members.count("=") == 1 and "," not in members
        return is_alone and annotations.get(self.initial_cluster_state) == EXISTING
