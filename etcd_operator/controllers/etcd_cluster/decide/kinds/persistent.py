"""Persistent members: EtcdPeers, whose data is on claims that outlive pods, nodes and the cluster."""

from etcd_operator.api.recoveries import Recovery
from etcd_operator.controllers.etcd_cluster.decide.kinds.protocol import Kind, Numbers
from etcd_operator.controllers.etcd_cluster.decide.members import ClaimFacts, Member
from etcd_operator.controllers.etcd_cluster.decide.recovery.ending import was_found_to_serve


class _Persistent(Kind):
    """See `kinds.protocol.Kind`."""

    def next_ordinal(self, numbers: Numbers) -> int:
        """The lowest that is free.

        What a recovery deletes may stay for as long as its node is silent: others come first.
        """
        count = max(len(numbers.taken) + 1, numbers.size)
        free = [number for number in range(count) if number not in numbers.taken]
        ready = [number for number in free if number < numbers.size and number not in numbers.leaving]
        return (ready or free)[0]

    def departure(self, member: Member) -> int:
        """The highest number first."""
        return -member.ordinal

    def is_made(self, member: Member) -> bool:
        return member.peer is not None

    def has_ended(self, member: Member) -> bool:
        """Never: its ReplicaSet makes another pod."""
        del member
        return False

    def storage_of(self, member: Member) -> ClaimFacts | None:
        return member.claim

    def may_keep_data(self, member: Member) -> bool:
        return member.claim is not None

    def is_storage_lost(self, member: Member) -> bool:
        """The claim is gone, or its volume is.

        A peer without a ReplicaSet is only just being made: its claim is late, not lost.
        """
        if member.claim is not None:
            return member.claim.is_lost
        return member.peer is None or member.has_replica_set or member.has_lost_claim

    def is_loss_confirmed(self, member: Member) -> bool:
        """By a second pod: in the first one the volume may merely not have been mounted.

        Not where the claim is being deleted: no other pod can use it, and it ends with this one.
        """
        return member.claim is None or member.claim.is_terminating or member.is_remade

    def node_to_check(self, member: Member) -> str:
        """None: its data outlives nodes."""
        del member
        return ""

    def is_final_seed(self, seed: Member, recovery: Recovery, *, serves: bool) -> bool:
        """Its claim has the ID of the new cluster: the point of no return.

        Where the claim is being deleted only as long as the seed serves, and stays: it will not start again.
        An etcd answers for a while after its deletion has begun.
        """
        claim, pod, peer = seed.claim, seed.pod, seed.peer
        if claim is None or not was_found_to_serve(claim, recovery):
            return False
        stays = pod is not None and not pod.is_terminating and peer is not None and not peer.is_terminating
        return not claim.is_terminating or (stays and serves)

    def is_seed_lost(self, seed: Member, *, is_final: bool, is_filled: bool) -> bool:
        """A part of it was removed before it served."""
        if is_final:
            return False
        claim, peer = seed.claim, seed.peer
        if peer is None or peer.is_terminating:
            return True
        if claim is None:
            return seed.has_replica_set or is_filled
        if is_filled and not claim.is_restored:
            return True  # another, empty one
        return claim.is_lost or claim.is_terminating

    def is_retired(self, member: Member, *, may_run: bool) -> bool:
        """Its claim is part of it."""
        del may_run
        if member.peer is not None and not member.peer.is_terminating:
            return False
        cleans = member.peer is not None and member.peer.is_for_cleanup
        return cleans or member.claim is None or member.claim.is_terminating


PERSISTENT: Kind = _Persistent(
    digits=1,
    has_member_services=False,
    reuses_numbers=True,
    can_prove_loss=False,
    data_is_as_old_as_pod=False,
    outlives_pod=True,
    may_be_taken_over=True,
    opens_seed_last=False,
    storage_word="claims",
    kubectl_kinds="pvc,etcdpeer",  # what the first one leaves behind is not created again for it
    kubectl_runs="etcdpeer,replicaset,pod",
    restarts_in_place=False,
)
