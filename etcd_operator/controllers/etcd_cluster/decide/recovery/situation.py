"""Which members of a cluster without a quorum answer, which may still have data, and who may elect a leader.

A member answers, or its data was read (see `offline`): both is its report. Data on volumes may come back
whatever happened to pods and nodes, so of persistent members nothing is ever known to be lost. The data of
ephemeral members goes with their pods.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from etcd_operator.api.recoveries import Recovery
from etcd_operator.controllers.etcd_cluster.decide.fact import fact
from etcd_operator.controllers.etcd_cluster.decide.members import Member, quorum
from etcd_operator.controllers.etcd_cluster.decide.recovery.acts import ReadMember
from etcd_operator.controllers.etcd_cluster.decide.state import ClusterState
from etcd_operator.controllers.shared.decide.clusters import is_member_name, ordinal_of
from etcd_operator.etcd.values import ANYBODY

ELECTION = 10.0
"""Seconds without a quorum after which members that reach each other would have elected a leader."""


# Lists of members


def voters_of(state: ClusterState, responder: Member) -> tuple[str, ...]:
    """The names of the voters that a member lists; empty for one whose name is unknown."""
    return _listed(state, responder, is_learner=False)


def learners_of(state: ClusterState, responder: Member) -> tuple[str, ...]:
    """The same of its learners; there is one at most."""
    return _listed(state, responder, is_learner=True)


def _listed(state: ClusterState, responder: Member, *, is_learner: bool) -> tuple[str, ...]:
    listed = responder.report.members if responder.report is not None else ()
    by_id = {member.id: member.name for member in state.members if member.id}
    return tuple(e.name or by_id.get(e.id, "") for e in listed if e.is_learner is is_learner)


@fact
def kept_survivor(state: ClusterState) -> Member | None:
    """The source of a recovery that has ended, as long as its pod is kept (docs/decisions/038).

    Its data is older than that of any member. It acknowledges nothing: it has no quorum, or was stopped.
    """
    recovery = state.persisted.recovery
    stopped = (m for m in state.members if m.pod is not None and m.pod.is_stopped)
    kept = next((member for member in stopped if state.kind.may_keep_data(member)), None)
    if kept is not None or recovery is None or not recovery.replaces_cluster:
        return kept
    if not state.kind.can_prove_loss:
        return None
    member = state.by_name.get(recovery.survivor)
    if member is None or state.persisted.is_recovering or not state.kind.may_keep_data(member):
        return None
    is_member = member.report is not None and member.report.cluster_id == state.persisted.cluster_id
    return None if is_member else member


def names_answering(state: ClusterState) -> frozenset[str]:
    """The members that answer, or whose data was read, by name."""
    return frozenset(member.name for member in state.members if member.report is not None)


def responders(state: ClusterState) -> list[Member]:
    """The voters of the recorded etcd cluster whose list is known: a learner may lack some data."""
    old = state.persisted.cluster_id
    return [
        m for m in state.members if m.report is not None and m.report.cluster_id == old and m.report.members
    ]


def others_among(state: ClusterState, left: list[Member]) -> tuple[str, ...]:
    """The voters that they list and that are not of this resource, by name; of two of one name, one is not.

    They hold data, too. While a member answers, `guard.unknown_members` reports them before.
    """
    lists = [[name for name in voters_of(state, responder) if name] for responder in left]
    return tuple(
        sorted(
            {
                name
                for names in lists
                for name in names
                if names.count(name) > 1 or not is_member_name(name, state.desired.name)
            }
        )
    )


def silent_among(state: ClusterState, left: list[Member]) -> str:
    """The voters of which nothing is known, by the lists of the others, each with what is known of it."""
    names = {name for responder in left for name in voters_of(state, responder)}
    missing = [m for m in state.members if m.report is None and (m.name in names or not left)]
    found = [f"{member.name} ({_state_of(member)})" for member in missing]
    found += [f"{name} (not a member of this resource)" for name in others_among(state, left)]
    return ", ".join(found) or "all members"


def _state_of(member: Member) -> str:
    if member.claim is None:
        return "its claim is missing"
    return member.problem.reason if member.problem is not None else "silent"


# Leaders


def may_elect(state: ClusterState, left: list[Member]) -> bool:
    """Whether those that answer may be electing a leader.

    Not after a while where one missed the last change of members and counts a majority that is none by the
    list of another (see `proven`). With the same list for all they merely do not reach each other.
    """
    judged = [is_majority(state, responder) for responder in left]
    return any(judged) and (all(judged) or state.unavailable_for < ELECTION)


def is_majority(state: ClusterState, responder: Member, *, led: bool = False) -> bool:
    """Whether most of the voters that a responder lists are there, and (led) follow a leader."""
    voters = voters_of(state, responder)
    found = [state.by_name[name] for name in voters if name in state.by_name]
    there = [m for m in found if (_is_led(state, m) if led else m.report is not None)]
    return len(there) >= quorum(len(voters))


def _is_led(state: ClusterState, member: Member) -> bool:
    """Also one with errors, or that an alarm names: it is not healthy, but of a quorum."""
    answer = member.answer
    return answer is not None and bool(answer.leader) and answer.cluster_id == state.persisted.cluster_id


def is_led(state: ClusterState, left: list[Member]) -> bool:
    """Whether most of the voters that one of these members lists follow a leader: the old cluster serves."""
    return any(is_majority(state, responder, led=True) for responder in left)


# Data


def keeps_running(member: Member) -> bool:
    """Whether a member goes on running: its data can be fetched.

    Also one whose claim is being deleted: Kubernetes keeps the volume while a pod uses it.
    """
    if member.pod is None or member.pod.is_terminating:
        return False
    return member.peer is None or not member.peer.is_terminating


def never_had_data(member: Member) -> bool:
    """Whether nothing was ever written in an ephemeral member's pod: it has no node, or never joined.

    Not one that was found to vote, nor where its kubelet is silent: it may have joined since.
    """
    pod = member.pod
    if pod is None or not pod.is_assigned:
        return pod is not None
    is_known = member.has_voted or member.report is not None
    return pod.never_joined and not is_known and not pod.is_on_lost_node


def corrupt_ids(state: ClusterState) -> frozenset[str]:
    """IDs of the members that alarms CORRUPT name, by what is known of any member of the recorded cluster."""
    reports = (member.report for member in state.members)
    found = (r.corrupt for r in reports if r is not None and r.cluster_id == state.persisted.cluster_id)
    return frozenset[str]().union(*found)


def is_corrupt(state: ClusterState, member: Member) -> bool:
    """Whether an alarm CORRUPT names a member, all members, or that from whose data its cluster began.

    An alarm is stored with the data, so it survives a recovery, with the ID of the former cluster.
    """
    alarms, report, recovery = corrupt_ids(state), member.report, state.persisted.recovery
    if report is None or not alarms:
        return False
    origins = recovery.sources_among(alarms) if recovery is not None else frozenset[str]()
    return bool(alarms & {ANYBODY, report.member_id} or origins - {entry.id for entry in report.members})


def best(state: ClusterState, members: Iterable[Member]) -> Member | None:
    """The one to recover from; one whose data may be corrupt comes after all others."""
    return max(members, key=lambda member: (not is_corrupt(state, member), *_newest(member)), default=None)


def _newest(member: Member) -> tuple[int, int, bool, int]:
    """The content of a snapshot decides: the revision; then the committed index; then who goes on running."""
    report = member.report
    revision, committed = (report.revision, report.committed) if report is not None else (0, 0)
    return revision, committed, keeps_running(member), -member.ordinal


def newer_survivor(state: ClusterState, recovery: Recovery) -> Member | None:
    """A member that answers and would be recovered from rather than what a recovery restores."""
    source = state.by_name.get(recovery.survivor)
    restored = (source is None or not is_corrupt(state, source), recovery.revision)
    found = best(state, (member for member in responders(state) if keeps_running(member)))
    if found is None or (not is_corrupt(state, found), found.revision) <= restored:
        return None
    return found


def answering(members: Iterable[Member]) -> tuple[tuple[str, str], ...]:
    """Those that answer, each as its name and the UID of its pod."""
    return tuple((m.name, m.pod.uid) for m in members if m.pod is not None and m.answer is not None)


def read_among(members: Iterable[Member]) -> tuple[ReadMember, ...]:
    """Those that answer nobody, whose data was read."""
    return tuple(
        ReadMember(name=m.name, uid=m.pod.uid, sha256=m.reading.sha256)
        for m in members
        if m.pod is not None and m.answer is None and m.reading is not None
    )


@dataclass(frozen=True, kw_only=True)
class Left:
    """What is left of a lost cluster of ephemeral members."""

    state: ClusterState
    remaining: dict[str, Member]  # members whose data may still exist, by name
    silent: tuple[str, ...] = ()  # voters that are given up although theirs may

    @property
    def is_empty(self) -> bool:
        """Whether no data is left."""
        return all(never_had_data(member) for member in self.remaining.values())

    @cached_property
    def responders(self) -> tuple[Member, ...]:
        """Those of the remaining whose member list is known.

        Not those of an etcd cluster that was given up, which may run on where nobody could stop them.
        """
        return tuple(member for member in self.remaining.values() if self._is_known(member))

    def _is_known(self, member: Member) -> bool:
        return member.report is not None and bool(member.report.members) and member not in self.given_up

    @cached_property
    def given_up(self) -> tuple[Member, ...]:
        """Those of the remaining that answer for an etcd cluster that was given up."""
        ids = self.state.persisted.given_up_ids
        reports = ((member, member.report) for member in self.remaining.values())
        return tuple(member for member, report in reports if report is not None and report.cluster_id in ids)

    def may_elect(self, responder: Member) -> bool:
        """Whether the voters that this member lists may still be a majority."""
        voters = voters_of(self.state, responder)
        able = [name for name in voters if not name or name in self.remaining]
        return len(able) >= quorum(len(voters))

    @cached_property
    def all_voters(self) -> tuple[str, ...]:
        """Every voter that any responder lists, and those that were found to vote, by number.

        One that was cut off from its peers may take a voter for a learner, or not know of it.
        """
        names = {name for responder in self.responders for name in voters_of(self.state, responder) if name}
        names |= {name for name, member in self.remaining.items() if member.has_voted}
        return tuple(sorted(names, key=ordinal_of))

    @property
    def lost_voters(self) -> tuple[str, ...]:
        """Those of them whose data is gone for good, or given up."""
        return tuple(name for name in self.all_voters if name not in self.remaining)

    @property
    def able(self) -> tuple[Member, ...]:
        """Those from which data can be fetched: a pod that is being deleted may end at any moment."""
        return tuple(m for m in self.responders if m.pod is not None and not m.pod.is_terminating)


def left_of(state: ClusterState) -> Left:
    """What is left, but for the seed of a recovery under way, and the survivor kept from the last one."""
    recovery = state.persisted.recovery_under_way
    seed = recovery.seed if recovery is not None else ""
    others = (m for m in state.members if m.name != seed and m is not kept_survivor(state))
    remaining = {member.name: member for member in others if state.kind.may_keep_data(member)}
    return Left(remaining=remaining, state=state)
