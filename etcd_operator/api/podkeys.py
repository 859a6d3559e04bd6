"""The keys that the operator writes on the pods of members.

Annotations determine how etcd starts. The kubelet copies them to etcd's environment at every start of
the container (downward API), so the operator can switch a running pod to an existing-only start, and
change how clients are served. One condition reports whether the member serves. A readiness gate of the
pod requires it, so a disruption budget counts members as etcd sees them.
"""

from dataclasses import dataclass

EXISTING = "existing"
"""The value of `--initial-cluster-state` for all but the initial members."""


@dataclass(frozen=True, slots=True)
class PodKeys:
    """The keys of one API group."""

    group: str

    @property
    def serves(self) -> str:
        """The condition: a started, voting, healthy member."""
        return f"{self.group}/member-serves"

    def of(self, option: str) -> str:
        """The annotation for an option of etcd."""
        return f"{self.group}/{option}"

    @property
    def initial_cluster(self) -> str:
        """The annotation for `--initial-cluster`."""
        return self.of("initial-cluster")

    @property
    def initial_cluster_state(self) -> str:
        """The annotation for `--initial-cluster-state`."""
        return self.of("initial-cluster-state")

    def existing_only(self, name: str, peer_url: str) -> dict[str, str]:
        """The annotations of an existing-only start."""
        return {self.initial_cluster: f"{name}={peer_url}", self.initial_cluster_state: EXISTING}

    def is_existing_only(self, annotations: dict[str, str]) -> bool:
        """Whether these annotations are those of an existing-only start."""
        members = annotations.get(self.initial_cluster, "")
        is_alone = members.count("=") == 1 and "," not in members
        return is_alone and annotations.get(self.initial_cluster_state) == EXISTING
