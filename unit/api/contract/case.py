"""One input that is refused, and what is common to the inputs of all resources."""

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Manifest = dict[str, Any]
MOST_MEMBERS = 100  # as in `cluster_spec`: hack/generate-bad-input runs without packages
PERSISTENT: Manifest = {
    "apiVersion": "etcd.improbable.io/v1alpha1",
    "kind": "EtcdCluster",
    "metadata": {"name": "my-cluster"},
    "spec": {
        "replicas": 1,
        "version": "3.6.16",
        "storage": {"volumeClaimTemplate": {"resources": {"requests": {"storage": "50Mi"}}}},
    },
}
EPHEMERAL: Manifest = {
    "apiVersion": "coreos.com/v1",
    "kind": "EtcdCluster",
    "metadata": {"name": "example-etcd-cluster"},
    "spec": {"size": 1, "version": "v3.5.35"},
}
PEER: Manifest = {
    "apiVersion": "etcd.improbable.io/v1alpha1",
    "kind": "EtcdPeer",
    "metadata": {"name": "no-cluster-0"},
    "spec": {
        "clusterName": "no-cluster",
        "version": "3.6.16",
        "storage": PERSISTENT["spec"]["storage"],
        "bootstrap": {
            "initialClusterState": "Existing",
            "initialClusterToken": "token",
            "static": {
                "initialCluster": [{"name": "no-cluster-0", "host": "no-cluster-0.no-cluster.default.svc"}]
            },
        },
    },
}
ABSENT = object()
Changes = dict[str, Any]
"""Path -> new value; ABSENT removes the field."""


def changed(base: Manifest, changes: Changes) -> Manifest:
    """A copy of `base` with `changes` made."""
    result = copy.deepcopy(base)
    for path, value in changes.items():
        *parents, last = path.split("/")
        place = result
        for parent in parents:
            place = place.setdefault(parent, {})
        if value is ABSENT:
            place.pop(last, None)
        else:
            place[last] = value
    return result


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """`base` with `changes` is refused with this message; `edits` means that `base` exists already.

    user: the author; empty for an administrator. Others have all verbs on EtcdPeers.
    """

    typed: str
    base: Manifest
    changes: Changes
    sees: str
    edits: bool = False
    user: str = ""

    @property
    def is_by_rule(self) -> bool:
        """Whether a CEL rule refuses it, not the schema or a policy."""
        is_invalid = "Invalid value: " in self.sees and " in body " not in self.sees
        return is_invalid or " evaluating rule: " in self.sees


AT_LEAST_ONE = "in body should be greater than or equal to 1"
AT_MOST = f"in body should be less than or equal to {MOST_MEMBERS}"
LONG = {f"a.example/{number}": "v" * 4085 for number in range(5)}
NO_VERSION = "is not a supported version: use a full version from 3.4.0 to 3.7.x, like 3.6.16 or v3.6.16"
NO_NAME = (
    "metadata.name: Invalid value: must start with a letter, contain only lower-case letters, digits and '-' "
    "(no dot), and not end with '-', because Services and host names are derived from it: choose another name"
)
CLAIM = "spec/storage/volumeClaimTemplate"
REQUESTS = f"{CLAIM}/resources/requests"
METADATA = "spec/podTemplate/metadata"
BOOTSTRAP = "spec/bootstrap"
NO_SIZE = (
    "spec.storage.volumeClaimTemplate.resources.requests: Invalid value: storage must be greater than 0: "
    "set the size of each member's volume, like 8Gi"
)


def too_long(longest: int) -> str:
    return (
        f"metadata.name: Invalid value: must have at most {longest} characters, because the host names of "
        "members are derived from it and limited to 63: choose a shorter name"
    )


def immutable(field: str) -> str:
    return (
        f"{field}: Invalid value: Unsupported changes: {field} cannot be changed after creation: "
        "restore the earlier value"
    )


def versions(base: Manifest) -> tuple[Case, ...]:
    return tuple(
        Case(
            typed=f'version: "{version}"',
            base=base,
            changes={"spec/version": version},
            sees=f'spec.version: Invalid value: "{version}": "{version}" {NO_VERSION}',
        )
        for version in ("latest", "", "4.0.0", "2.3.8", "3.3.27", "3.8.0", "3.6", "3.06.1", "3.6.16+build")
    )


def sizes(base: Manifest, field: str) -> tuple[Case, ...]:
    name = f"spec.{field}"
    numbers = tuple(
        Case(
            typed=f"{field}: {size}",
            base=base,
            changes={f"spec/{field}": size},
            sees=f"{name}: Invalid value: {size}: {name} {limit}",
        )
        for size, limit in ((0, AT_LEAST_ONE), (-1, AT_LEAST_ONE), (MOST_MEMBERS + 1, AT_MOST))
    )
    word = Case(
        typed=f'{field}: "three"',
        base=base,
        changes={f"spec/{field}": "three"},
        sees=f'{name}: Invalid value: "string": {name} in body must be of type integer: "string"',
    )
    return (*numbers, word)


def names(base: Manifest, longest: int) -> tuple[Case, ...]:
    length = Case(
        typed=f"a name of {longest + 1} characters",
        base=base,
        changes={"metadata/name": "n" * (longest + 1)},
        sees=too_long(longest),
    )
    forms = (
        Case(typed=f"name: {name}", base=base, changes={"metadata/name": name}, sees=NO_NAME)
        for name in ("my.cluster", "1st-cluster")
    )
    return (length, *forms)


def reserved_names(base: Manifest) -> tuple[Case, ...]:
    annotation = Case(
        typed="annotation etcd.improbable.io/mine",
        base=base,
        changes={METADATA: {"annotations": {"etcd.improbable.io/mine": "yes"}}},
        sees="spec.podTemplate.metadata.annotations: Invalid value: annotations that begin with "
        "etcd.improbable.io/ are reserved for the operator: remove them",
    )
    long = Case(
        typed="annotations of 20480 characters",
        base=base,
        changes={METADATA: {"annotations": LONG}},
        sees="spec.podTemplate.metadata.annotations: Invalid value: annotations of pods have at most 16384 "
        "characters together: shorten them",
    )
    labels = (
        Case(
            typed=f"label {label}",
            base=base,
            changes={METADATA: {"labels": {label: "mine"}}},
            sees="spec.podTemplate.metadata.labels: Invalid value: app.kubernetes.io/name, etcd_cluster, "
            "etcd_node and labels that begin with etcd.improbable.io/ are reserved for the operator: remove "
            "them",
        )
        for label in ("etcd.improbable.io/mine", "app.kubernetes.io/name", "etcd_cluster", "etcd_node")
    )
    return (annotation, long, *labels)


SOURCES = {
    "dataSource": {"kind": "PersistentVolumeClaim", "name": "other"},
    "dataSourceRef": {"kind": "PersistentVolumeClaim", "name": "other"},
    "volumeName": "pvc-1",
}
"""Fields of a claim with which a volume has data."""


def empty_volumes(base: Manifest, claim: str = CLAIM) -> tuple[Case, ...]:
    at = claim.replace("/", ".")
    return tuple(
        Case(
            typed=f"{field} in volumeClaimTemplate",
            base=base,
            changes={f"{claim}/{field}": value},
            sees=f"{at}.{field}: Invalid value: members start on empty volumes: remove this field. An "
            "EtcdRestore makes a cluster with the data of a backup",
        )
        for field, value in SOURCES.items()
    )


def running_persistent(version: str) -> Manifest:
    """A cluster that has served, whose lowest member runs `version`."""
    return changed(PERSISTENT, {"spec/version": version, "status/currentVersion": version})


def running_ephemeral(version: str) -> Manifest:
    """See running_persistent."""
    return changed(EPHEMERAL, {"spec/version": f"v{version}", "status/currentVersion": version})


NO_DOWNGRADE = (
    "etcd does not support a downgrade below 3.6.16, which is running: use 3.6.16 or a later version"
)


def version_changes(runs: Callable[[str], Manifest]) -> tuple[Case, ...]:
    skipped = (
        "etcd supports upgrades by one minor version at a time, and 3.5.35 is running: upgrade to 3.6.x first"
    )
    floor = (
        "an upgrade to 3.{0} requires 3.{1} or later on every member, and {2} is running: "
        "upgrade to such a 3.{3} version first and wait until the status shows it"
    )
    table = (
        ("3.6.16", "3.6.15", NO_DOWNGRADE),
        ("3.6.16", "v3.5.35", NO_DOWNGRADE),
        ("3.5.35", "3.7.3", skipped),
        ("3.5.31", "3.6.16", floor.format(6, "5.32", "3.5.31", 5)),
        ("3.6.10", "3.7.3", floor.format(7, "6.11", "3.6.10", 6)),
    )
    return tuple(
        Case(
            typed=f'version: "{wanted}", while {running} runs',
            base=runs(running),
            changes={"spec/version": wanted},
            edits=True,
            sees=f"spec.version: Invalid value: {sees}",
        )
        for running, wanted, sees in table
    )
