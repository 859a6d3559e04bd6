"""The observed state of one cluster: all that a decision may depend on."""

from dataclasses import dataclass
from functools import cached_property

from semver import Version

from etcd_operator.controllers.etcd_cluster.decide.adoption.external_answers import Rejection
from etcd_operator.controllers.etcd_cluster.decide.certificates.state import (
    Side,
    Situation,
    SuppliedFacts,
    Unloaded,
    Use,
)
from etcd_operator.controllers.etcd_cluster.decide.desired import DesiredCluster, PersistedState
from etcd_operator.controllers.etcd_cluster.decide.kinds.protocol import Kind
from etcd_operator.controllers.etcd_cluster.decide.members import ClaimFacts, Member, quorum
from etcd_operator.controllers.etcd_cluster.decide.orphans import Orphan, Unlabelled
from etcd_operator.controllers.etcd_cluster.decide.recovery.observed import (
    NO_ABSENCE,
    NO_BACKUPS,
    NO_TOOL_BACKUPS,
    Absence,
    BackupFacts,
    ToolBackups,
)
from etcd_operator.controllers.etcd_cluster.decide.replies import Reply
from etcd_operator.etcd.values import EtcdMember

IN_STEP = 10
"""Entries of the log by which members may differ only because they were not asked at the same moment."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unseen:
    """Why what is observed may differ from what is there, as reason and message of a hold."""

    reason: str
    message: str
    is_asked: bool = True  # whether members are asked all the same; else none of them answers


@dataclass(frozen=True, slots=True, kw_only=True)
class TlsFacts:
    """What is observed of a cluster's TLS, beside what its status records."""

    # the key IDs of the CAs that sign; empty while it has none
    peer_ca: str = ""
    client_ca: str = ""
    version: str = ""  # of the Secret that has them
    is_unrecorded: bool = False  # members were made with them, and the status does not record that any more
    # of each side that is in use, `peer` and `client`, once its CAs are on record
    sides: tuple[tuple[Side, Situation], ...] = ()
    unkept: Unseen | None = None  # why the sides are not known, or why a Secret of theirs cannot be written
    proven: frozenset[str] = frozenset()  # the members whose pods present what their Secrets have
    refusals: tuple[tuple[str, str], ...] = ()  # by member, why the last handshake failed
    # what the Secrets of the user have; none while one cannot be used
    supplied: tuple[tuple[Use, SuppliedFacts], ...] = ()
    unloaded: tuple[Unloaded, ...] = ()
    has_unused: bool = False  # there is a Secret for clients, and these need no certificate
    # the sides whose CAs are those of an issuer of cert-manager
    issued: frozenset[Side] = frozenset()
    is_unrequested: bool = False  # cert-manager is not asked for all of them, or for something else
    unissued: Unseen | None = None  # why cert-manager has not issued all of them


NO_TLS = TlsFacts()


@dataclass(frozen=True, kw_only=True)
class ClusterState:
    """Everything observed about one cluster at one moment."""

    desired: DesiredCluster
    members: tuple[Member, ...] = ()  # every member known to Kubernetes or to etcd, by number
    # entries of etcd's list that the operator did not make, and no adoption explains
    unknown_members: tuple[EtcdMember, ...] = ()
    # the listed members of a cluster that is being adopted; the operator did not make them
    external: tuple[Member, ...] = ()
    # what was replied at the endpoints of a cluster that is, or is to be, adopted (`host:port`)
    endpoints: tuple[tuple[str, Reply], ...] = ()
    # why answers of external members do not count, by ID (see `adoption.external_answers`)
    rejected: tuple[tuple[str, Rejection], ...] = ()
    # peer URLs of the members to adopt that members of this resource would have, too
    clashes: tuple[str, ...] = ()
    # who has not consented to the adoption that is asked for or under way, and how; empty if nobody has to
    unconsented: str = ""
    unlabelled: tuple[Unlabelled, ...] = ()  # pods of its members that lack labels
    # what another operator created for members of a cluster of this name, each as kind and name
    objects_of_others: tuple[str, ...] = ()
    # pods and EtcdPeers of a former resource of this name, which Kubernetes is about to delete or to orphan
    former: tuple[str, ...] = ()
    # what has no owner of what this operator made for members of this name; none once the cluster has begun
    orphans: tuple[Orphan, ...] = ()
    # claims that a recovery gave up, until a person deletes them; their numbers are not used again
    kept_claims: tuple[ClaimFacts, ...] = ()
    has_client_service: bool = False
    # minAvailable of our disruption budget; None if it is missing or not as we made it
    budget: int | None = None
    conflict: str = ""  # why the resource may not use its names, in one sentence; empty if it may
    is_fresh: bool = True  # the caches show our own last writes
    # what of the cluster cannot be read, or is not fresh for long: no absence is proven; None if nothing
    unseen: Unseen | None = None
    has_quorum: bool = False  # a linearizable read has just passed
    age: float = 0.0  # seconds since the resource was made
    unavailable_for: float = 0.0  # seconds since status reports that no quorum answers; 0 while one does
    cluster_version: str = ""  # etcd's own, as reported now or last known; empty while it is not known
    is_version_hidden: bool = False  # no page that has the cluster version could be read
    # what its backup tool has; known only where one may be restored
    tool_backups: ToolBackups = NO_TOOL_BACKUPS
    # for how long members have been missed; counted only where that can begin a recovery
    absence: Absence = NO_ABSENCE
    # seconds for which this process has seen the upgrading member not to serve, at one version
    awaited_for: float = 0.0
    # seconds for which this process has seen a quorum, after a recovery without a person
    served_for: float = 0.0
    # seconds for which this process has known the attempt to recover that is under way
    attempted_for: float = 0.0
    # whether clients may still be sent to the member that is to be stopped next (see `facts.departing`)
    is_departing_reached: bool = False
    tls: TlsFacts = NO_TLS  # its CAs and certificates; known only with TLS
    # why there is no NetworkPolicy of the operator although there is to be one: reason and message
    network_problem: tuple[str, str] | None = None
    backups: BackupFacts = NO_BACKUPS  # its EtcdBackups; known only where one may be restored

    @property
    def persisted(self) -> PersistedState:
        """What the operator remembers."""
        return self.desired.persisted

    @property
    def kind(self) -> Kind:
        """The kind of its members."""
        return self.desired.kind

    @cached_property
    def by_name(self) -> dict[str, Member]:
        """Members by name."""
        return {member.name: member for member in self.members}

    @cached_property
    def answers(self) -> tuple[Member, ...]:
        """The members that answered."""
        return tuple(member for member in self.members if member.answer is not None)

    @cached_property
    def requires_user(self) -> bool:
        """Whether a member answers only users: etcd's authentication is on, and the operator is none."""
        return any(member.refusal is not None for member in self.members)

    @cached_property
    def cluster_ids(self) -> frozenset[str]:
        """The cluster IDs among the answers; more than one is a split brain."""
        return frozenset(m.answer.cluster_id for m in self.members if m.answer is not None)

    @cached_property
    def answers_as_recorded(self) -> bool:
        """Whether a member answers for the cluster on record, and no recovery is about to replace that."""
        recorded = self.persisted.cluster_id
        return bool(recorded) and recorded in self.cluster_ids and not self.persisted.is_recovering

    @cached_property
    def foreign(self) -> tuple[Member, ...]:
        """The members that answer for another cluster, beside at least one of the cluster on record."""
        if not self.answers_as_recorded:
            return ()
        recorded = self.persisted.cluster_id
        return tuple(m for m in self.answers if m.answer is not None and m.answer.cluster_id != recorded)

    @cached_property
    def etcd_members(self) -> tuple[EtcdMember, ...]:
        """etcd's member list, as it is believed (see `decide.observation`)."""
        known = (m.entry for m in (*self.members, *self.external) if m.entry is not None)
        return (*known, *self.unknown_members)

    @cached_property
    def voters(self) -> tuple[Member, ...]:
        """The members that etcd lists as voters."""
        return tuple(m for m in self.members if m.entry is not None and not m.entry.is_learner)

    @cached_property
    def healthy_voters(self) -> tuple[Member, ...]:
        """The voters found healthy."""
        return tuple(member for member in self.voters if member.is_healthy)

    @cached_property
    def all_voters(self) -> tuple[Member, ...]:
        """The voters, those of a cluster that is being adopted included."""
        return (*self.voters, *self.external)

    @cached_property
    def all_healthy_voters(self) -> tuple[Member, ...]:
        """Those of them that were found healthy."""
        return tuple(member for member in self.all_voters if member.is_healthy)

    @cached_property
    def leaving(self) -> tuple[Member, ...]:
        """The external members whose removal has begun: they are not asked any more."""
        adoption = self.persisted.adoption
        removed = {member.id for member in adoption.members if member.removed} if adoption is not None else ()
        return tuple(member for member in self.external if member.id in removed)

    @property
    def serving(self) -> tuple[Member, ...]:
        """The voters that serve clients, those that the operator may not ask included."""
        return tuple(m for m in self.members if m.is_serving and (m.refusal is not None or m in self.voters))

    @property
    def is_out_of_space(self) -> bool:
        """Whether etcd takes no puts because a quota is used up."""
        return any(v.answer is not None and v.answer.is_out_of_space for v in self.all_voters)

    @cached_property
    def corrupt(self) -> frozenset[str]:
        """IDs of the members whose data etcd found to differ (see `Answer.corrupt`)."""
        answers = (voter.answer for voter in self.all_voters)
        return frozenset(named for answer in answers if answer is not None for named in answer.corrupt)

    @property
    def corrupt_sources(self) -> frozenset[str]:
        """Those of these IDs that are of members whose data a recovery restored all the same."""
        recovery = self.persisted.recovery
        return recovery.sources_among(self.corrupt) if recovery is not None else frozenset()

    @cached_property
    def lowest_version(self) -> Version | None:
        """The lowest version of etcd that voters run; None while none is known.

        A voter that is silent during an upgrade may still run what ran when the upgrade began.
        """
        answers = [voter.answer for voter in self.all_voters]
        running = [answer.version for answer in answers if answer is not None]
        upgrade = self.persisted.upgrade
        if upgrade is not None and (None in answers or not answers):
            running.append(upgrade.origin)
        return min((Version.parse(text) for text in running if Version.is_valid(text)), default=None)

    @cached_property
    def upgrading_member(self) -> Member | None:
        """The member that an upgrade may have stopped; None once it serves, or is no member any more."""
        upgrade = self.persisted.upgrade
        member = self.by_name.get(upgrade.member) if upgrade is not None else None
        if member is None or (self.has_quorum and self.voters and member.entry is None):
            return None
        return None if member.serves_requested_version else member

    @property
    def leader(self) -> Member | None:
        """The member that most of the healthy ones follow; None while none is known."""
        ids = [m.answer.leader for m in self.all_healthy_voters if m.answer is not None]
        named = max(set(ids), key=ids.count, default="")
        return next((m for m in self.all_voters if m.entry is not None and m.entry.id == named), None)

    @property
    def follows_one_leader(self) -> bool:
        """Whether a quorum of the voters is healthy and reports the same leader."""
        leaders = [m.answer.leader for m in self.all_healthy_voters if m.answer is not None]
        return max(map(leaders.count, leaders), default=0) >= self.quorum

    @cached_property
    def committed(self) -> int:
        """The raft index of the voter that has the most of the log; 0 without an answer."""
        return max((v.answer.committed for v in self.all_voters if v.answer is not None), default=0)

    def must_catch_up(self, member: Member) -> bool:
        """Whether clients would have to wait if it were to lead now: etcd takes no write meanwhile."""
        return member.answer is not None and self.committed - member.answer.committed > IN_STEP

    @property
    def quorum(self) -> int:
        """How many voters must agree."""
        return quorum(len(self.all_voters))

    def is_attempt(self, claim: ClaimFacts) -> bool:
        """Whether a claim was made for a seed, of the recovery under way or before, that never served."""
        is_foreign = claim.token not in ("", self.desired.token)
        return self.persisted.is_recovering and is_foreign and not claim.cluster_id
