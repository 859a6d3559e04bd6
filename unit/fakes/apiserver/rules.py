"""What a real API server adds to, keeps from and refuses in an object of a given kind.

Only what operators rely on: defaults that are read back, status that a client cannot set on the main
resource, fields that cannot change, names that are not allowed.
"""

import re
from collections.abc import Callable
from typing import Any

from unit.fakes.apiserver import kinds
from unit.fakes.apiserver.kinds import Json, Kind
from unit.fakes.apiserver.refusals import Refusal, bad_request, invalid
from unit.fakes.apiserver.store import copied

CLAIM_PROTECTION = "kubernetes.io/pvc-protection"

_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_LABEL = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")

# Everything that a client may not set, or set again, in metadata.
_SERVER_FIELDS = ("uid", "creationTimestamp", "generation", "deletionTimestamp", "deletionGracePeriodSeconds")


def check_envelope(kind: Kind, namespace: str, name: str, body: Any) -> Json:
    """A private copy of `body` that matches the path; 400 when the two differ."""
    if not isinstance(body, dict):
        raise bad_request("the object provided is unrecognized (must be of type Object)")
    obj = copied(body)
    obj.setdefault("apiVersion", kind.api_version)
    obj.setdefault("kind", kind.kind)
    if (obj["apiVersion"], obj["kind"]) != (kind.api_version, kind.kind):
        raise bad_request(f"{obj['kind']} in {obj['apiVersion']} cannot be handled as a {kind.kind}")
    meta = obj["metadata"] = obj.get("metadata") or {}
    if name and meta.setdefault("name", name) != name:
        raise bad_request("the name of the object does not match the name on the URL")
    if namespace and (meta.get("namespace") or namespace) != namespace:
        raise bad_request(
            "the namespace of the provided object does not match the namespace sent on the request"
        )
    if kind.namespaced:
        meta["namespace"] = namespace
    return obj


def check_name(kind: Kind, name: str) -> None:
    """422 for a name that is no DNS name of the length and form the kind needs."""
    pattern, longest = (_LABEL, 63) if kind == kinds.SERVICES else (_SUBDOMAIN, 253)
    if len(name) > longest or not pattern.fullmatch(name):
        raise invalid(kind, name, f'metadata.name: Invalid value: "{name}": must be a DNS name')


def new_status(kind: Kind) -> Json | None:
    """The status that an object is bootstrapped with; what the client sent as status is dropped."""
    match kind.plural:
        case "pods":
            return {"phase": "Pending", "qosClass": "BestEffort"}
        case "persistentvolumeclaims":
            return {"phase": "Pending"}
        case "namespaces":
            return {"phase": "Active"}
        case "services":
            return {"loadBalancer": {}}
        case "replicasets":
            return {"replicas": 0}
        case "customresourcedefinitions":
            return {"conditions": [{"type": t, "status": "True"} for t in ("NamesAccepted", "Established")]}
        case _:
            return None if kind.custom else {}


def add_defaults(kind: Kind, obj: Json, allocate_ip: Callable[[], str]) -> None:
    """Fill in what the server fills in, on every write, so that a PUT without it changes nothing."""
    spec = obj.get("spec")
    if not isinstance(spec, dict):
        return
    match kind.plural:
        case "pods":
            _add_pod_defaults(spec)
        case "persistentvolumeclaims":
            spec.setdefault("volumeMode", "Filesystem")
        case "replicasets":
            spec.setdefault("replicas", 1)
            _add_pod_defaults(spec.get("template", {}).get("spec", {}))
        case "services":
            spec.setdefault("type", "ClusterIP")
            for port in spec.get("ports") or []:
                port.setdefault("protocol", "TCP")
                port.setdefault("targetPort", port.get("port"))
            if not spec.get("clusterIP"):
                spec["clusterIP"] = allocate_ip()
        case "customresourcedefinitions":
            spec["names"].setdefault("listKind", spec["names"]["kind"] + "List")
            spec["names"].setdefault("singular", spec["names"]["kind"].lower())
        case _:
            pass


def _add_pod_defaults(spec: Json) -> None:
    spec.setdefault("restartPolicy", "Always")
    spec.setdefault("terminationGracePeriodSeconds", 30)
    spec.setdefault("dnsPolicy", "ClusterFirst")


def check_new(kind: Kind, obj: Json) -> None:
    """422 for a new object that breaks a rule of its kind."""
    name = obj["metadata"]["name"]
    if kind == kinds.PODS and not (obj.get("spec") or {}).get("containers"):
        raise invalid(kind, name, "spec.containers: Required value")
    if kind == kinds.EVENTS:
        regarded = (obj.get("involvedObject") or {}).get("namespace") or "default"
        if regarded != obj["metadata"]["namespace"]:
            raise invalid(kind, name, "involvedObject.namespace: does not match event.namespace")


def check_change(kind: Kind, old: Json, new: Json) -> None:
    """422 for a change of what cannot change: specs of pods and claims, selectors, late finalizers."""
    name = new["metadata"]["name"]
    if old["metadata"].get("deletionTimestamp"):
        late = set(new["metadata"].get("finalizers") or ()) - set(old["metadata"].get("finalizers") or ())
        if late:
            why = "no new finalizers can be added if the object is being deleted"
            raise invalid(kind, name, f"metadata.finalizers: Forbidden: {why}, found {sorted(late)}")
    frozen = _FROZEN.get(kind.plural)
    if kind == kinds.CLAIMS and not old["spec"].get("volumeName"):
        old = {**old, "spec": {**old["spec"], "volumeName": new["spec"].get("volumeName")}}  # binding sets it
    if frozen is not None and frozen(old) != frozen(new):
        raise invalid(kind, name, "spec: Forbidden: field is immutable")


def _frozen_in_pod(obj: Json) -> Json:
    may_change = (
        "activeDeadlineSeconds",
        "tolerations",
        "ephemeralContainers",
    )  # the last: by its subresource
    spec = {k: v for k, v in obj["spec"].items() if k not in may_change}
    for field in ("containers", "initContainers"):
        spec[field] = [{**container, "image": ""} for container in spec.get(field) or []]
    return spec


def _frozen_in_claim(obj: Json) -> Json:
    may_change = ("resources", "volumeAttributesClassName")
    return {k: v for k, v in obj["spec"].items() if k not in may_change and v is not None}


_FROZEN: dict[str, Callable[[Json], Any]] = {
    "pods": _frozen_in_pod,
    "persistentvolumeclaims": _frozen_in_claim,
    "replicasets": lambda obj: obj["spec"].get("selector"),
    "services": lambda obj: obj["spec"].get("clusterIP"),
}


def carry_over(kind: Kind, old: Json, wanted: Json, *, status_only: bool) -> Json:
    """What `wanted` may change of `old`: the status alone, or everything but the status."""
    if status_only:
        new = copied(old)
        if "status" in wanted:
            new["status"] = wanted["status"]
        else:
            new.pop("status", None)
        if kind == kinds.PODS:
            _take_annotations(new["metadata"], wanted["metadata"])
    else:
        new = wanted
        if kind.has_status:
            new.pop("status", None)
            if "status" in old:
                new["status"] = old["status"]
        if kind == kinds.SERVICES and not new["spec"].get("clusterIP"):
            new["spec"]["clusterIP"] = old["spec"]["clusterIP"]
    for field in _SERVER_FIELDS:
        new["metadata"].pop(field, None)
        if field in old["metadata"]:
            new["metadata"][field] = old["metadata"][field]
    return new


def with_ephemeral_containers(old: Json, wanted: Json) -> Json:
    """What a write to that subresource may change of a pod: containers are added, none changes or goes."""
    before = old["spec"].get("ephemeralContainers") or []
    added = wanted["spec"].get("ephemeralContainers") or []
    if added[: len(before)] != before:
        why = (
            "spec.ephemeralContainers: Forbidden: existing ephemeral containers may not be removed or changed"
        )
        raise invalid(kinds.PODS, old["metadata"]["name"], why)
    new = copied(old)
    new["spec"]["ephemeralContainers"] = added
    new["metadata"]["resourceVersion"] = wanted["metadata"].get("resourceVersion")
    return new


def _take_annotations(new: Json, wanted: Json) -> None:
    """The door to a pod's status opens its labels and annotations, too; custom resources keep theirs shut."""
    for field in ("labels", "annotations"):
        new.pop(field, None)
        if wanted.get(field):
            new[field] = wanted[field]


def means_the_same(old: Json, new: Json) -> bool:
    """Whether a write of `new` over `old` is none: no new version, no watch event."""
    return _without_version(old) == _without_version(new)


def moves_generation(old: Json, new: Json) -> bool:
    """Whether anything but metadata and status differs."""
    return {k: v for k, v in old.items() if k not in ("metadata", "status")} != {
        k: v for k, v in new.items() if k not in ("metadata", "status")
    }


def _without_version(obj: Json) -> Json:
    plain = copied(obj)
    plain["metadata"].pop("resourceVersion", None)
    for field in ("labels", "annotations", "finalizers", "ownerReferences"):
        if not plain["metadata"].get(field):
            plain["metadata"].pop(field, None)
    return plain


def grace_of(kind: Kind, obj: Json, asked: int | None) -> int:
    """Seconds that the object is given to end: only a pod on a node that has not ended gets any."""
    if kind != kinds.PODS:
        return 0
    ended = obj.get("status", {}).get("phase") in ("Failed", "Succeeded")
    if ended or not obj["spec"].get("nodeName"):
        return 0
    return int(obj["spec"]["terminationGracePeriodSeconds"]) if asked is None else asked


def namespace_is_open(namespace: Json | None, name: str) -> None:
    """404 for a namespace that is not there, 403 for one that is going away."""
    if namespace is None:
        raise Refusal(404, "NotFound", f'namespaces "{name}" not found', name=name, kind="namespaces")
    if namespace["metadata"].get("deletionTimestamp"):
        why = f"unable to create new content in namespace {name} because it is being terminated"
        raise Refusal(403, "Forbidden", why, causes=[{"reason": "NamespaceTerminating"}])
