"""Version skew: which version may follow which, by etcd's own rules.

etcd goes up one minor version at a time and never back. As long as one member still runs
the lowest version, etcd's cluster version has not moved, and the way back to that version
is open: so everything is judged from the lowest version that runs.
"""

from semver import Version

from etcd_operator.api.definitions.limits import PATCH_FLOORS
from etcd_operator.controllers.etcd_cluster.decide.desired import DesiredCluster
from etcd_operator.controllers.etcd_cluster.decide.fact import fact
from etcd_operator.controllers.etcd_cluster.decide.state import ClusterState

UNREADABLE_BY = 7
"""The minor version that panics on log entries written by 3.5, at each start (measured)."""


@fact
def skew_refusal(state: ClusterState) -> str:
    """Why the desired version cannot be reached from what runs; empty if it can."""
    running = state.lowest_version
    return refusal(running, Version.parse(state.desired.version)) if running is not None else ""


def refusal(running: Version, target: Version) -> str:
    """Why etcd cannot be taken from `running` to `target`, and what to do; empty if it can."""
    if target < running:
        return (
            f"etcd cannot go back from {running}, which runs, to {target}: set spec.version to {running} or "
            "a later version"
        )
    if target.minor > running.minor + 1:
        return (
            f"etcd goes up one minor version at a time: before {target} "
            f"take the cluster from {running} to 3.{running.minor + 1}"
        )
    floor = PATCH_FLOORS.get(target.minor, 0)
    if target.minor > running.minor and running.patch < floor:
        return (
            f"3.{target.minor} needs 3.{running.minor}.{floor} or later on every member first, "
            f"and {running} runs: before {target} take the cluster to 3.{running.minor}.{floor} or later"
        )
    return ""


def joining_version(state: ClusterState) -> str:
    """The version that a new member starts with: the lowest that runs, else the desired one.

    A member that joins gets the leader's log as it is, and a leader of an older minor version may
    hold entries that the newer one cannot read (3.7 panics on those of 3.5). The upgrade that is
    under way takes it to the desired version like the others.
    """
    running = state.lowest_version
    return str(running) if running is not None else state.desired.version


def needs_snapshots(cluster: DesiredCluster) -> bool:
    """Whether the desired version cannot read what the cluster's initial members may have written."""
    bootstrap = cluster.persisted.bootstrap
    initial = bootstrap.version if bootstrap is not None else ""
    return minor(cluster.version) >= UNREADABLE_BY and (not initial or minor(initial) < UNREADABLE_BY - 1)


def has_old_entries(version: str) -> bool:
    """Whether a member that runs `version` may have unreadable entries in its log."""
    return minor(version) < UNREADABLE_BY


def lacks_snapshot(cluster: DesiredCluster, version: str) -> bool:
    """Whether a member that runs, or was to run, `version` cannot yet run the desired one (`upgrade.step`).

    It has to serve first: only then can it save the raft snapshot that the desired version needs.
    """
    return needs_snapshots(cluster) and has_old_entries(version)


def minor(version: str) -> int:
    """The second number of a version as etcd writes it; 0 for what is not a version."""
    return Version.parse(version).minor if Version.is_valid(version) else 0


def is_earlier(version: str, than: str) -> bool:
    """Whether a version comes before another one; False if one of them is not a version."""
    return Version.is_valid(version) and Version.is_valid(than) and Version.parse(version) < than
