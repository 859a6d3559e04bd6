"""Data that differs between members, as etcd reports it (alarm CORRUPT), in words for people."""

from etcd_operator.controllers.etcd_cluster.decide.state import ClusterState
from etcd_operator.etcd.values import ANYBODY


def data_corrupt(state: ClusterState) -> tuple[str, str]:
    """Reason and message for data that differs between members."""
    known = {member.id: member.name for member in (*state.members, *state.external) if member.id}
    known |= {named: f"a member that a recovery restored, ID {named}" for named in state.corrupt_sources}
    names = sorted(known.get(named, f"a member that was removed, ID {named}") for named in state.corrupt)
    whose = "of some member" if ANYBODY in state.corrupt else f"of {', '.join(names)}"
    if state.corrupt == state.corrupt_sources:
        return "DataCorrupt", (
            f"all members have the data {whose}, which etcd reported as corrupt (alarm CORRUPT), and accept "
            "no writes: if the data is right, run `etcdctl alarm disarm`; if not, restore a backup"
        )
    return "DataCorrupt", (
        f"etcd found that the data {whose} differs, and accepts no writes (alarm CORRUPT): a named member "
        "is replaced while a quorum of others agrees; otherwise compare `etcdctl endpoint hashkv --cluster`, "
        "remove the member that is wrong, then run `etcdctl alarm disarm`"
    )


def seed_corrupt(recovery: str, seed: str) -> tuple[str, str]:
    """Reason and message for the only member of a new cluster, which it cannot be compared with."""
    message = (
        f"{recovery}; etcd reports the data of {seed} as corrupt (alarm CORRUPT), and accepts no writes: "
        f"if its data is right, run `etcdctl alarm disarm` in the pod of {seed}"
    )
    return "DataCorrupt", message
