"""The objects of the modelled world as the facts that rules read."""

from dataclasses import dataclass, field

from etcd_operator.controllers.etcd_cluster.decide.fact import extended
from etcd_operator.controllers.etcd_cluster.decide.members import ClaimFacts, PeerFacts, PodFacts
from etcd_operator.controllers.etcd_cluster.decide.recovery.authority import (
    Missing,
    Moment,
    Serving,
    count_missed,
    count_served,
    missed,
)
from etcd_operator.controllers.etcd_cluster.decide.recovery.inquiry import Inquiry, inquire, known_backups
from etcd_operator.controllers.etcd_cluster.decide.recovery.observed import (
    NO_TOOL_BACKUPS,
    ReaderFacts,
    ToolBackups,
)
from etcd_operator.controllers.etcd_cluster.decide.recovery.proven import LONGEST_PAUSE
from etcd_operator.controllers.etcd_cluster.decide.state import ClusterState
from etcd_operator.etcd.values import EtcdMember
from unit.simulation.model import Peer, Resource
from unit.simulation.model_backups import Questions
from unit.simulation.model_disks import Disk
from unit.simulation.model_pods import Claim, Pod

READER = ReaderFacts(name="survivor-reader-1", is_running=True)


def is_existing_only(start: object) -> bool:
    """Whether flags are those of a member that refuses to start without its data."""
    return type(start).__name__ == "Resuming"


def list_of(disk: Disk) -> tuple[EtcdMember, ...]:
    """etcd's list as this member reports it; a member that has not started has no name yet."""
    return tuple(
        EtcdMember(
            id=entry.id,
            name=entry.name if entry.is_started else "",
            peer_urls=(peer_url_of(entry.name),),
            is_learner=entry.is_learner,
        )
        for entry in disk.members.values()
    )


def peer_url_of(name: str) -> str:
    return f"http://{name}:2380"


def name_at(url: str) -> str:
    return url.removeprefix("http://").removesuffix(":2380")


def claim_facts(name: str, claim: Claim) -> ClaimFacts:
    return ClaimFacts(
        name=name,
        uid=claim.uid,
        is_bound=True,
        is_terminating=claim.is_terminating,
        is_started=claim.is_started if claim.initial_members else None,
        cluster_uid=claim.cluster_uid,
        token=claim.token,
        initial_members=claim.initial_members,
        cluster_id=claim.cluster_id,
        member_id=claim.member_id,
        voters=claim.voters,
        voters_revision=claim.voters_revision,
        missing_in=claim.missing_in,
        given_up_by=claim.given_up,
        version=claim.version,
        is_restored=claim.is_restored,
    )


def peer_facts(name: str, peer: Peer) -> PeerFacts:
    return PeerFacts(
        name=name,
        uid=peer.uid,
        is_existing_only=is_existing_only(peer.start),
        is_for_cleanup=peer.is_for_cleanup,
        is_terminating=peer.is_terminating,
        version=peer.version,
    )


def pod_facts(pod: Pod) -> PodFacts:
    return PodFacts(
        name=pod.name,
        uid=pod.uid,
        ip="10.0.0.1",
        is_running=pod.is_running,
        has_run=pod.has_run,
        restarts=pod.restarts,
        has_restarted=pod.has_restarted,
        is_finished=pod.is_finished,
        is_on_lost_node=pod.is_on_lost_node,
        is_terminating=pod.is_terminating,
        is_gated=True,
        serves=pod.serves,
        has_no_data=pod.has_no_data,
        can_never_join=pod.can_never_join,
        never_joined=pod.never_joined,
        has_fetched=pod.has_fetched,
        fetched=pod.fetched,
        is_routed=pod.is_routed,
        problem=pod.problem,
        version=pod.version,
        reader=READER if pod.has_reader else None,
    )


PASS = 4.0
"""Seconds between two passes."""

SERVED = 1200.0
"""Seconds between two passes of a cluster that serves after an automatic recovery."""


@dataclass
class Memory:
    """Of one process."""

    missing: Missing | None = None
    serving: Serving | None = None
    inquiry: Inquiry | None = None
    questions: Questions = field(default_factory=Questions)
    passes: int = 0

    def counted(self, state: ClusterState) -> ClusterState:
        """As `recovery.absences` does, with a clock for each of the two."""
        self.passes += 1
        now, later = (Moment(epoch=0, monotonic=self.passes * gap, time="then") for gap in (PASS, SERVED))
        self.missing, absence = count_missed(self.missing, state, now, may_count=True)
        self.serving, served_for = count_served(self.serving, state, later)
        # No time passes here: that it is waited for is shown by tests of the rule.
        return extended(
            state, missed, absence=absence, served_for=served_for, attempted_for=float(LONGEST_PAUSE)
        )

    def tool_backups(self, state: ClusterState, resource: Resource) -> ToolBackups:
        """As `recovery.tool_backups` does."""
        self.inquiry, is_anew = inquire(self.inquiry, state, self.questions.report)
        if is_anew:
            self.questions = Questions()
        if self.inquiry is None or not resource.keeps_backups:
            return NO_TOOL_BACKUPS
        self.questions.ask(state.persisted.cluster_id)
        found = known_backups(
            self.inquiry,
            state,
            self.questions.report,
            is_answered=not self.questions.problem,
            problem=self.questions.problem,
            waited=self.questions.waited,
            recorded=resource.backup,
        )
        self.questions.wait()
        return found
