"""Members as values: Kubernetes objects joined with the replies of etcd, and quorum arithmetic.

"No answer" is a value of its own (`answer is None`): it never means that a member does
not exist.
"""

from dataclasses import dataclass
from datetime import datetime
from enum import Enum

from etcd_operator.api.tls import PeerMode
from etcd_operator.controllers.etcd_cluster.decide.recovery.observed import ReaderFacts, Reading
from etcd_operator.controllers.etcd_cluster.decide.replies import Answer
from etcd_operator.controllers.etcd_cluster.decide.serving import Serving
from etcd_operator.controllers.shared.decide.clusters import ordinal_of
from etcd_operator.etcd.values import EtcdMember, Refused


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
    """Why a pod does not run, in words for people: as Kubernetes reports it, or as we do."""

    reason: str  # CamelCase
    message: str  # one sentence
    until: str = ""  # when Kubernetes starts its container again, if it says so
    finding: PeerFinding | None = None  # for decisions, where the pass over an EtcdPeer reports the problem


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchedBackup:
    """The backup that a seed has fetched."""

    name: str
    time: str  # RFC 3339
    revision: int
    sha256: str
    age: int  # seconds that it was old when it was fetched


@dataclass(frozen=True, slots=True, kw_only=True)
class PodFacts:
    """A member's pod."""

    name: str
    uid: str
    ip: str = ""
    is_running: bool = False
    has_run: bool = False  # its etcd has been started at least once
    restarts: int = 0  # how often its etcd was started again
    has_restarted: bool = False
    is_finished: bool = False  # it will never run again
    is_on_lost_node: bool = False  # its node has been silent for too long
    # where it runs, if it was made so long ago that its node may have been silent for too long
    node: str = ""
    is_assigned: bool = True  # the scheduler has chosen its node; before that nothing of it has ever run
    # seconds since its node was chosen, or since none was found for it, while no container was started and
    # the kubelet reports no reason; else 0
    creating_for: float = 0.0
    is_terminating: bool = False
    is_gated: bool = False  # it has the readiness gate
    serves: bool | None = None  # the condition of the readiness gate; None while it is not set
    is_existing_only: bool = False  # a new process in it starts from its data only
    has_no_data: bool = False  # its last process reported that it found no data
    never_joined: bool = False  # it is to join, and its last process has ended: it found no data and no peer
    has_broken_data: bool = False  # its last process reported that it cannot read the data that it found
    can_never_join: bool = False  # its last process reported that its flags or its data do not let it join
    has_fetched: bool = False  # this seed of a recovery has all of its survivor's data, or its backup
    # the backup that this seed has fetched, as far as the pod still shows it
    fetched: FetchedBackup | None = None
    is_final_seed: bool = False  # this seed was found to serve, and others may have been changed since
    created: datetime | None = None  # by the clock of the API server
    started_lately: bool = False  # its process is so young that clients may not have reconnected to it yet
    is_routed: bool = True  # the Service for clients selects it
    problem: PodProblem | None = None
    version: str = ""  # of etcd, the one in an ephemeral member's pod
    is_stopped: bool = False  # its etcd was ended, and its data is kept
    is_restarting: bool = False  # its etcd is ended, to be started again
    # how its etcd connects to its peers; None where that is not known or cannot be changed
    peers: PeerMode | None = None
    # how its etcd serves clients; None where that is not known or cannot be changed
    serving: Serving | None = None
    loaded: str = ""  # the CAs that its etcd has loaded, as text; empty if that is not known
    reader: ReaderFacts | None = None  # the last one that was added to it


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimFacts:
    """A persistent member's claim, with its annotations; what these do not record is empty."""

    name: str
    uid: str
    is_bound: bool = False
    is_lost: bool = False
    is_terminating: bool = False
    # whether an initial member may have run on it; None where that is not written
    is_started: bool | None = None
    cluster_uid: str = ""  # of the EtcdCluster that it was made for
    token: str = ""
    initial_members: tuple[str, ...] = ()
    cluster_id: str = ""
    member_id: str = ""
    voters: tuple[str, ...] = ()  # who voted when that was last written, as `name=ID`
    voters_revision: int = 0  # of two records of voters the one with the larger revision is newer
    # the pod (its UID) that reported that the data is missing; empty since the member runs on it
    missing_in: str = ""
    given_up_by: str = ""  # the name of the recovery that gave its member up; empty for all others
    version: str = ""  # of etcd, the last one that was started on it
    is_restored: bool = False  # its data directory is that of a seed
    is_for_non_root: bool = False  # made for an etcd that is not root
    has_peer_tls: bool = False  # made for members whose peer URLs, which its data records, are https
    storage_class: str = ""  # empty: it has none, and there is no default one


@dataclass(frozen=True, slots=True, kw_only=True)
class PeerFacts:
    """A persistent member's EtcdPeer."""

    name: str
    uid: str
    is_existing_only: bool = False  # its etcd refuses to start without data
    is_for_cleanup: bool = False  # its claim goes with it
    is_terminating: bool = False
    version: str = ""
    has_other_storage: bool = False  # its claim would have another template now
    peers: PeerMode = "Disabled"  # how its etcd connects to its peers


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """One member: its objects, its entry in etcd's list, its own answer or its refusal to give one."""

    name: str
    has_service: bool = False
    # a persistent initial member that may have been started (see `decide.plan`)
    has_replica_set: bool = False
    has_lost_claim: bool = False  # the pass over its EtcdPeer found its claim lost, and there is no pod
    peer: PeerFacts | None = None
    claim: ClaimFacts | None = None
    pod: PodFacts | None = None
    entry: EtcdMember | None = None
    is_listed_elsewhere: bool = False  # all its peer URLs in etcd's list have other hosts than its own
    answer: Answer | None = None
    refusal: Refused | None = None
    never_led: bool = False  # its only process so far is alive and has never seen a leader
    # seconds since it last answered, or was first asked; 0 while it answers, or is not asked
    silent_for: float = 0.0
    problem: PodProblem | None = None  # what keeps it from running
    # raft snapshots that its process has saved; None where that was not needed, or not readable
    snapshots: int | None = None
    reading: Reading | None = None  # what was read of its data, now that it answers nobody
    unreadable: str = ""  # why its data cannot be read
    # its reader has found that since the quorum was lost; the operator does not reach it
    followed_a_leader: bool = False
    endpoint: str = ""  # where a member that has no pod of ours serves clients (`host:port`)

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
    def peers(self) -> PeerMode | None:
        """How it connects to its peers, as its objects say; None where that is not known."""
        if self.peer is not None:
            return self.peer.peers
        return self.pod.peers if self.pod is not None else None

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
    def has_terminating_claim(self) -> bool:
        """Whether its claim is being deleted: it is kept while a pod uses it, and goes with that pod."""
        return self.claim is not None and self.claim.is_terminating

    @property
    def is_running(self) -> bool:
        """Whether its process runs, as the kubelet reports it."""
        return self.pod is not None and self.pod.is_running

    @property
    def serves_requested_version(self) -> bool:
        """Whether it is healthy and runs the version that its objects ask for."""
        running = self.answer.version if self.answer is not None else ""
        if self.pod is not None and self.pod.is_restarting:
            return False
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
