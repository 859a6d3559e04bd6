"""The names of recoveries and restores in place: a person requests one by its name, and claims keep it.

    <ID of the etcd cluster that is given up>/<survivor, or backup>/<generation>

So a request that is left on the object, or in a manifest, never begins another recovery.
"""

from collections.abc import Iterable

from etcd_operator.api.persisted import Recovery
from etcd_operator.controllers.etcd_cluster.decide.members import ClaimFacts


def recovery_name(recovery: Recovery) -> str:
    """The name by which a person requests this recovery, and no other; also of a restore in place."""
    source = recovery.survivor
    if recovery.backup is not None:
        source = recovery.backup.name if recovery.in_place else f"backup:{recovery.backup.name}"
    return f"{recovery.replaces}/{source}/{recovery.generation}"


def cluster_id_in(name: str) -> str:
    """The ID of the etcd cluster that the recovery of this name gives up, hexadecimal."""
    return name.partition("/")[0]


def generation_in(name: str) -> int:
    """The generation of the recovery of this name; 0 for a text that is no such name."""
    generation = name.rpartition("/")[2]
    return int(generation) if generation.isdecimal() else 0


def claims_kept_by(name: str, kept: Iterable[ClaimFacts]) -> list[str]:
    """The claims of the members that the recovery of this name gave up."""
    return sorted(claim.name for claim in kept if claim.given_up_by == name)
