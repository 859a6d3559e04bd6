"""The Secrets with the CAs of clusters that were deleted: they are deleted once no member uses them.

Members outlive their cluster where it was deleted with `--cascade=orphan`, or restored under another UID.
"""

from collections.abc import Mapping
from contextlib import suppress

import structlog

from etcd_operator.api.meta import ObjectMeta
from etcd_operator.api.shared_keys import LOADED_ANNOTATION
from etcd_operator.controllers.etcd_cluster.manifests.authorities import (
    CA_LABEL,
    CLUSTER_ANNOTATION,
    Authorities,
    authorities_of,
)
from etcd_operator.controllers.etcd_cluster.manifests.loaded import loaded_of
from etcd_operator.controllers.shared.decide.clusters import is_member_name
from etcd_operator.controllers.shared.objects import Objects
from etcd_operator.errors import NotFound
from etcd_operator.keys import Key
from etcd_operator.kube import resources
from etcd_operator.kube.client import Client
from etcd_operator.kube.pod_views import Pod, Volume
from etcd_operator.kube.resources import Resource
from etcd_operator.kube.views import Secret, Written
from etcd_operator.pki.errors import BadCertificate

CLUSTERS: Mapping[str, Resource] = {
    each.api_version: each for each in (resources.COREOS_CLUSTERS, resources.IMPROBABLE_CLUSTERS)
}

log = structlog.get_logger()


class Leftovers:
    """Those in the namespace of the operator. All methods raise the errors of `Client`."""

    def __init__(self, client: Client, namespace: str) -> None:
        self._client = client
        self._namespace = namespace
        self._is_swept = False

    def sweep(self, objects: Objects) -> None:
        """Those of clusters that were deleted while no operator ran; until none of them is left."""
        if self._is_swept:
            return
        found = self._client.list(
            resources.SECRETS, Written, namespace=self._namespace, label_selector=CA_LABEL
        )
        kept = [each for each in found.whole() if not self.drop(each.metadata.key, objects)]
        self._is_swept = not kept

    def drop(self, key: Key, objects: Objects) -> bool:
        """Delete this one if no cluster has these CAs, and no member uses them. False if a member does."""
        with suppress(NotFound):
            found = self._client.get(resources.SECRETS, key, Secret)
            if not self._is_of_none(found.metadata):
                return True
            if self._is_used(found):
                return False
            objects.require_leadership()
            self._client.delete(resources.SECRETS, key, uid=found.metadata.uid)
            log.info("authorities_deleted", name=key.name)
        return True

    def _is_of_none(self, found: ObjectMeta) -> bool:
        """Whether no cluster has these CAs, live.

        By a list: a request for one object has the answer 404 also where its kind is not served.
        """
        version, namespace, _ = _cluster_of(found)
        resource = CLUSTERS.get(version)
        if resource is None or not namespace:
            return False
        try:
            clusters = self._client.list(resource, Written, namespace=namespace).whole()
        except NotFound:
            return False
        return all(cluster.metadata.uid != found.labels.get(CA_LABEL) for cluster in clusters)

    def _is_used(self, found: Secret) -> bool:
        """Whether a pod has certificates of these CAs, live, as far as is known."""
        _, namespace, name = _cluster_of(found.metadata)
        try:
            made = authorities_of(found.data)
        except BadCertificate:
            made = None
        pods = self._client.list(resources.PODS, Pod, namespace=namespace).whole()
        return any(_uses(pod, name, made) for pod in pods)


def _cluster_of(found: ObjectMeta) -> tuple[str, str, str]:
    """API version, namespace and name."""
    version, _, key = found.annotations.get(CLUSTER_ANNOTATION, "").partition(" ")
    namespace, _, name = key.partition("/")
    return version, namespace, name


def _secrets(volume: Volume) -> list[tuple[str, bool]]:
    """The names of the Secrets in a volume, and whether the pod needs them to start."""
    single = [volume.secret] if volume.secret else []
    sources = (volume.projected or {}).get("sources", [])
    found = [*single, *(source["secret"] for source in sources if "secret" in source)]
    return [
        (each.get("secretName") or each.get("name", ""), not each.get("optional", False)) for each in found
    ]


def _uses(pod: Pod, cluster: str, made: Authorities | None) -> bool:
    secrets = [each for volume in pod.spec.volumes for each in _secrets(volume)]
    needed = [is_needed for name, is_needed in secrets if is_member_name(name.removesuffix("-tls"), cluster)]
    if not needed:
        return False
    text = pod.metadata.annotations.get(LOADED_ANNOTATION, "")
    loaded = {ca.key_id for side in ("peer", "client") for ca in loaded_of(text, side) or ()}
    if not loaded:
        return any(needed)
    if made is None:
        return True
    return bool(loaded & {ca.key_id for side in (made.peer, made.client) for ca in side.record.trusted})
