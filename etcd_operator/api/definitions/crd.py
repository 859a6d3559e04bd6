"""The CustomResourceDefinitions, rendered from the API types.

`crds` returns them as plain dicts: the operator applies them at start, and
`hack/generate-manifests` writes them to `manifests/crd`. They contain all validation rules, so
no webhook is needed.
"""

from collections.abc import Iterable
from typing import Any

from etcd_operator.api import backups, coreos, improbable, restores, users
from etcd_operator.api.backup_schedules import EtcdBackupSchedule, ScheduleSpec, ScheduleStatus
from etcd_operator.api.definitions import (
    backup_validations,
    restore_validations,
    schedule_validations,
    user_validations,
    validations,
)
from etcd_operator.api.definitions.cel import Validation
from etcd_operator.api.definitions.limits import BOUNDS, UNSUPPORTED_FIELDS
from etcd_operator.api.definitions.schema import Schema, at, described, fields, limit, of_type

Manifest = dict[str, Any]

CATEGORY = "etcd-operator"
"""`kubectl get etcd-operator` lists the objects of both groups."""

_AGE = {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}


def crds() -> tuple[Manifest, ...]:
    """All CustomResourceDefinitions."""
    return (
        _improbable_cluster(),
        _peer(),
        _backup(),
        _schedule(),
        _restore(),
        _role(),
        _user(),
        _coreos_cluster(),
    )


def _improbable_cluster() -> Manifest:
    schema = _with_spec(improbable.EtcdCluster, improbable.ClusterSpec, improbable.ClusterStatus)
    return _definition(
        improbable.API_VERSION,
        "EtcdCluster",
        _finished(schema, validations.IMPROBABLE_CLUSTER),
        _column("Replicas", ".spec.replicas", kind="integer"),
        _column("Ready", ".status.readyReplicas", kind="integer"),
        _column("Version", ".status.currentVersion"),
        _column("Status", '.status.conditions[?(@.type=="Available")].reason'),
        _column("Recovery", ".spec.recovery", priority=1),
        short_name="etcd",
        scale="replicas",
    )


def _peer() -> Manifest:
    schema = _with_spec(improbable.EtcdPeer, improbable.PeerSpec, improbable.PeerStatus)
    # Stored EtcdPeers of an earlier operator lack these; nobody writes another one.
    at(schema, "spec")["required"].insert(1, "version")
    at(schema, "spec.bootstrap")["required"].append("initialClusterToken")
    return _definition(
        improbable.API_VERSION,
        "EtcdPeer",
        # A spec is a copy of parts of a stored cluster, which may exceed a limit that was introduced later.
        _finished(schema, validations.PEER, limited=("status",)),
        _column("Cluster", ".spec.clusterName"),
        _column("Version", ".status.serverVersion"),
        _column("Member ID", ".status.memberID", priority=1),
    )


def _backup() -> Manifest:
    schema = _with_spec(backups.EtcdBackup, backups.BackupSpec, backups.BackupStatus)
    return _definition(
        improbable.API_VERSION,
        backups.KIND,
        _finished(schema, backup_validations.BACKUP),
        _column("Phase", ".status.phase"),
        _column("Reason", '.status.conditions[?(@.type=="Complete")].reason'),
        _column("Revision", ".status.revision", kind="integer"),
        _column("Size", ".status.size", kind="integer"),
        _column("Verified", '.status.conditions[?(@.type=="Verified")].status'),
        _column("URL", ".status.url", priority=1),
    )


def _schedule() -> Manifest:
    schema = _with_spec(EtcdBackupSchedule, ScheduleSpec, ScheduleStatus)
    return _definition(
        improbable.API_VERSION,
        "EtcdBackupSchedule",
        _finished(schema, schedule_validations.SCHEDULE),
        _column("Schedule", ".spec.schedule"),
        _column("Status", '.status.conditions[?(@.type=="Ready")].reason'),
        _column("Last Backup", ".status.lastBackup.phase"),
        _column("Last Success", ".status.lastSuccessfulTime", kind="date"),
        _column("Last Verified", ".status.lastVerifiedTime", kind="date"),
        _column("Next", ".status.nextScheduleTime", priority=1),
        _column("URL", ".status.lastSuccessfulURL", priority=1),
    )


def _restore() -> Manifest:
    schema = _with_spec(restores.EtcdRestore, restores.RestoreSpec, restores.RestoreStatus)
    return _definition(
        improbable.API_VERSION,
        restores.KIND,
        _finished(schema, restore_validations.RESTORE),
        _column("Cluster", ".spec.clusterTemplate.clusterName"),
        _column("Phase", ".status.phase"),
        _column("Reason", '.status.conditions[?(@.type=="Complete")].reason'),
        _column("Progress", ".status.progress"),
        _column("Revision", ".status.snapshot.revision", kind="integer"),
        _column("URL", ".status.url", priority=1),
    )


def _role() -> Manifest:
    schema = _with_spec(users.EtcdRole, users.RoleSpec, users.RoleStatus)
    return _definition(
        improbable.API_VERSION,
        users.ROLE_KIND,
        _finished(schema, user_validations.ROLE),
        _column("Cluster", ".spec.clusterRef.name"),
        _column("Ready", '.status.conditions[?(@.type=="Ready")].status'),
        _column("Reason", '.status.conditions[?(@.type=="Ready")].reason'),
    )


def _user() -> Manifest:
    schema = _with_spec(users.EtcdUser, users.UserSpec, users.UserStatus)
    return _definition(
        improbable.API_VERSION,
        users.USER_KIND,
        _finished(schema, user_validations.USER),
        _column("Cluster", ".spec.clusterRef.name"),
        _column("Ready", '.status.conditions[?(@.type=="Ready")].status'),
        _column("Reason", '.status.conditions[?(@.type=="Ready")].reason'),
        _column("Secret", ".status.connectionSecret"),
        _column("User", ".status.username", priority=1),
        _column("Rotation", ".status.rotationTime", priority=1),
    )


def _coreos_cluster() -> Manifest:
    schema = _object(coreos.EtcdCluster, coreos.ClusterSpec, coreos.ClusterStatus)
    spec = at(schema, "spec")
    schema["properties"]["size"] = at(spec, "size") | {
        "description": "The place of spec.size in the oldest version of this API; spec.size takes precedence."
    }
    for field, kind in UNSUPPORTED_FIELDS.items():
        above, _, name = field.rpartition(".")
        at(spec, above)["properties"][name] = _refused(kind)
    return _definition(
        coreos.API_VERSION,
        "EtcdCluster",
        _finished(schema, validations.COREOS_CLUSTER),
        _column("Size", ".status.size", kind="integer"),
        _column("Ready", '.status.conditions[?(@.type=="Available")].status'),
        _column("Version", ".status.currentVersion"),
        _column("Phase", ".status.phase"),
        _column("Last backup", ".status.backup.time", kind="date", priority=1),
        _column("Recovery", ".spec.recovery", priority=1),
        # kubectl finds a resource by its singular and by its kind in lower case. If both groups had the same
        # singular, `kubectl scale EtcdCluster` would select this one.
        singular="coreosetcdcluster",
        short_name="ec",
        scale="size",
    )


def _refused(kind: str) -> Schema:
    """The schema of a field that a rule refuses, whatever its content."""
    anything = {"x-kubernetes-preserve-unknown-fields": True}
    inside: dict[str, Schema] = {"object": anything, "array": {"items": {"type": "object", **anything}}}
    return {"type": kind, "description": "Not supported yet: refused.", **inside.get(kind, {})}


def _with_spec(kind: type, spec: type, status: type) -> Schema:
    """No object of etcd.improbable.io is valid without a spec."""
    return _object(kind, spec, status) | {"required": ["spec"]}


def _object(kind: type, spec: type, status: type) -> Schema:
    text = {"type": "string"}
    parts = {
        "apiVersion": text,
        "kind": dict(text),
        # The name is declared so that an error can name it.
        "metadata": {"type": "object", "properties": {"name": dict(text)}},
        "spec": of_type(spec),
        "status": of_type(status),
    }
    return {"type": "object", "properties": parts, "description": described(kind)}


def _finished(
    schema: Schema, checks: Iterable[Validation], *, limited: Iterable[str] = ("spec", "status")
) -> Schema:
    """With limits and rules. limited: the parts in which every text, list and map gets a limit."""
    by_type = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]}
    at(schema, "status.conditions").update(by_type)
    for path in fields(schema):
        for end, bound in BOUNDS.items():
            if path.endswith(f".{end}") or path == end:
                at(schema, path).update(bound)
    for part in limited:
        limit(at(schema, part))
    for rule in checks:
        at(schema, rule.at).setdefault("x-kubernetes-validations", []).append(rule.rendered())
    return schema


def _column(name: str, path: str, *, kind: str = "string", priority: int = 0) -> Manifest:
    column: Manifest = {"name": name, "type": kind, "jsonPath": path}
    return column | {"priority": priority} if priority else column


def _definition(
    api_version: str,
    kind: str,
    schema: Schema,
    *columns: Manifest,
    singular: str = "",
    short_name: str = "",
    scale: str = "",
) -> Manifest:
    """The definition of a kind. scale: the field for the number of members, if it can be scaled."""
    group, _, version = api_version.partition("/")
    plural = f"{kind.lower()}s"
    names = {
        "kind": kind,
        "listKind": f"{kind}List",
        "singular": singular or kind.lower(),
        "plural": plural,
        "categories": [CATEGORY],
    }
    paths = {
        "specReplicasPath": f".spec.{scale}",
        "statusReplicasPath": f".status.{scale}",
        "labelSelectorPath": ".status.selector",
    }
    served = {
        "name": version,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
        "subresources": {"status": {}} | ({"scale": paths} if scale else {}),
        "additionalPrinterColumns": [*columns, _AGE],
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": names | ({"shortNames": [short_name]} if short_name else {}),
            "versions": [served],
        },
    }
