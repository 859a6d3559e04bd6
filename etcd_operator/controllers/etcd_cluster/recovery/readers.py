"""What is read of members that restarted without a quorum, by readers that are added to their pods.

In passes they are asked on threads of their own; right before an irreversible act they are asked again. See
`recovery.offline`, `manifests.survivor_reader` and `programs.survivor_reader`.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from etcd_operator.api.meta import RawObject
from etcd_operator.api.recoveries import OfflineSurvivor
from etcd_operator.clock import Clock
from etcd_operator.controllers.etcd_cluster.decide.desired import DesiredCluster
from etcd_operator.controllers.etcd_cluster.decide.members import Member, PodFacts
from etcd_operator.controllers.etcd_cluster.decide.recovery.acts import ReadMember
from etcd_operator.controllers.etcd_cluster.decide.recovery.observed import ReaderFacts
from etcd_operator.controllers.etcd_cluster.decide.recovery.offline import (
    reading_of,
    why_no_other_reader,
)
from etcd_operator.controllers.etcd_cluster.decide.starts import Seeding, Start
from etcd_operator.controllers.etcd_cluster.decide.state import ClusterState
from etcd_operator.controllers.etcd_cluster.manifests.survivor_reader import secret
from etcd_operator.controllers.etcd_cluster.members.pod_facts import reader_of
from etcd_operator.controllers.etcd_cluster.members.protocol import Members, Scope
from etcd_operator.controllers.shared.inquiries import AskSurvivor, Inquiries, PodServer
from etcd_operator.controllers.shared.name_conflicts import NameConflict
from etcd_operator.controllers.shared.tokens import Tokens, new_token
from etcd_operator.controllers.shared.waits import Waits
from etcd_operator.controllers.shared.writes import Writes
from etcd_operator.errors import Conflict, NotLeading, OperatorError, TerminalError, Unavailable
from etcd_operator.keys import Key
from etcd_operator.kube import resources
from etcd_operator.kube.pod_views import Pod
from etcd_operator.kube.views import Written
from etcd_operator.pods.client import NoReport
from etcd_operator.pods.contract import READER_PORT
from etcd_operator.pods.http_client import Server, Trust
from etcd_operator.pods.reports import SurvivorReport

SUBRESOURCE = "ephemeralcontainers"

TrustOf = Callable[[DesiredCluster, str], Trust | None]
"""How the reader of a member of this name is verified; None without TLS. Raises OperatorError."""

ASK_AGAIN = 1.0

PATIENCE = 120.0
"""Seconds for a reader to be added, to start and to read some gigabytes, before that is a problem."""

REFUSED_SECONDS = 30.0
"""For how long no reader is added to a pod after the API server has refused one."""


@dataclass(frozen=True, kw_only=True)
class Readers:
    """Adds them, and asks them live."""

    own_image: Callable[[], str]
    ask: AskSurvivor
    refused: Callable[[PodFacts, str], None]  # called where the API server refuses one, and why
    # called where the API server does not answer, or fails; whether that counts as a refusal by now
    note_failure: Callable[[Key, PodFacts], bool]
    tokens: Tokens
    trust: TrustOf

    def add(self, scope: Scope, members: Members, name: str, found: Pod) -> None:
        """Add one to the pod of a member, unless there is one that has not ended. found: the pod, live.

        First the Secret with its token, also where one waits for it.

        A refusal is noted and is no failure: other members may be recovered from. So is a failure that lasts:
        the webhook of a policy that does not run would keep all of them from that. Raises Conflict if the pod
        has changed, and the retryable errors of `Objects`.
        """
        last, number = reader_of(found), len(found.spec.ephemeral_containers) + 1
        try:
            self._create_secret(scope)
            if last is not None and not last.has_ended:
                return
            container = members.reader(name, number=number, image=self.own_image())
            _add(scope, found, container)
        except NameConflict as error:
            if error.is_passing:
                raise
            self.refused(scope.pod(name), str(error))
            return
        except (TerminalError, Unavailable) as error:
            if isinstance(error, Unavailable) and not self._note_failure(scope, name, error):
                raise
            self.refused(scope.pod(name), str(error))
            return
        scope.report("ReaderAdded", f"added container {container['name']} to Pod {found.metadata.name}")

    def _create_secret(self, scope: Scope) -> None:
        desired = scope.desired
        self.tokens.forget(desired.key)
        if not self.tokens.get(desired.key, desired.uid, scope.objects):
            scope.create(resources.SECRETS, secret(desired, new_token()), "SecretCreated")

    def _note_failure(self, scope: Scope, name: str, error: Unavailable) -> bool:
        if isinstance(error, NotLeading):
            return False
        return self.note_failure(Key(scope.desired.namespace, scope.desired.name), scope.pod(name))

    def ask_again(self, scope: Scope, member: ReadMember, found: Pod) -> SurvivorReport:
        """What a member's reader reports now. Raises Conflict if it is not what was reported before.

        So the member follows no leader, and its data is as it was. found: its pod, live.
        """
        reader = reader_of(found)
        if reader is None or not reader.is_running:
            raise Conflict(f"the data of {member.name} is not read any more: not recovering")
        try:
            server = Server(
                address=(found.status.pod_ip, READER_PORT),
                token=self.tokens.get(scope.desired.key, scope.desired.uid, scope.objects),
                trust=self.trust(scope.desired, member.name),
            )
            report = self.ask(server)
        except NoReport as error:
            raise Conflict(f"the reader of {member.name} gives no report ({error})") from error
        is_other = report.cluster_id != scope.state.persisted.cluster_id
        if report.problem or is_other or report.sha256 != member.sha256:
            raise Conflict(f"the data of {member.name} has changed since it was read: not recovering")
        return report


def located(scope: Scope, start: Start) -> Start:
    """With where the data of a survivor that answers nobody is read now. Raises Conflict if it is not."""
    if not isinstance(start, Seeding) or not isinstance(start.source, OfflineSurvivor):
        return start
    name = start.source.name
    pod = scope.pod(name)
    if pod.reader is None or not pod.reader.is_running:
        raise Conflict(f"the data of {name} is not read any more: trying again")
    return replace(start, reader=pod.ip)


def _add(scope: Scope, found: Pod, container: RawObject) -> None:
    has_some = bool(found.spec.ephemeral_containers)
    change: RawObject = {
        "op": "add",
        "path": "/spec/ephemeralContainers/-" if has_some else "/spec/ephemeralContainers",
        "value": container if has_some else [container],
    }
    scope.objects.change(
        resources.PODS,
        found.metadata,
        change,
        kind=Written,
        version=found.metadata.resource_version,
        subresource=SUBRESOURCE,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ended:
    """A reader that this process has seen to have ended."""

    seen: float  # when it first did, by the monotonic clock
    is_of_this_loss: bool  # no quorum has been seen since


@dataclass(eq=False, kw_only=True)
class Readings:
    """Of the clusters of one API group.

    When a reader ended is what this process has seen, not the time in the pod's status: the clock of a node
    may differ by any time, and members that follow a leader would be given up (decision 004). A reader that
    had ended before this process first saw it counts as of this loss.
    """

    inquiries: Inquiries[SurvivorReport]
    clock: Clock
    waits: Waits
    tokens: Tokens
    trust: TrustOf
    writes: Writes
    # Of each cluster, by the UID of the pod and the number of the reader.
    _ended: dict[Key, dict[tuple[str, int], _Ended]] = field(default_factory=dict)
    _refused: dict[str, tuple[str, float]] = field(default_factory=dict)
    _asked: dict[Key, set[str]] = field(default_factory=dict)

    def __call__(self, key: Key, state: ClusterState) -> ClusterState:
        """The state with what was read of its members; unchanged where a quorum answers."""
        is_lost = state.persisted.is_bootstrapped and not state.has_quorum
        self._note_ended(key, state, is_lost=is_lost)
        if not is_lost:
            self._stop_asking(key)
            return state
        return replace(state, members=tuple(self._with_reading(key, state, m) for m in state.members))

    def forget(self, key: Key) -> None:
        """There is no such cluster any more."""
        self._ended.pop(key, None)
        self.tokens.forget(key)
        self._stop_asking(key)

    def _stop_asking(self, key: Key) -> None:
        for name in self._asked.pop(key, set()):
            self.inquiries.forget(Key(key.namespace, name))
            self.waits.forget(Key(key.namespace, name))

    def refuse(self, pod: PodFacts, problem: str) -> None:
        """Remember why no reader could be added to a pod."""
        now = self.clock.monotonic()
        # What has expired may be of pods that are gone: no pass asks for those again.
        for uid, (_, until) in list(self._refused.items()):
            if until <= now:
                self._refused.pop(uid, None)
        self._refused[pod.uid] = problem, now + REFUSED_SECONDS

    def note_failure(self, key: Key, pod: PodFacts) -> bool:
        """Note that a reader could not be added to a pod of this cluster; whether that has lasted."""
        self._asked.setdefault(key, set()).add(pod.name)
        return self.waits.seconds(Key(key.namespace, pod.name), pod.uid) >= PATIENCE

    def _with_reading(self, key: Key, state: ClusterState, member: Member) -> Member:
        pod = member.pod
        if pod is None or member.answer is not None or member.refusal is not None:
            return member
        problem, until = self._refused.get(pod.uid, ("", 0.0))
        if problem and self.clock.monotonic() < until:
            return replace(member, unreadable=problem)
        self._refused.pop(pod.uid, None)
        if pod.reader is None or not pod.is_running:
            return member
        if pod.reader.has_ended:
            ended = self._ended[key][pod.uid, pod.reader.number]
            ended_for, is_current = self.clock.monotonic() - ended.seen, ended.is_of_this_loss
            return replace(
                member,
                unreadable=why_no_other_reader(pod.reader, ended_for, is_of_this_loss=is_current),
                followed_a_leader=pod.reader.found_leader and is_current,
            )
        return self._asked_about(key, state, member, pod, pod.reader)

    def _note_ended(self, key: Key, state: ClusterState, *, is_lost: bool) -> None:
        """Note which readers have ended, and forget those of pods that are gone."""
        before, now = self._ended.pop(key, {}), self.clock.monotonic()
        ended: dict[tuple[str, int], _Ended] = {}
        for member in state.members:
            pod = member.pod
            if pod is None or pod.reader is None or not pod.reader.has_ended:
                continue
            at = pod.uid, pod.reader.number
            known = before.get(at, _Ended(seen=now, is_of_this_loss=True))
            ended[at] = known if is_lost else replace(known, is_of_this_loss=False)
        if ended:
            self._ended[key] = ended

    def _asked_about(
        self, key: Key, state: ClusterState, member: Member, pod: PodFacts, reader: ReaderFacts
    ) -> Member:
        try:
            token = self.tokens.get(key, state.desired.uid, self.writes.of(key))
            trust, problem = self.trust(state.desired, member.name), ""
        except OperatorError as error:
            token, trust, problem = "", None, f"it cannot be asked: {error}"
        if not (token or problem):
            # `Readers.add` creates the Secret anew; this reader may still wait for it.
            return replace(member, pod=replace(pod, reader=None))
        name = Key(key.namespace, member.name)
        self._asked.setdefault(key, set()).add(member.name)
        self.waits.end(name, pod.uid)
        waited = self.waits.seconds(name, pod.uid + reader.name)
        is_wrong = bool(reader.problem)
        problem = problem or reader.problem or "its reader does not run yet"
        if reader.is_running and pod.ip and token:
            server = Server(address=(pod.ip, READER_PORT), token=token, trust=trust)
            report = self._report(name, state, pod, reader, server)
            if not report.problem:
                self.waits.end(name, pod.uid + reader.name)
                return replace(member, reading=reading_of(report, member))
            problem, is_wrong = report.problem, not (report.is_passing or report.has_leader)
        is_wrong = is_wrong or waited >= PATIENCE
        return replace(member, unreadable=problem if is_wrong else "")

    def _report(
        self, name: Key, state: ClusterState, pod: PodFacts, reader: ReaderFacts, at: Server
    ) -> SurvivorReport:
        """What the reader reports; as its problem, why it reports nothing."""
        server = PodServer(uid=pod.uid + reader.name, owner=state.desired.uid, server=at)
        self.inquiries.renew(name, server, ASK_AGAIN)
        answer = self.inquiries.last_answer(name, state.desired.uid)
        if answer.is_token_refused:
            self.tokens.forget(state.desired.key)
        if answer.report is None or answer.problem or answer.uid != server.uid:
            return SurvivorReport(
                problem=answer.problem or "its reader has not answered yet", is_passing=True
            )
        return answer.report
