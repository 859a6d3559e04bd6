"""The objects of an ephemeral member: a pod and a Service of its own."""

import posixpath
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import structlog

from etcd_operator.api import coreos
from etcd_operator.api.meta import ObjectMeta, RawObject
from etcd_operator.api.shared_keys import LOADED_ANNOTATION, RESTARTING_ANNOTATION, STOPPED_ANNOTATION
from etcd_operator.api.tls import PLAIN
from etcd_operator.controllers.etcd_cluster.decide.actions import CreateMemberService, DropPod, ReplaceMember
from etcd_operator.controllers.etcd_cluster.decide.desired import DesiredCluster
from etcd_operator.controllers.etcd_cluster.decide.members import PodFacts
from etcd_operator.controllers.etcd_cluster.decide.recovery.acts import RetireMember, StartSurvivor
from etcd_operator.controllers.etcd_cluster.manifests import seed, survivor_reader
from etcd_operator.controllers.etcd_cluster.manifests.ephemeral import (
    DATA_DIR,
    MOUNT_PATH,
    member_host,
    member_service,
)
from etcd_operator.controllers.etcd_cluster.manifests.options import peering_annotations, restart_annotations
from etcd_operator.controllers.etcd_cluster.members.protocol import OwnAction, Scope
from etcd_operator.controllers.shared.manifests.pod import ETCD_CONTAINER
from etcd_operator.controllers.shared.manifests.security import security
from etcd_operator.controllers.shared.manifests.urls import PEER_PORT, url
from etcd_operator.errors import Conflict, TerminalError
from etcd_operator.kube import resources
from etcd_operator.kube.client import PatchKind
from etcd_operator.kube.pod_views import Pod
from etcd_operator.kube.views import Written

log = structlog.get_logger()


@dataclass(frozen=True)
class EphemeralMembers:
    """See `members.protocol.Members`. image: the operator's own; may raise, see `OwnImage`."""

    scope: Scope
    image: Callable[[], str]

    storage = resources.PODS  # data is in the pod

    def is_own_storage(self, found: ObjectMeta) -> bool:
        """By its controller."""
        return found.controller_uid == self.scope.desired.uid

    def create(self, body: RawObject) -> None:
        """The pod; its Service is created for itself."""
        self.scope.create(resources.PODS, body, "PodCreated")

    def replace(self, action: ReplaceMember, loads: Mapping[str, str]) -> None:
        """Change the image of the running pod: the kubelet restarts the container, the volume as it is.

        At the same version the image is first changed to one that has no etcd, as in `_stop`, and back once
        the container has ended.
        Only of the pod as it is now: a request that is applied late, after another operator has gone on,
        would restart this member while another one is away.
        """
        pod = self.scope.state.by_name[action.name].pod
        if pod is None or pod.is_terminating:
            raise Conflict(f"the pod of {action.name} is being deleted: not upgrading it")
        found = self.scope.objects.find(resources.PODS, pod.name, Written)
        if found is None or found.metadata.annotations.get(coreos.VERSION_ANNOTATION, "") != pod.version:
            raise Conflict(f"the pod of {action.name} has changed since it was observed: not upgrading it")
        version = found.metadata.resource_version
        if action.version == pod.version and not pod.is_restarting:
            # How it is listed now: once a single member is stopped, nobody reports that. As the pod does not
            # show any more how it was started, what it loads is written, too.
            host = member_host(self.scope.desired, pod.name)
            listed = peering_annotations(host, self.scope.desired.secured, coreos.POD_KEYS)
            stopped = {RESTARTING_ANNOTATION: "true", **_present(listed, found.metadata.annotations), **loads}
            self._run(pod, self.image(), {"annotations": stopped}, version=version)
            return
        image = self.scope.desired.at(action.version).image
        annotations = {
            coreos.VERSION_ANNOTATION: action.version,
            RESTARTING_ANNOTATION: None,
            **self._started(pod, action.version, found.metadata.annotations),
            **loads,
        }
        self._run(pod, image, {"annotations": annotations}, version=version)

    def _started(self, pod: PodFacts, version: str, present: Mapping[str, str]) -> RawObject:
        """The annotations with which etcd starts again: of those that the pod was created with."""
        secured = self.scope.desired.secured
        gone = {LOADED_ANNOTATION: None} if secured == PLAIN else {}
        if pod.serving is None:
            return gone
        host = member_host(self.scope.desired, pod.name)
        at = url(host, PEER_PORT, is_secure=secured.has_secure_peers)
        alone = coreos.POD_KEYS.existing_only(pod.name, at) if pod.is_existing_only else {}
        wanted = restart_annotations(host, secured, version, coreos.POD_KEYS)
        return {**_present({**wanted, **alone}, present), **gone}

    def remove(self, name: str, whose: str = "") -> None:
        """Pod and Service."""
        self.scope.remove_certificates(name)
        member = self.scope.member(name)
        if member.pod is not None and not member.pod.is_terminating:
            self.scope.objects.remove(resources.PODS, member.pod)
            self.scope.report("PodRemoved", f"removed Pod {name}{whose}")
        if member.has_service:
            self.scope.objects.remove_of(self.scope.desired.uid, resources.SERVICES, name)

    def open_seed(self, name: str) -> None:
        """By the label that the Service for clients selects."""
        self.scope.objects.label(resources.PODS, self.scope.pod(name), seed.opened(self.scope.desired))

    def keep_clients_from(self, name: str) -> None:
        """By that label: a pod on a node that is not connected runs on, however it is deleted."""
        pod = self.scope.member(name).pod
        if self.scope.recovery.is_automatic and pod is not None and pod.is_routed:
            self.scope.objects.label(resources.PODS, pod, {coreos.APP_LABEL: None})

    def _stop(self, name: str) -> None:
        """Keep the pod, but neither its etcd nor its clients.

        A Service does not end connections, and on them a member without a quorum answers nothing. The kubelet
        ends etcd if its container gets an image that has no etcd: the operator's own, which admission
        policies know from the seed. If they refuse the change, etcd runs on, and clients may wait on it until
        another member has its data.
        """
        pod = self.scope.member(name).pod
        if pod is None or pod.is_terminating:
            return
        metadata = {"labels": {coreos.APP_LABEL: None}, "annotations": {STOPPED_ANNOTATION: "true"}}
        try:
            self._run(pod, self.image(), metadata)
        except TerminalError as error:
            log.warning("survivor_not_stopped", pod=name, error=str(error))
        else:
            self.scope.report("SurvivorKept", f"stopped etcd in {name}: its data is kept for a while")

    def _run(self, pod: PodFacts, image: str, metadata: RawObject, *, version: str = "") -> None:
        """Change the image, and metadata. version: raises Conflict if the pod has another one."""
        containers = [{"name": ETCD_CONTAINER, "image": image}]
        change: RawObject = {"metadata": metadata, "spec": {"containers": containers}}
        self.scope.objects.merge(resources.PODS, pod, change, kind=PatchKind.STRATEGIC, version=version)

    def reader(self, name: str, *, number: int, image: str) -> RawObject:
        """With the security context of etcd."""
        del name
        folder = posixpath.relpath(DATA_DIR, MOUNT_PATH)
        desired = self.scope.desired
        context = security(desired.pod_template).container
        return survivor_reader.reader(
            number=number,
            image=image,
            folder=folder,
            cluster=desired.name,
            security=context,
            secured=desired.secured,
        )

    def act(self, action: OwnAction) -> None:
        """All that is done for this kind of member only; pods are changed only if they are what was seen."""
        match action:
            case RetireMember():
                self._stop(action.name)
            case StartSurvivor():
                kept = self.scope.pod(action.name)
                metadata = {"annotations": {STOPPED_ANNOTATION: None}}
                self._run(kept, self.scope.desired.at(kept.version).image, metadata)
            case CreateMemberService():
                body = member_service(self.scope.desired, action.name)
                self.scope.create(resources.SERVICES, body, "ServiceCreated")
            case DropPod():
                pod = self.scope.state.by_name[action.name].pod
                if pod is not None and pod.is_finished:
                    self.scope.objects.remove(resources.PODS, pod)
                    self.scope.report("PodRemoved", f"removed Pod {action.name}, which had failed")
            case _:
                raise TypeError(f"{action}: an ephemeral member has no claim")


def _present(wanted: Mapping[str, str], present: Mapping[str, str]) -> dict[str, str]:
    """Those that a pod was created with: nothing else of it depends on annotations."""
    return {key: value for key, value in wanted.items() if key in present}


def owns_pod(desired: DesiredCluster, pod: Pod) -> bool:
    """By its controller; see `members.protocol.OwnsPod`."""
    return pod.metadata.controller_uid == desired.uid
