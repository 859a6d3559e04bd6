"""Carries out what was planned for a backup tool. Each action can be interrupted and repeated."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

from etcd_operator.api.coreos_backup import CLEANUP_FINALIZER
from etcd_operator.api.meta import RawObject
from etcd_operator.controllers.backup_tool.caches import ToolCaches
from etcd_operator.controllers.backup_tool.certificates import ToolCertificates
from etcd_operator.controllers.backup_tool.decide.plan import Act, ToolAction
from etcd_operator.controllers.backup_tool.manifests import backup_tool as render
from etcd_operator.controllers.backup_tool.manifests.backup_tool import ToolSettings
from etcd_operator.controllers.backup_tool.observe import ObservedTool
from etcd_operator.controllers.etcd_cluster.manifests.tls import secret_name
from etcd_operator.controllers.shared.name_conflicts import NameConflict
from etcd_operator.controllers.shared.objects import Objects
from etcd_operator.controllers.shared.tokens import Tokens, new_token
from etcd_operator.errors import AlreadyExists, NotFound
from etcd_operator.keys import Key
from etcd_operator.kube import resources
from etcd_operator.kube.events import EventType
from etcd_operator.kube.resources import Resource
from etcd_operator.kube.views import Written


@dataclass(frozen=True, kw_only=True)
class ToolActor:
    """Acts on the objects of one cluster's tool."""

    observed: ObservedTool
    objects: Objects
    caches: ToolCaches
    tokens: Tokens
    certificates: ToolCertificates
    storage_class: str  # of new claims; empty for the default
    event: Callable[[EventType, str, str], None]  # on the cluster
    clean_up: Callable[[], None]  # asks the tool to remove all backups, and waits for nothing

    def act(self, action: ToolAction) -> None:
        """Do it. Raises the errors of `Objects`."""
        acts: dict[Act, Callable[[ToolAction], None]] = {
            Act.CREATE_SECRET: self._create_secret,
            Act.KEEP_CERTIFICATES: self._keep_certificates,
            Act.REMOVE_CERTIFICATES: lambda _: self.certificates.remove(self.observed.desired, self.objects),
            Act.CREATE_SERVICE: self._create_service,
            Act.CREATE_CLAIM: self._create_claim,
            Act.GROW_CLAIM: self._grow_claim,
            Act.CREATE_REPLICA_SET: self._create_replica_set,
            Act.CHANGE_REPLICA_SET: self._change_replica_set,
            Act.REMOVE_REPLICA_SET: partial(self._remove, resources.REPLICA_SETS),
            Act.REMOVE_SERVICE: self._remove_service,
            Act.DELETE_POD: partial(self._remove, resources.PODS),
            Act.DELETE_CLAIM: self._delete_claim,
            Act.ADD_FINALIZER: lambda _: self._write_finalizers(CLEANUP_FINALIZER),
            Act.REMOVE_FINALIZER: lambda _: self._write_finalizers(),
            Act.GIVE_UP: self._give_up,
            Act.CLEAN_UP: lambda _: self.clean_up(),
        }
        acts[action.act](action)

    @property
    def _tool(self) -> ToolSettings:
        if self.observed.tool is None:
            raise TypeError("nothing is created without a tool")
        return self.observed.tool

    def _create(self, resource: Resource, body: RawObject, reason: str) -> None:
        if self.objects.create(resource, body):
            self.event("Normal", reason, f"created {resource.kind} {body['metadata']['name']}")

    def _create_service(self, _: ToolAction) -> None:
        self._create(resources.SERVICES, render.tool_service(self._tool.cluster), "ServiceCreated")

    def _create_replica_set(self, _: ToolAction) -> None:
        self._create(resources.REPLICA_SETS, render.replica_set(self._tool), "ReplicaSetCreated")

    def _grow_claim(self, action: ToolAction) -> None:
        request = {"storage": render.storage(self._tool.policy)}
        if action.about is not None:
            change = {"spec": {"resources": {"requests": request}}}
            self.objects.merge(resources.CLAIMS, action.about, change)

    def _create_secret(self, _: ToolAction) -> None:
        body = render.secret(self._tool.cluster, new_token())
        self._create(resources.SECRETS, body, "SecretCreated")
        self.tokens.forget(self._tool.cluster.key)

    def _keep_certificates(self, _: ToolAction) -> None:
        if self.certificates.keep(self._tool.cluster, self.objects):
            name = secret_name(render.tool_name(self._tool.cluster.name))
            self.event("Normal", "SecretCreated", f"created Secret {name}")

    def _create_claim(self, _: ToolAction) -> None:
        """It has no owner; its labels show whose it is, even if an earlier cluster of this name left it."""
        body = render.claim(self._tool.cluster, self._tool.policy, self.storage_class)
        name = body["metadata"]["name"]
        try:
            written = self.objects.client.create(resources.CLAIMS, self.objects.namespace, body, Written)
        except AlreadyExists:
            found = self.objects.find(resources.CLAIMS, name, Written)
            if found is None or body["metadata"]["labels"].items() <= found.metadata.labels.items():
                return  # it is being deleted, or the cache is behind
            wanted = ", ".join(f"{label}={value}" for label, value in body["metadata"]["labels"].items())
            raise NameConflict(
                f"PersistentVolumeClaim {name} belongs to somebody else: delete it, or give it the labels "
                f"{wanted} to use it for backups",
                is_passing=False,
            ) from None
        self.objects.wrote(resources.CLAIMS, self.objects.key(name), written.metadata.resource_version)
        self.event("Normal", "PVCCreated", f"created PersistentVolumeClaim {name}")

    def _change_replica_set(self, action: ToolAction) -> None:
        key = self.objects.key(render.tool_name(self.observed.desired.name))
        found = self.caches.replica_sets.store.get(key)
        if found is not None and action.about is not None and found.metadata.uid == action.about.uid:
            one_pod = {"op": "add", "path": "/spec/replicas", "value": 1}
            body = render.replica_set(self._tool)
            self.objects.change_template(resources.REPLICA_SETS, found.metadata, body, one_pod)

    def _delete_claim(self, _: ToolAction) -> None:
        """By a live read: not in a cache is not absent."""
        name = render.claim_name(self.observed.desired.name)
        found = self.objects.find(resources.CLAIMS, name, Written)
        labels = render.tool_labels(self.observed.desired.name)
        if found is None or not labels.items() <= found.metadata.labels.items():
            return
        if not found.metadata.is_deleting and self.objects.remove(resources.CLAIMS, found.metadata):
            self.event("Normal", "PVCRemoved", f"removed PersistentVolumeClaim {name} with its backups")

    def _write_finalizers(self, *added: str) -> None:
        metadata = self.observed.cluster.metadata
        others = [name for name in metadata.finalizers if name != CLEANUP_FINALIZER]
        with suppress(NotFound):
            self.objects.write_finalizers(resources.COREOS_CLUSTERS, metadata, [*others, *added])

    def _give_up(self, _: ToolAction) -> None:
        why = self.observed.state.cleanup.problem or "the backup tool does not run"
        self.event(
            "Warning", "CleanupGivenUp", f"backups of the deleted cluster are left in the store: {why}"
        )
        self._write_finalizers()

    def _remove_service(self, _: ToolAction) -> None:
        key = Key(self.objects.namespace, render.tool_name(self.observed.desired.name))
        found = self.caches.of_clusters.services.store.get(key)
        if found is not None:
            self.objects.remove(resources.SERVICES, found.metadata)

    def _remove(self, resource: Resource, action: ToolAction) -> None:
        if action.about is not None:
            self.objects.remove(resource, action.about)
