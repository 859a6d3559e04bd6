"""The acts in which the two kinds of member differ: create, set existing-only, replace, remove, open."""

from collections.abc import Callable, Mapping
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from etcd_operator.api.meta import ObjectMeta, RawObject
from etcd_operator.api.recoveries import Recovery
from etcd_operator.api.tls import PLAIN
from etcd_operator.controllers.etcd_cluster.decide.actions import KindAction, ReplaceMember
from etcd_operator.controllers.etcd_cluster.decide.desired import DesiredCluster
from etcd_operator.controllers.etcd_cluster.decide.members import Member, PodFacts
from etcd_operator.controllers.etcd_cluster.decide.recovery.acts import RetireMember
from etcd_operator.controllers.etcd_cluster.decide.state import ClusterState
from etcd_operator.controllers.etcd_cluster.manifests.tls import secret_name
from etcd_operator.controllers.shared.objects import Objects, RecordEvent
from etcd_operator.errors import Conflict, OperatorError, Unavailable
from etcd_operator.etcd.values import MemberList
from etcd_operator.kube import resources
from etcd_operator.kube.pod_views import Pod
from etcd_operator.kube.resources import Resource


@dataclass(frozen=True, slots=True, kw_only=True)
class AnnotateSeed:
    """Write on what outlives a seed's pod that it starts from its data only; served: its own list, live."""

    name: str
    served: MemberList


OwnAction = KindAction | RetireMember | AnnotateSeed
"""What is done for one kind of member only; `RetireMember` where it keeps the data."""


@dataclass(frozen=True, kw_only=True)
class Scope:
    """One cluster as one pass saw it, and the means to write its objects."""

    objects: Objects
    state: ClusterState
    report: RecordEvent
    now: datetime

    @property
    def desired(self) -> DesiredCluster:
        """The cluster as requested."""
        return self.state.desired

    @property
    def recovery(self) -> Recovery:
        """The recovery on record. Raises Conflict without one."""
        recovery = self.state.persisted.recovery
        if recovery is None:
            raise Conflict(f"no recovery of {self.desired.name} is on record")
        return recovery

    def member(self, name: str) -> Member:
        """The member as it was seen; one without any object if it was not."""
        return self.state.by_name.get(name) or Member(name=name)

    def create(self, resource: Resource, body: RawObject, reason: str) -> None:
        """Create an object and report it; one that an earlier attempt created is not reported again."""
        if self.objects.create(resource, body):
            self.report(reason, f"created {resource.kind} {body['metadata']['name']}")

    def remove_certificates(self, member: str) -> None:
        """Delete the Secret with the keys of a member that is removed for good, or given up.

        A cluster without TLS may have had TLS before. None of its members waits for Secrets.
        """
        is_plain = self.desired.secured == PLAIN
        with suppress(OperatorError) if is_plain else nullcontext():
            self.objects.remove_of(self.desired.uid, resources.SECRETS, secret_name(member))

    def pod(self, name: str) -> PodFacts:
        """The member's pod as it was seen. Raises Unavailable without one."""
        pod = self.member(name).pod
        if pod is None:
            raise Unavailable(f"{name} has no pod")
        return pod


class Members(Protocol):
    """Acts on the objects of one cluster's members. All raise the errors of `Objects`."""

    @property
    def storage(self) -> Resource:
        """Of what resource the members' storage is, under the member's name."""

    def is_own_storage(self, found: ObjectMeta) -> bool:
        """Whether such an object was made for this cluster, whatever its labels are."""

    def create(self, body: RawObject) -> None:
        """Create the object that runs a member."""

    def replace(self, action: ReplaceMember, loads: Mapping[str, str]) -> None:
        """Stop a member and let it start at that version, on its data. Raises Conflict if it is going.

        loads: annotations of a pod that is kept.
        """

    def remove(self, name: str, whose: str = "") -> None:
        """One step of deleting a member's objects and data, after which nothing asks for it again.

        The caller has made sure, live, that the member is not needed. What is being deleted already is left
        alone. `whose` ends the sentence of the Event.
        """

    def open_seed(self, name: str) -> None:
        """Let clients reach a seed."""

    def keep_clients_from(self, name: str) -> None:
        """Let no client reach a member that a recovery without a person gives up, and that may still run."""

    def reader(self, name: str, *, number: int, image: str) -> RawObject:
        """The container that reads the data of a member in its pod."""

    def act(self, action: OwnAction) -> None:
        """Carry out an action of this kind of member. Raises TypeError on one of the other kind."""


NewMembers = Callable[[Scope], Members]

OwnsPod = Callable[[DesiredCluster, Pod], bool]
"""Whether a pod that may lack labels runs a member of this cluster."""
