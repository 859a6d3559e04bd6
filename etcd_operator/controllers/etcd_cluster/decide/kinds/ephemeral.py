"""Ephemeral members: bare pods, whose data ends with them."""

from etcd_operator.api.recoveries import Recovery
from etcd_operator.controllers.etcd_cluster.decide.kinds.protocol import Kind, Numbers
from etcd_operator.controllers.etcd_cluster.decide.members import Member, PodFacts


class _Ephemeral(Kind):
    """See `kinds.protocol.Kind`."""

    def next_ordinal(self, numbers: Numbers) -> int:
        """One that was never used: neither recorded as used nor that of a member."""
        return max(numbers.unused, *(number + 1 for number in numbers.known), 0)

    def departure(self, member: Member) -> int:
        """The oldest first."""
        return member.ordinal

    def is_made(self, member: Member) -> bool:
        return member.pod is not None

    def has_ended(self, member: Member) -> bool:
        """A pod that failed for good: no controller makes another one."""
        return member.pod is not None and member.pod.is_finished

    def storage_of(self, member: Member) -> PodFacts | None:
        return member.pod

    def may_keep_data(self, member: Member) -> bool:
        return member.pod is not None and not member.pod.is_finished

    def is_storage_lost(self, member: Member) -> bool:
        """Its pod is gone, or will never run again; one that is being deleted never comes back."""
        pod = member.pod
        if pod is None or pod.is_finished or pod.is_on_lost_node:
            return True
        return pod.is_terminating and member.answer is None

    def is_loss_confirmed(self, member: Member) -> bool:
        """Its data goes with its pod, so no other pod could confirm it."""
        del member
        return True

    def node_to_check(self, member: Member) -> str:
        pod = member.pod
        return pod.node if pod is not None and not pod.is_on_lost_node else ""

    def is_final_seed(self, seed: Member, recovery: Recovery, *, serves: bool) -> bool:
        """Its pod keeps that."""
        del recovery, serves
        return seed.pod is not None and seed.pod.is_final_seed

    def is_seed_lost(self, seed: Member, *, is_final: bool, is_filled: bool) -> bool:
        del is_final, is_filled
        return not self.may_keep_data(seed)

    def is_retired(self, member: Member, *, may_run: bool) -> bool:
        is_routed = member.pod is not None and member.pod.is_routed
        return member.is_terminating and not (may_run and is_routed)


EPHEMERAL: Kind = _Ephemeral(
    digits=4,
    has_member_services=True,
    reuses_numbers=False,
    can_prove_loss=True,
    data_is_as_old_as_pod=True,
    outlives_pod=False,
    may_be_taken_over=False,
    # One that is lost with acknowledged writes must not be taken for one that never served.
    opens_seed_last=True,
    storage_word="pods",
    kubectl_kinds="pod,service",
    kubectl_runs="pod",
    restarts_in_place=True,
)
