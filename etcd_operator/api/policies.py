"""Admission policies: what a schema cannot say, said without a webhook.

Warnings about sizes never stop a write; a PUT without `metadata.resourceVersion`, as the
coreos.com documents show it, gets the current one filled in. These fail open: if a policy
cannot be evaluated, the write goes on as if it did not exist.

EtcdPeers are written by whoever holds the right `operate` on them, which the operator's role
gives; everybody else is refused (decision 017).

MutatingAdmissionPolicy is served from Kubernetes 1.36 on; older API servers do not know it.
"""

from typing import Any

from etcd_operator.api import coreos, improbable
from etcd_operator.api.validations import PEERS_ARE_MADE

Manifest = dict[str, Any]

API_VERSION = "admissionregistration.k8s.io/v1"
PREFIX = "etcd-operator-"
LARGEST_SENSIBLE = 7

OPERATE = "operate"
"""The verb on etcdpeers without which nobody may write one. The API server has no such verb of its own."""

_EVEN = (
    "'with ' + string(variables.size) + ' members ' + (variables.size == 2 ? 'none' : "
    "string(variables.size / 2 - 1)) + ' may fail, the same as with ' + string(variables.size - 1) + "
    "', and writes are slower: better ' + string(variables.size - 1) + ' or ' + string(variables.size + 1)"
)
_MANY = (
    "string(variables.size) + ' members make every write wait for ' + string(variables.size / 2 + 1) + "
    f"' of them: {LARGEST_SENSIBLE} is the most that is sensible'"
)


def policies() -> tuple[Manifest, ...]:
    """All policies, each followed by its binding."""
    return (
        *_size_warning("replicas", improbable.GROUP, improbable.VERSION, "object.spec.replicas"),
        *_size_warning(
            "size",
            coreos.GROUP,
            coreos.VERSION,
            "has(object.spec) && has(object.spec.size) ? object.spec.size : object.size",
        ),
        *_scale_warning(),
        *_fill_resource_version(),
        *_operator_only(),
    )


def _size_warning(name: str, group: str, version: str, size: str) -> tuple[Manifest, Manifest]:
    return _warning(f"{PREFIX}{name}", size, [_on(["CREATE", "UPDATE"], group, version, "etcdclusters")])


def _scale_warning() -> tuple[Manifest, Manifest]:
    # A policy of its own: what is written to the subresource is a Scale in both groups.
    return _warning(
        f"{PREFIX}scale",
        "has(object.spec.replicas) ? object.spec.replicas : 0",
        [
            _on(["UPDATE"], improbable.GROUP, improbable.VERSION, "etcdclusters/scale"),
            _on(["UPDATE"], coreos.GROUP, coreos.VERSION, "etcdclusters/scale"),
        ],
    )


def _warning(name: str, size: str, on: list[Manifest]) -> tuple[Manifest, Manifest]:
    spec = {
        "failurePolicy": "Ignore",
        "matchConstraints": {"resourceRules": on},
        "variables": [{"name": "size", "expression": size}],
        "validations": [
            {"expression": "variables.size < 1 || variables.size % 2 == 1", "messageExpression": _EVEN},
            {"expression": f"variables.size <= {LARGEST_SENSIBLE}", "messageExpression": _MANY},
        ],
    }
    binding = {"policyName": name, "validationActions": ["Warn"]}
    return (
        _manifest("ValidatingAdmissionPolicy", name, spec),
        _manifest("ValidatingAdmissionPolicyBinding", name, binding),
    )


def _fill_resource_version() -> tuple[Manifest, Manifest]:
    name = f"{PREFIX}resource-version"
    spec = {
        "failurePolicy": "Ignore",
        "reinvocationPolicy": "Never",
        "matchConstraints": {
            "resourceRules": [
                _on(["UPDATE"], coreos.GROUP, coreos.VERSION, "etcdclusters", "etcdclusters/status")
            ]
        },
        "matchConditions": [
            {
                "name": "none-given",
                "expression": "object.metadata.?resourceVersion.orValue('') == ''",
            }
        ],
        "mutations": [
            {
                "patchType": "JSONPatch",
                "jsonPatch": {
                    "expression": "[JSONPatch{op: 'add', path: '/metadata/resourceVersion', "
                    "value: oldObject.metadata.resourceVersion}]"
                },
            }
        ],
    }
    return (
        _manifest("MutatingAdmissionPolicy", name, spec),
        _manifest("MutatingAdmissionPolicyBinding", name, {"policyName": name}),
    )


_MAY_OPERATE = (
    f"authorizer.group('{improbable.GROUP}').resource('etcdpeers')"
    f".namespace(request.namespace).check('{OPERATE}').allowed()"
)


def _operator_only() -> tuple[Manifest, Manifest]:
    """Nobody but the operator creates EtcdPeers, or changes what it reads of them; everybody may delete.

    The garbage collector, which has no such right, takes finalizers and owners away and changes nothing
    else. Annotations are not read.
    """
    name = f"{PREFIX}peers"
    unchanged = (
        "object.spec == oldObject.spec",
        "object.metadata.?labels.orValue({}) == oldObject.metadata.?labels.orValue({})",
        _none_new("finalizers", "o == x"),
        _none_new(
            "ownerReferences",
            "o.uid == x.uid && o.?controller.orValue(false) == x.?controller.orValue(false)",
        ),
    )
    harmless = " && ".join(["request.operation == 'UPDATE'", *unchanged])
    spec = {
        "failurePolicy": "Fail",
        "matchConstraints": {
            "resourceRules": [
                _on(["CREATE", "UPDATE"], improbable.GROUP, improbable.VERSION, "etcdpeers"),
            ]
        },
        "validations": [
            {
                "expression": f"({harmless}) || {_MAY_OPERATE}",
                "message": f"{PEERS_ARE_MADE} (only who has the right '{OPERATE}' on etcdpeers writes them)",
                "reason": "Forbidden",
            }
        ],
    }
    return (
        _manifest("ValidatingAdmissionPolicy", name, spec),
        _manifest(
            "ValidatingAdmissionPolicyBinding", name, {"policyName": name, "validationActions": ["Deny"]}
        ),
    )


def _none_new(field: str, same: str) -> str:
    """CEL: every `x` in a list of the metadata was there before, as an `o` that is the same."""
    place = f"metadata.?{field}.orValue([])"
    return f"object.{place}.all(x, oldObject.{place}.exists(o, {same}))"


def _on(operations: list[str], group: str, version: str, *resources: str) -> Manifest:
    return {
        "apiGroups": [group],
        "apiVersions": [version],
        "resources": list(resources),
        "operations": operations,
    }


def _manifest(kind: str, name: str, spec: Manifest) -> Manifest:
    return {"apiVersion": API_VERSION, "kind": kind, "metadata": {"name": name}, "spec": spec}
