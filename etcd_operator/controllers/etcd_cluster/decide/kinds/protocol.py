"""What the rules ask of a kind of member."""

from abc import ABC, abstractmethod
from dataclasses import dataclass

from etcd_operator.api.recoveries import Recovery
from etcd_operator.controllers.etcd_cluster.decide.members import ClaimFacts, Member, PodFacts


@dataclass(frozen=True, slots=True, kw_only=True)
class Numbers:
    """The numbers of a cluster's members, from which that of a new member follows."""

    size: int  # the desired number of members
    taken: frozenset[int]  # of voters, and of claims that a recovery keeps
    leaving: frozenset[int]  # of members of a lost cluster that are still being deleted
    known: frozenset[int]  # of every member there is
    unused: int  # no number from this one on was ever used, as far as status records it


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind(ABC):
    """A kind of member. Pure; the same object for all clusters."""

    digits: int  # how many digits the number in a member's name has at least
    has_member_services: bool  # whether each member has a Service of its own
    # whether a new member may take the number of a former one; if not, status records the next
    reuses_numbers: bool
    # whether data can be proven to be gone for good, so that a lost quorum needs no person
    can_prove_loss: bool
    data_is_as_old_as_pod: bool  # whether a pod's first process shows all that a member has ever done
    outlives_pod: bool  # whether a member has objects that outlive its pod, and record what the pod's data is
    may_be_taken_over: bool  # whether members that another operator created may become members of ours
    # whether clients reach the seed of a recovery only after its cluster ID is on record
    opens_seed_last: bool
    storage_word: str  # what has the data, in messages; plural
    # what a person deletes of a member to give it up, in this order, as `kubectl` takes it
    kubectl_kinds: str
    kubectl_runs: str  # what runs members and has an owner, as `kubectl` takes it
    # whether an upgrade restarts the container in its pod: it is back before clients retry
    restarts_in_place: bool

    @abstractmethod
    def next_ordinal(self, numbers: Numbers) -> int:
        """The number of the next new member."""

    @abstractmethod
    def departure(self, member: Member) -> int:
        """When a cluster shrinks, the healthy member for which this is the smallest leaves first."""

    @abstractmethod
    def is_made(self, member: Member) -> bool:
        """Whether the object exists that the operator creates to run the member."""

    @abstractmethod
    def has_ended(self, member: Member) -> bool:
        """Whether its process has ended and nothing but the operator can start another one."""

    @abstractmethod
    def storage_of(self, member: Member) -> ClaimFacts | PodFacts | None:
        """The member's storage: the object that its data lives and dies with; None where it is missing."""

    @abstractmethod
    def may_keep_data(self, member: Member) -> bool:
        """Whether what an initial member wrote may still exist."""

    @abstractmethod
    def is_storage_lost(self, member: Member) -> bool:
        """Whether the storage of a member that etcd lists is gone for good."""

    @abstractmethod
    def is_loss_confirmed(self, member: Member) -> bool:
        """Whether a process that reports that its data is missing is believed."""

    @abstractmethod
    def node_to_check(self, member: Member) -> str:
        """The node with which its data is lost, where the pod does not show that; empty for none."""

    @abstractmethod
    def is_final_seed(self, seed: Member, recovery: Recovery, *, serves: bool) -> bool:
        """Whether a recovery is past the point of no return: its seed was found to serve, and is marked so.

        serves: whether the seed has all data now.
        """

    @abstractmethod
    def is_seed_lost(self, seed: Member, *, is_final: bool, is_filled: bool) -> bool:
        """Whether a seed that was created will never serve. is_filled: a Job restores to its claim."""

    @abstractmethod
    def is_retired(self, member: Member, *, may_run: bool) -> bool:
        """Whether nothing is left to delete of a member of the old cluster.

        may_run: it was given up although it may run; as long as it does, clients must not reach it.
        """
