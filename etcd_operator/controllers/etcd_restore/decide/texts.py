"""What the status of an EtcdRestore reports about it, in sentences."""

from etcd_operator.api.restores import Verified
from etcd_operator.controllers.etcd_restore.decide.state import ClaimState, RestoreState
from etcd_operator.formats import counted


def kept(state: RestoreState) -> str:
    """What stays after a failure, and what becomes of it."""
    annotated, owned = (
        ", ".join(member.name for member in state.members if member.claim is claim)
        for claim in (ClaimState.ANNOTATED, ClaimState.OURS)
    )
    resumed = f"an EtcdCluster {state.cluster_name} resumes on {annotated}" if annotated else ""
    deleted = f"{owned} will be deleted with this EtcdRestore" if owned else ""
    left = "; ".join(text for text in (resumed, deleted) if text)
    return f". The claims with restored data are kept: {left}" if left and state.is_handed_over else ""


def waiting(what: str) -> str:
    """What stands in the way until Kubernetes has deleted it."""
    return f"waiting until a former cluster or claims of this name are deleted: {what}"


def contents(snapshot: Verified) -> str:
    """What is in a snapshot, and how that was checked."""
    checked = {
        "manifest": "all hashes match",
        "hash": "there is no manifest, but etcd's hash matches",
        "none": "there is neither a manifest nor etcd's hash, so only the structure was checked",
    }
    keys = counted(snapshot.keys, "key")
    return f"revision {snapshot.revision}, {keys}, {checked.get(snapshot.check, snapshot.check)}"


def restored(state: RestoreState) -> str:
    """What a restore has made."""
    found = f" ({contents(state.snapshot)})" if state.snapshot is not None else ""
    members = counted(len(state.members), "member")
    return f"restored {members}, on which the EtcdCluster {state.cluster_name} resumes{found}"
