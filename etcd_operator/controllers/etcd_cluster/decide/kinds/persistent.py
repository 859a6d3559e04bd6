"""Persistent members: EtcdPeers, whose data is on claims that outlive pods, nodes and the cluster."""

from etcd_operator.controllers.etcd_cluster.decide.kinds.protocol import Kind, Numbers
from etcd_operator.controllers.etcd_cluster.decide.members import ClaimFacts, Member


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
    restarts_in_place=False,
)
