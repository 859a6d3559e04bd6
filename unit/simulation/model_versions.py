"""The versions of etcd in the model, and what their processes do on a data directory.

As measured, and as etcd's source has it: all members share one cluster version, a minor version, which goes
up when all of them run a later one, and never down; a process of an earlier minor version refuses to start
on such data, and such members refuse it; 3.7 panics on log entries of 3.5, unless a raft snapshot lies
behind them.
"""

from dataclasses import dataclass, field

GOOD = ("3.5.31", "3.5.34", "3.5.90", "3.6.16", "3.6.17", "3.6.90", "3.7.3", "3.7.90")
BEST = {5: "3.5.90", 6: "3.6.90", 7: "3.7.90"}
"""The last of each minor version, which works."""
UNPULLABLE = ("3.5.55", "3.6.55", "3.7.55")
CRASHING = ("3.5.66", "3.6.66", "3.7.66")
"""Their processes end at once."""
REGRESSING = ("3.5.77", "3.6.77", "3.7.77")
"""These work until they are found to be bad; from then on they crash."""

SNAPSHOT_EVERY = 3000
"""Entries of the log between two raft snapshots; the real one takes 10000."""
KEPT = SNAPSHOT_EVERY // 2
"""Entries before its last snapshot that a leader still has; a member further behind gets the snapshot."""


def minor(version: str) -> int:
    """The second number."""
    return _numbers(version)[0]


FLOORS = {6: 32, 7: 11}
"""The patch of the previous minor version that all members need first."""


def is_reachable(running: str, wanted: str) -> bool:
    """Whether etcd can be taken from one version to another."""
    (before, low), (after, high) = _numbers(running), _numbers(wanted)
    if after == before:
        return high >= low
    return after == before + 1 and low >= FLOORS.get(after, 0)


def _numbers(version: str) -> tuple[int, int]:
    _, second, third = version.split(".")
    return int(second), int(third)


@dataclass(kw_only=True)
class Log:
    """What versions depend on in a log.

    minor: of the cluster version, 0 while there is none. old_at: index of the last entry that 3.5 wrote;
    saved_at: that of the last raft snapshot, which each member saves for itself.
    """

    minor: int = 0
    old_at: int = 0
    saved_at: int = 0


@dataclass(kw_only=True)
class Releases:
    """What is known about versions so far. found_bad: those of REGRESSING that crash by now."""

    found_bad: set[str] = field(default_factory=set)

    def is_crashing(self, version: str) -> bool:
        """Whether its processes end on any data."""
        return version in CRASHING or version in self.found_bad

    def complaint(self, version: str, log: Log) -> str:
        """What a process of a version logs when it ends on such data; empty if it does not end."""
        if self.is_crashing(version):
            return "panic: this version is bad"
        if log.minor > minor(version):
            return "invalid downgrade"
        return "panic: unmarshal should never fail" if cannot_read(version, log) else ""


def cannot_read(version: str, log: Log) -> bool:
    """Whether a process of a version finds entries that it cannot read."""
    return minor(version) >= 7 and log.old_at > log.saved_at
