"""The states of EtcdPeers that tests begin with."""

from typing import Any

from etcd_operator.controllers.etcd_cluster.decide.members import ClaimFacts
from etcd_operator.controllers.etcd_peer.decide.plan import AnnotateStarted
from etcd_operator.controllers.etcd_peer.decide.state import InitialPeer, PeerState
from unit.controllers.etcd_cluster.decide.builders import claim

TOKEN = claim("db-0").token
STARTED = AnnotateStarted(uid="claim-db-0")


def unstarted(name: str = "db-0", **changes: Any) -> ClaimFacts:
    """The claim of an initial member before its ReplicaSet is made."""
    return claim(name, **{"is_started": False, **changes})


def other(name: str, **changes: Any) -> InitialPeer:
    """Another initial member whose claim is there."""
    return InitialPeer(**{"claim": unstarted(name), **changes})


def initial(**changes: Any) -> PeerState:
    """An initial member of three, all of whose claims are there."""
    facts: dict[str, Any] = {
        "is_initial": True,
        "others": (other("db-1"), other("db-2")),
        "claim": unstarted(),
    }
    return PeerState(name="db-0", token=TOKEN, **(facts | changes))


def joining(**changes: Any) -> PeerState:
    """A member that joins a cluster which serves, with its claim."""
    return PeerState(name="db-0", token=TOKEN, **({"claim": claim("db-0")} | changes))


def running(**changes: Any) -> PeerState:
    """An initial member whose ReplicaSet is there."""
    return initial(**({"claim": claim("db-0", is_started=True), "has_replica_set": True} | changes))


KEPT = claim("db-0", given_up_by="recovery-1")
