"""The observed state of an EtcdPeer: all that a decision about its claim and ReplicaSet may depend on."""

from dataclasses import dataclass
from enum import Enum

from etcd_operator.controllers.etcd_cluster.decide.members import ClaimFacts


class Awaited(Enum):
    """What a peer is given time for.

    CLUSTER: caches may show a peer before its cluster, or before the token in its cluster's status. VOLUME:
    its claim is being bound.
    """

    CLUSTER = "cluster"
    VOLUME = "volume"


@dataclass(frozen=True, slots=True, kw_only=True)
class InitialPeer:
    """Another initial member of the bootstrap that a peer takes part in."""

    claim: ClaimFacts | None = None
    has_replica_set: bool = False

    @property
    def may_have_served(self) -> bool:
        """Whether its etcd may have been started."""
        return self.has_replica_set or is_started(self.claim)


@dataclass(frozen=True, slots=True, kw_only=True)
class PeerState:
    """What was observed of one EtcdPeer.

    deleting_for: seconds since its deletion was requested; None for a peer that is kept.
    is_for_cleanup: its member was removed for good, its claim goes with it.
    ownership_problem, content_problem: why it is no member of its cluster, and what in it is not as the
    operator writes it (see `decide.ownership`); empty for a peer that the operator made.
    token: etcd's initial cluster token of its member.
    is_initial: it bootstraps a cluster, together with `others`. is_seed: it starts from a survivor's data.
    claim: the claim of its name; cluster_claims: all claims of its cluster.
    has_replica_set: there is a ReplicaSet of its name, made for this very peer.
    is_template_current: that ReplicaSet's template is the one that would be rendered now.
    awaited, waited: what the last pass waited for, and for how many seconds passes have done so.
    """

    name: str
    token: str = ""
    deleting_for: float | None = None
    is_for_cleanup: bool = False
    ownership_problem: str = ""
    content_problem: str = ""
    is_initial: bool = False
    is_seed: bool = False
    others: tuple[InitialPeer, ...] = ()
    claim: ClaimFacts | None = None
    cluster_claims: tuple[ClaimFacts, ...] = ()
    has_replica_set: bool = False
    is_template_current: bool = True
    awaited: Awaited | None = None
    waited: float = 0.0

    @property
    def is_acted_on(self) -> bool:
        """Whether its objects are made and kept: it is not deleted, and is as the operator makes peers."""
        return self.deleting_for is None and not self.ownership_problem and not self.content_problem

    @property
    def is_members(self) -> bool:
        """Whether it is a member's, or was when its ReplicaSet was made, as only the operator does."""
        return not self.ownership_problem or self.has_replica_set

    @property
    def lacks_claim(self) -> bool:
        """Whether it has no claim, or only one that is being deleted."""
        return self.claim is None or self.claim.is_terminating

    @property
    def is_restored(self) -> bool:
        """Whether its data directory is that of a seed.

        Only the claim outlives everything: a peer that is made again does not know what it once was.
        """
        return self.is_seed or (self.claim is not None and self.claim.is_restored)

    @property
    def is_root_owned(self) -> bool:
        """Whether etcd is root on its claim (see `manifests.security`).

        A claim that is to be made is like the others of its cluster. So a cluster whose storage suits only
        root grows, is healed and is recovered as before.
        """
        if self.claim is not None:
            return not self.claim.is_for_non_root
        return any(not claim.is_for_non_root for claim in self.cluster_claims)

    def waited_for(self, what: Awaited) -> float:
        """For how many seconds passes have waited for it, up to now."""
        return self.waited if self.awaited is what else 0.0


def is_started(claim: ClaimFacts | None) -> bool:
    """Whether a claim is annotated as started: its member may have run on it."""
    return claim is not None and claim.is_started is True
