"""What the status of a cluster reports: for tests, the benchmark and the chaos monkey alike."""

from typing import Any

Object = dict[str, Any]

SETTLED = {"Available": "True", "Progressing": "False", "Degraded": "False"}


def condition(stored: Object | None, kind: str) -> Object:
    """One condition of a stored object; all fields empty if it is not there."""
    conditions = (stored or {}).get("status", {}).get("conditions", [])
    found = [each for each in conditions if each["type"] == kind]
    return found[0] if found else {"type": kind, "status": "", "reason": "", "message": ""}


def is_settled(cluster: Object | None) -> bool:
    """Whether the status reports that the cluster is as declared and nothing is under way."""
    return all(condition(cluster, kind)["status"] == status for kind, status in SETTLED.items())


def is_observed(cluster: Object | None) -> bool:
    """Whether the status is about the newest spec."""
    generation = (cluster or {}).get("metadata", {}).get("generation")
    observed = condition(cluster, "Progressing").get("observedGeneration")
    return observed is not None and bool(observed == generation)


def is_available(cluster: Object | None) -> bool:
    """Whether the status reports a quorum."""
    return bool(condition(cluster, "Available")["status"] == "True")
