"""Members as values: Kubernetes objects joined with the replies of etcd, and quorum arithmetic.

"No answer" is a value of its own (`answer is None`): it never means that a member does
not exist.
"""

from dataclasses import dataclass
from enum import Enum

from etcd_operator.controllers.etcd_cluster.decide.member_names import ordinal_of
from etcd_operator.controllers.etcd_cluster.decide.recovery.survivor_reader import ReaderFacts, Reading
from etcd_operator.controllers.etcd_cluster.decide.replies import Answer, EtcdMember, Refusal


def quorum(voters: int) -> int:
    """How many of `voters` must agree."""
    return voters // 2 + 1


class Health(Enum):
    """What the last probe of a member showed."""

    HEALTHY = "healthy"
    UNHEALTHY = "unhealthy"
    REFUSED = "requires authentication"
    NO_ANSWER = "no answer"


class PeerFinding(Enum):
    """What a pass over an EtcdPeer has found, where more than a message depends on it."""

    CLAIM_LOST = "its claim was lost"
    REFUSED = "it was changed by somebody"


@dataclass(frozen=True, slots=True, kw_only=True)
class PodProblem:
    """Why a pod does not run: a CamelCase reason and one sentence, as Kubernetes reports them or as we do.

    They are for people. finding: for decisions, of problems that the pass over an EtcdPeer reports.
    """

    reason: str
    message: str
    finding: PeerFinding | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchedBackup:
    """The backup that a seed has fetched. time: RFC 3339. age: seconds that it was old then."""

    name: str
    time: str
    revision: int
    sha256: str
    age: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PodFacts:
    """A member's pod.

    has_run: its etcd has been started at least once. restarts: how often again.
    is_finished: it will never run again. is_on_lost_node: its node has been silent for too long.
    node: where it runs, if it was made so long ago that its node may have been silent for too long.
    is_assigned: the scheduler has chosen its node; without one nothing of it has ever run.
    creating_for: seconds since then, as long as none of its containers was started and Kubernetes reports no
    reason; 0 for all others.
    is_gated: it has the readiness gate. serves: the condition of that gate, None while it is not set.
    is_existing_only: a new process in it starts from its data only. has_no_data: its last process reported
    that it found none. has_broken_data: its last process reported that it cannot read what it found.
    can_never_join: its last process reported that its flags or its data do not let it join.
    has_fetched: the seed of a recovery has all of its survivor's data, or its backup. fetched: that backup,
    as far as the pod still shows it. is_final_seed: it was found to serve, and others may have been changed
    since.
    started_lately: its process is so young that clients may not have reconnected to it yet.
    is_routed: the Service for clients selects it.
    version: of etcd, the one in the pod of an ephemeral member. reader: the last one that was added to it.
    """

    name: str
    uid: str
    ip: str = ""
    is_running: bool = False
    has_run: bool = False
    restarts: int = 0
    has_restarted: bool = False
    is_finished: bool = False
    is_on_lost_node: bool = False
    node: str = ""
    is_assigned: bool = True
    creating_for: float = 0.0
    is_terminating: bool = False
    is_gated: bool = False
    serves: bool | None = None
    is_existing_only: bool = False
    has_no_data: bool = False
    has_broken_data: bool = False
    can_never_join: bool = False
    has_fetched: bool = False
    fetched: FetchedBackup | None = None
    is_final_seed: bool = False
    started_lately: bool = False
    is_routed: bool = True
    problem: PodProblem | None = None
    version: str = ""
    reader: ReaderFacts | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Unlabelled:
    """A pod that runs a member of this cluster and lacks labels by which it is known."""

    name: str
    uid: str
    member: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimFacts:
    """A persistent member's claim and the annotations of earlier bootstraps (empty without them).

    voters: who voted when that was last written, as `name=ID`; of two the larger voters_revision is newer.
    given_up_by: the name of the recovery that gave its member up; empty for all others.
    missing_in: the pod (its UID) that reported that the data is missing; empty since the member runs on it.
    is_started: whether an initial member may have run on it; None where that is not written.
    cluster_uid: of the EtcdCluster that it was made for.
    version: of etcd, the last one that was started on it.
    is_restored: its data directory is that of a seed. is_for_non_root: made for an etcd that is not root.
    """

    name: str
    uid: str
    is_bound: bool = False
    is_lost: bool = False
    is_terminating: bool = False
    is_started: bool | None = None
    cluster_uid: str = ""
    token: str = ""
    initial_members: tuple[str, ...] = ()
    cluster_id: str = ""
    member_id: str = ""
    voters: tuple[str, ...] = ()
    voters_revision: int = 0
    missing_in: str = ""
    given_up_by: str = ""
    version: str = ""
    is_restored: bool = False
    is_for_non_root: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class PeerFacts:
    """A persistent member's EtcdPeer.

    is_existing_only: its etcd refuses to start without data. is_for_cleanup: its claim goes with it.
    """

    name: str
    uid: str
    is_existing_only: bool = False
    is_for_cleanup: bool = False
    is_terminating: bool = False
    version: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """One member: its objects, its entry in etcd's list, its own answer or its refusal to give one.

    has_replica_set: a persistent initial member that may have been started (see `decide.plan`).
    has_lost_claim: the pass over its EtcdPeer found its claim lost, and there is no pod.
    never_led: its only process so far is alive and has never seen a leader.
    silent_for: seconds since it last answered, or was first asked; 0 while it answers, and where it is not
    asked.
    problem: what keeps it from running.
    snapshots: raft snapshots that its process has saved; None where that was not needed, or not readable.
    reading: what was read of its data, now that it answers nobody; unreadable: why that cannot be read.
    followed_a_leader: its reader has found that since the quorum was lost; the operator does not reach it.
    endpoint: where a member that has no pod of ours serves clients (`host:port`).
    """

    name: str
    has_service: bool = False
    has_replica_set: bool = False
    has_lost_claim: bool = False
    peer: PeerFacts | None = None
    claim: ClaimFacts | None = None
    pod: PodFacts | None = None
    entry: EtcdMember | None = None
    answer: Answer | None = None
    refusal: Refusal | None = None
    never_led: bool = False
    silent_for: float = 0.0
    problem: PodProblem | None = None
    snapshots: int | None = None
    reading: Reading | None = None
    unreadable: str = ""
    followed_a_leader: bool = False
    endpoint: str = ""

    @property
    def named(self) -> str:
        """Its name for messages, with the reason of its problem: `c-1 (ImagePullBackOff)`."""
        return self.name if self.problem is None else f"{self.name} ({self.problem.reason})"

    @property
    def report(self) -> Answer | None:
        """What it answered, or what was read of its data."""
        if self.answer is not None or self.reading is None:
            return self.answer
        return self.reading.answer

    @property
    def revision(self) -> int:
        """The revision that it reports, of its newest change of data; 0 without a report."""
        return self.report.revision if self.report is not None else 0

    @property
    def has_voted(self) -> bool:
        """Whether it was found to vote, also where those that answer do not know that.

        Not once it was removed: its pod and its Service are deleted together then.
        """
        pod = self.pod
        return pod is not None and pod.serves is not None and (self.has_service or not pod.is_terminating)

    @property
    def may_have_served(self) -> bool:
        """Whether its etcd was started and nothing proves that it never followed a leader.

        An initial member without quorum accepts connections but answers nothing, so silence alone
        proves nothing. `never_led` does, where the data is as old as the pod.
        """
        if self.has_replica_set or (self.claim is not None and self.claim.is_started):
            return True
        return self.pod is not None and self.pod.has_run and not self.never_led

    @property
    def is_remade(self) -> bool:
        """Whether its pod is another one than that which first reported its data as missing."""
        claim, pod = self.claim, self.pod
        return claim is not None and pod is not None and claim.missing_in not in ("", pod.uid)

    @property
    def is_terminating(self) -> bool:
        """Whether all that is left of it is being deleted."""
        if self.peer is not None:
            return self.peer.is_terminating
        if self.has_service:
            return False
        return all(part.is_terminating for part in (self.pod, self.claim) if part is not None)

    @property
    def requested_version(self) -> str:
        """The version of etcd in its objects; empty without them."""
        source = self.peer or self.pod
        return source.version if source is not None else ""

    @property
    def has_terminating_peer(self) -> bool:
        """Whether its EtcdPeer is being deleted, as when it is made again at another version."""
        return self.peer is not None and self.peer.is_terminating

    @property
    def is_running(self) -> bool:
        """Whether its process runs, as the kubelet reports it."""
        return self.pod is not None and self.pod.is_running

    @property
    def serves_requested_version(self) -> bool:
        """Whether it is healthy and runs the version that its objects ask for."""
        running = self.answer.version if self.answer is not None else ""
        return self.is_healthy and not self.has_terminating_peer and running == self.requested_version

    @property
    def id(self) -> str:
        """Its ID in etcd's list, hexadecimal; empty while it is not listed."""
        return self.entry.id if self.entry is not None else ""

    @property
    def ordinal(self) -> int:
        """Its number."""
        return ordinal_of(self.name)

    @property
    def health(self) -> Health:
        """Healthy is: it answers, follows a leader, reports no error, and no alarm names it."""
        if self.answer is None:
            return Health.NO_ANSWER if self.refusal is None else Health.REFUSED
        return Health.UNHEALTHY if self.answer.is_unhealthy else Health.HEALTHY

    @property
    def is_healthy(self) -> bool:
        """Whether the last probe found it healthy."""
        return self.health is Health.HEALTHY

    @property
    def is_serving(self) -> bool:
        """Whether it serves clients: it is healthy, or proved as much although it requires authentication."""
        return self.is_healthy or (self.refusal is not None and self.refusal.is_serving)
