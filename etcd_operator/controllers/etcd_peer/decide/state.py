"""The observed state of an EtcdPeer: all that a decision about its claim and ReplicaSet may depend on."""

from dataclasses import dataclass
from enum import Enum

from etcd_operator.controllers.etcd_cluster.decide.members import ClaimFacts


class Awaited(Enum):
    """What a peer is given time for."""

    CLUSTER = "cluster"  # caches may show a peer before it, or before the token in its status
    VOLUME = "volume"  # its claim is being bound


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
    """What was observed of one EtcdPeer."""

    name: str
    token: str = ""  # etcd's initial cluster token of its member
    deleting_for: float | None = None  # seconds since its deletion was requested
    is_for_cleanup: bool = False  # its member was removed for good, its claim goes with it
    ownership_problem: str = ""  # why it is no member of its cluster, see `decide.ownership`
    content_problem: str = ""  # what in it is not as the operator writes it
    is_initial: bool = False  # it bootstraps a cluster, together with `others`
    is_seed: bool = False  # it starts from a survivor's data
    others: tuple[InitialPeer, ...] = ()
    claim: ClaimFacts | None = None  # the claim of its name
    cluster_claims: tuple[ClaimFacts, ...] = ()  # all claims of its cluster
    has_replica_set: bool = False  # there is a ReplicaSet of its name, made for this very peer
    is_template_current: bool = True  # the template of that ReplicaSet would be rendered now
    awaited: Awaited | None = None  # what the last pass waited for
    waited: float = 0.0  # for how many seconds passes have waited for that

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
