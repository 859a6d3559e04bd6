"""Adds readers to the pods of members that answer nobody, and asks them right before an irreversible act.

What they are is in `manifests.survivor_reader`; what they report in passes is in `recovery.readings`.
"""

import secrets
from collections.abc import Callable
from dataclasses import dataclass, replace

from etcd_operator.api.meta import RawObject
from etcd_operator.api.recoveries import OfflineSurvivor
from etcd_operator.controllers.etcd_cluster.decide.actions import Reader, Seeding, Start
from etcd_operator.controllers.etcd_cluster.decide.members import PodFacts
from etcd_operator.controllers.etcd_cluster.decide.recovery.acts import ReadMember
from etcd_operator.controllers.etcd_cluster.members.pod_facts import reader_of
from etcd_operator.controllers.etcd_cluster.members.protocol import Members, Scope
from etcd_operator.controllers.shared.inquiries import AskSurvivor
from etcd_operator.errors import Conflict, NotLeading, TerminalError, Unavailable
from etcd_operator.keys import Key
from etcd_operator.kube import resources
from etcd_operator.kube.views import Pod, Written
from etcd_operator.pods.client import NoReport
from etcd_operator.pods.contract import READER_PORT
from etcd_operator.pods.reports import SurvivorReport

SUBRESOURCE = "ephemeralcontainers"


@dataclass(frozen=True, kw_only=True)
class Readers:
    """own_image: the operator's. ask: a reader. refused: called where the API server refuses one, and why.

    note_failure: called where it does not answer, or with a failure; whether that counts as a refusal by now.
    """

    own_image: Callable[[], str]
    ask: AskSurvivor
    refused: Callable[[PodFacts, str], None]
    note_failure: Callable[[Key, PodFacts], bool]

    def add(self, scope: Scope, members: Members, name: str, found: Pod) -> None:
        """Add one to the pod of a member, unless there is one that has not ended. found: the pod, live.

        A refusal is noted and is no failure: other members may be recovered from. So is a failure that lasts:
        the webhook of a policy that does not run would keep all of them from that. Raises Conflict if the pod
        has changed, and the retryable errors of `Objects`.
        """
        last = reader_of(found)
        if last is not None and not last.has_ended:
            return
        number, token = len(found.spec.ephemeral_containers) + 1, secrets.token_urlsafe(32)
        try:
            container = members.reader(name, number=number, image=self.own_image(), token=token)
            _add(scope, found, container)
        except (TerminalError, Unavailable) as error:
            if isinstance(error, Unavailable) and not self._note_failure(scope, name, error):
                raise
            self.refused(scope.pod(name), str(error))
            return
        scope.report("ReaderAdded", f"added container {container['name']} to Pod {found.metadata.name}")

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
            report = self.ask((found.status.pod_ip, READER_PORT), reader.token)
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
    name, sha256 = start.source.name, start.source.sha256
    pod = scope.pod(name)
    if pod.reader is None or not pod.reader.is_running:
        raise Conflict(f"the data of {name} is not read any more: trying again")
    return replace(start, reader=Reader(host=pod.ip, token=pod.reader.token, sha256=sha256))


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
