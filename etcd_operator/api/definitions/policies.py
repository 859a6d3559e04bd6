"""Admission policies: checks that a schema cannot express, without a webhook.

A warning, about the size or an annotation that the operator does not know, never stops a write. A PUT
without `metadata.resourceVersion`, as the coreos.com documents show it, gets the current one. A validation
rule of a CustomResourceDefinition cannot see annotations, so a policy refuses a wrong value of one. These
policies fail open: if the API server cannot evaluate one, it ignores it.

Writing EtcdPeers requires the permission `operate`, which only the operator's role grants; the
policy for this fails closed (decision 017). EtcdBackups that a schedule owns require it, too.

MutatingAdmissionPolicy requires Kubernetes 1.36; older API servers do not support it.
"""

from collections.abc import Iterable
from typing import Any

from etcd_operator.api import coreos, improbable
from etcd_operator.api.backup_schedules import KIND as SCHEDULE
from etcd_operator.api.definitions.validations import OPERATOR_CREATES_PEERS
from etcd_operator.api.restores import UID_ANNOTATION
from etcd_operator.api.shared_keys import ADOPTABLE_ANNOTATION, RECOVER_ANNOTATION, RESTORE_ANNOTATION

Manifest = dict[str, Any]

API_VERSION = "admissionregistration.k8s.io/v1"
PREFIX = "etcd-operator-"
LARGEST_SENSIBLE = 7

OPERATE = "operate"
"""The verb on etcdpeers that a user needs to write one. Kubernetes itself does not use this verb."""

_EVEN = (
    "string(variables.size) + ' members tolerate the failure of ' + (variables.size == 2 ? 'none' : "
    "string(variables.size / 2 - 1)) + ', the same as ' + string(variables.size - 1) + "
    "', and writes are slower: use ' + string(variables.size - 1) + ' or ' + string(variables.size + 1)"
)
_MANY = (
    "'with ' + string(variables.size) + ' members every write waits for ' + string(variables.size / 2 + 1) + "
    f"' of them: use at most {LARGEST_SENSIBLE}'"
)

_WRITES = ["CREATE", "UPDATE"]


def policies() -> tuple[Manifest, ...]:
    """All policies, each followed by its binding."""
    coreos_size = "has(object.spec) && has(object.spec.size) ? object.spec.size : object.size"
    scale_size = "has(object.spec.replicas) ? object.spec.replicas : 0"
    # A policy of its own for both groups: writes to the subresource contain a Scale.
    scale = [_improbable(["UPDATE"], "etcdclusters/scale"), _coreos(["UPDATE"], "etcdclusters/scale")]
    return (
        *_size_warning("replicas", "object.spec.replicas", [_improbable(_WRITES, "etcdclusters")]),
        *_size_warning("size", coreos_size, [_coreos(_WRITES, "etcdclusters")]),
        *_size_warning("scale", scale_size, scale),
        *_paused(),
        *_annotations_warning(),
        *_fill_resource_version(),
        *_operator_only(),
        *_of_schedules(),
    )


def _size_warning(name: str, size: str, on: list[Manifest]) -> tuple[Manifest, Manifest]:
    return _validating(
        name,
        "Warn",
        on,
        {"expression": "variables.size < 1 || variables.size % 2 == 1", "messageExpression": _EVEN},
        {"expression": f"variables.size <= {LARGEST_SENSIBLE}", "messageExpression": _MANY},
        variables=[{"name": "size", "expression": size}],
    )


FOR_USERS = (improbable.PAUSED_ANNOTATION, RECOVER_ANNOTATION, RESTORE_ANNOTATION, ADOPTABLE_ANNOTATION)
"""The annotations of an EtcdCluster of `etcd.improbable.io` that a user sets."""

_EARLIER = {
    "name": "earlier",
    "expression": "request.operation == 'CREATE' ? {} : oldObject.metadata.?annotations.orValue({})",
}
"""Annotations that an object has already stop and warn nobody: others write it, too."""


def _paused() -> tuple[Manifest, Manifest]:
    key = f"'{improbable.PAUSED_ANNOTATION}'"
    check = {
        "expression": "variables.paused in ['true', 'false'] || "
        f"variables.earlier[?{key}].orValue('false') == variables.paused",
        "messageExpression": f"'metadata.annotations: {improbable.PAUSED_ANNOTATION} "
        f"{improbable.PAUSED_FORM}, not \"' + variables.paused + '\"'",
        "reason": "Invalid",
    }
    paused = f"object.metadata.?annotations[?{key}].orValue('false')"
    variables = [_EARLIER, {"name": "paused", "expression": paused}]
    return _validating("paused", "Deny", [_improbable(_WRITES, "etcdclusters")], check, variables=variables)


def _annotations_warning() -> tuple[Manifest, Manifest]:
    known = ", ".join(f"'{name}'" for name in (*FOR_USERS, UID_ANNOTATION))
    unknown = (
        "object.metadata.?annotations.orValue({}).filter(k, "
        f"k.startsWith('{improbable.RESERVED_PREFIX}') && !(k in [{known}]) && !(k in variables.earlier))"
    )
    check = {
        "expression": "variables.unknown.size() == 0",
        "messageExpression": "'metadata.annotations: the operator ignores ' + "
        f"variables.unknown.join(', ') + ': it reads {', '.join(FOR_USERS)}'",
    }
    variables = [_EARLIER, {"name": "unknown", "expression": unknown}]
    on = [_improbable(_WRITES, "etcdclusters")]
    return _validating("annotations", "Warn", on, check, variables=variables)


def _fill_resource_version() -> tuple[Manifest, Manifest]:
    patch = (
        "[JSONPatch{op: 'add', path: '/metadata/resourceVersion', value: oldObject.metadata.resourceVersion}]"
    )
    spec = {
        "failurePolicy": "Ignore",
        "reinvocationPolicy": "Never",
        "matchConstraints": {"resourceRules": [_coreos(["UPDATE"], "etcdclusters", "etcdclusters/status")]},
        "matchConditions": [
            {"name": "none-given", "expression": "object.metadata.?resourceVersion.orValue('') == ''"}
        ],
        "mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression": patch}}],
    }
    return _bound("MutatingAdmissionPolicy", "resource-version", spec)


_MAY_OPERATE = (
    f"authorizer.group('{improbable.GROUP}').resource('etcdpeers').subresource('{OPERATE}')"
    ".namespace(request.namespace).check('update').allowed()"
)


def _operator_only() -> tuple[Manifest, Manifest]:
    """Only the operator creates EtcdPeers and changes the fields that it reads; deletion is not restricted.

    The garbage collector does not have the permission; it removes finalizers and owners and changes nothing
    else. The operator does not read annotations of EtcdPeers.
    """
    harmless = (
        "request.operation == 'UPDATE'",
        "object.spec == oldObject.spec",
        "object.metadata.?labels.orValue({}) == oldObject.metadata.?labels.orValue({})",
        _none_new("finalizers", "o == x"),
        _none_new(
            "ownerReferences",
            "o.uid == x.uid && o.?controller.orValue(false) == x.?controller.orValue(false)",
        ),
    )
    check = {
        "expression": f"({' && '.join(harmless)}) || {_MAY_OPERATE}",
        "message": f"{OPERATOR_CREATES_PEERS} "
        f"(writing them requires the permission to update etcdpeers/{OPERATE})",
        "reason": "Forbidden",
    }
    return _validating("peers", "Deny", [_improbable(_WRITES, "etcdpeers")], check, fails_open=False)


def _of_schedules() -> tuple[Manifest, Manifest]:
    """Only the operator creates EtcdBackups for a schedule, of which the schedule removes the oldest ones."""
    owners = "metadata.?ownerReferences.orValue([])"
    is_old = f"request.operation == 'UPDATE' && oldObject.{owners}.exists(o, o.uid == x.uid)"
    check = {
        "expression": f"object.{owners}.all(x, x.kind != '{SCHEDULE}' || ({is_old})) || {_MAY_OPERATE}",
        "message": f"metadata.ownerReferences: only the operator creates EtcdBackups that an {SCHEDULE} owns "
        f"(that requires the permission to update etcdpeers/{OPERATE})",
        "reason": "Forbidden",
    }
    return _validating("schedules", "Deny", [_improbable(_WRITES, "etcdbackups")], check)


def _none_new(field: str, same: str) -> str:
    """CEL: every `x` in a list of the metadata existed before, as an equal `o`."""
    place = f"metadata.?{field}.orValue([])"
    return f"object.{place}.all(x, oldObject.{place}.exists(o, {same}))"


def _improbable(operations: list[str], *resources: str) -> Manifest:
    return _on(improbable.GROUP, improbable.VERSION, operations, resources)


def _coreos(operations: list[str], *resources: str) -> Manifest:
    return _on(coreos.GROUP, coreos.VERSION, operations, resources)


def _on(group: str, version: str, operations: list[str], resources: Iterable[str]) -> Manifest:
    return {
        "apiGroups": [group],
        "apiVersions": [version],
        "resources": list(resources),
        "operations": operations,
    }


def _validating(
    name: str,
    action: str,
    on: list[Manifest],
    *checks: Manifest,
    variables: Iterable[Manifest] = (),
    fails_open: bool = True,
) -> tuple[Manifest, Manifest]:
    spec = {
        "failurePolicy": "Ignore" if fails_open else "Fail",
        "matchConstraints": {"resourceRules": on},
        **({"variables": list(variables)} if variables else {}),
        "validations": list(checks),
    }
    return _bound("ValidatingAdmissionPolicy", name, spec, validationActions=[action])


def _bound(kind: str, name: str, spec: Manifest, **binding: list[str]) -> tuple[Manifest, Manifest]:
    """A policy and its binding."""
    name = f"{PREFIX}{name}"
    return (_manifest(kind, name, spec), _manifest(f"{kind}Binding", name, {"policyName": name, **binding}))


def _manifest(kind: str, name: str, spec: Manifest) -> Manifest:
    return {"apiVersion": API_VERSION, "kind": kind, "metadata": {"name": name}, "spec": spec}
