"""Invalid input and the exact message for it: tested on a real API server, listed in docs/bad-input.md."""

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Manifest = dict[str, Any]

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

    rule: the name of the CEL rule that refuses it; empty if the schema itself does, or a policy.
    user: the author; empty for an administrator. Others have all permissions on EtcdPeers except `operate`.
    """

    typed: str
    base: Manifest
    changes: Changes
    sees: str
    rule: str = ""
    edits: bool = False
    user: str = ""


AT_LEAST_ONE = "in body should be greater than or equal to 1"
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


def _too_long(longest: int) -> str:
    return (
        f"metadata.name: Invalid value: must have at most {longest} characters, because the host names of "
        "members are derived from it and limited to 63: choose a shorter name"
    )


def _immutable(field: str, changeable: str = "spec.replicas and spec.version") -> str:
    return (
        f"{field}: Invalid value: Unsupported changes: {field} is immutable, only {changeable} can change: "
        "restore the earlier value"
    )


def _versions(base: Manifest) -> tuple[Case, ...]:
    return tuple(
        Case(
            typed=f'version: "{version}"',
            base=base,
            changes={"spec/version": version},
            rule="version-supported",
            sees=f'spec.version: Invalid value: "{version}": "{version}" {NO_VERSION}',
        )
        for version in ("latest", "", "4.0.0", "2.3.8", "3.3.27", "3.8.0", "3.6", "3.06.1", "3.6.16+build")
    )


def _sizes(base: Manifest, field: str) -> tuple[Case, ...]:
    name = f"spec.{field}"
    numbers = tuple(
        Case(
            typed=f"{field}: {size}",
            base=base,
            changes={f"spec/{field}": size},
            sees=f"{name}: Invalid value: {size}: {name} {AT_LEAST_ONE}",
        )
        for size in (0, -1)
    )
    word = Case(
        typed=f'{field}: "three"',
        base=base,
        changes={f"spec/{field}": "three"},
        sees=f'{name}: Invalid value: "string": {name} in body must be of type integer: "string"',
    )
    return (*numbers, word)


def _names(base: Manifest, longest: int) -> tuple[Case, ...]:
    length = Case(
        typed=f"a name of {longest + 1} characters",
        base=base,
        changes={"metadata/name": "n" * (longest + 1)},
        rule="name-length",
        sees=_too_long(longest),
    )
    forms = (
        Case(
            typed=f"name: {name}", base=base, changes={"metadata/name": name}, rule="name-form", sees=NO_NAME
        )
        for name in ("my.cluster", "1st-cluster")
    )
    return (length, *forms)


def _reserved_names(base: Manifest) -> tuple[Case, ...]:
    annotation = Case(
        typed="annotation etcd.improbable.io/mine",
        base=base,
        changes={METADATA: {"annotations": {"etcd.improbable.io/mine": "yes"}}},
        rule="reserved-annotations",
        sees="spec.podTemplate.metadata.annotations: Invalid value: annotations that begin with "
        "etcd.improbable.io/ are reserved for the operator: remove them",
    )
    labels = (
        Case(
            typed=f"label {label}",
            base=base,
            changes={METADATA: {"labels": {label: "mine"}}},
            rule="reserved-labels",
            sees="spec.podTemplate.metadata.labels: Invalid value: app.kubernetes.io/name and labels that "
            "begin with etcd.improbable.io/ are reserved for the operator: remove them",
        )
        for label in ("etcd.improbable.io/mine", "app.kubernetes.io/name")
    )
    return (annotation, *labels)


def running_persistent(version: str) -> Manifest:
    """A cluster that has served, whose lowest member runs `version`."""
    return changed(PERSISTENT, {"spec/version": version, "status/currentVersion": version})


def running_ephemeral(version: str) -> Manifest:
    """See running_persistent."""
    return changed(EPHEMERAL, {"spec/version": f"v{version}", "status/currentVersion": version})


NO_DOWNGRADE = (
    "etcd does not support a downgrade below 3.6.16, which is running: use 3.6.16 or a later version"
)


def _version_changes(runs: Callable[[str], Manifest]) -> tuple[Case, ...]:
    skipped = (
        "etcd supports upgrades by one minor version at a time, and 3.5.35 is running: upgrade to 3.6.x first"
    )
    floor = (
        "an upgrade to 3.{0} requires 3.{1} or later on every member, and {2} is running: "
        "upgrade to such a 3.{3} version first and wait until the status shows it"
    )
    table = (
        ("3.6.16", "3.6.15", "version-no-downgrade", NO_DOWNGRADE),
        ("3.6.16", "v3.5.35", "version-no-downgrade", NO_DOWNGRADE),
        ("3.5.35", "3.7.3", "version-one-minor", skipped),
        ("3.5.31", "3.6.16", "version-floor-3-6", floor.format(6, "5.32", "3.5.31", 5)),
        ("3.6.10", "3.7.3", "version-floor-3-7", floor.format(7, "6.11", "3.6.10", 6)),
    )
    return tuple(
        Case(
            typed=f'version: "{wanted}", while {running} runs',
            base=runs(running),
            changes={"spec/version": wanted},
            edits=True,
            rule=rule,
            sees=f"spec.version: Invalid value: {sees}",
        )
        for running, wanted, rule, sees in table
    )


PERSISTENT_CASES = (
    *_sizes(PERSISTENT, "replicas"),
    *_versions(PERSISTENT),
    *_names(PERSISTENT, 58),
    Case(typed="no spec", base=PERSISTENT, changes={"spec": ABSENT}, sees="spec: Required value"),
    Case(
        typed="no replicas",
        base=PERSISTENT,
        changes={"spec/replicas": ABSENT},
        sees="spec.replicas: Required value",
    ),
    Case(
        typed="no version",
        base=PERSISTENT,
        changes={"spec/version": ABSENT},
        sees="spec.version: Required value",
    ),
    Case(
        typed="no storage",
        base=PERSISTENT,
        changes={"spec/storage": ABSENT},
        sees="spec.storage: Required value",
    ),
    Case(
        typed="no storage size",
        base=PERSISTENT,
        changes={REQUESTS: {}},
        sees="spec.storage.volumeClaimTemplate.resources.requests.storage: Required value",
    ),
    *(
        Case(
            typed=f'storage: "{size}"',
            base=PERSISTENT,
            changes={f"{REQUESTS}/storage": size},
            rule="storage-size",
            sees=NO_SIZE,
        )
        for size in ("0", "-1Gi", "much")
    ),
    Case(
        typed="storage: 0",
        base=PERSISTENT,
        changes={f"{REQUESTS}/storage": 0},
        rule="storage-size",
        sees=NO_SIZE,
    ),
    Case(
        typed="volumeMode: Block",
        base=PERSISTENT,
        changes={f"{CLAIM}/volumeMode": "Block"},
        sees='spec.storage.volumeClaimTemplate.volumeMode: Unsupported value: "Block": '
        'supported values: "Filesystem"',
    ),
    *_reserved_names(PERSISTENT),
    Case(
        typed="affinity in both places",
        base=PERSISTENT,
        changes={"spec/affinity": {}, "spec/podTemplate/affinity": {}},
        rule="one-affinity",
        sees="spec: Invalid value: spec.affinity and spec.podTemplate.affinity are alternatives: "
        "set one of them",
    ),
    Case(
        typed="an unknown field",
        base=PERSISTENT,
        changes={"spec/replicaCount": 3},
        sees='unknown field "spec.replicaCount"',
    ),
    Case(
        typed="an unknown field inside an affinity",
        base=PERSISTENT,
        changes={"spec/affinity/podAntiAfinity": {}},
        sees='unknown field "spec.affinity.podAntiAfinity"',
    ),
    *_version_changes(running_persistent),
    Case(
        typed="larger storage of an existing cluster",
        base=PERSISTENT,
        changes={f"{REQUESTS}/storage": "60Mi"},
        edits=True,
        rule="immutable-storage",
        sees=_immutable("spec.storage"),
    ),
    Case(
        typed="a podTemplate added to an existing cluster",
        base=PERSISTENT,
        changes={"spec/podTemplate/priorityClassName": "high"},
        edits=True,
        rule="immutable-podTemplate",
        sees=_immutable("spec.podTemplate"),
    ),
    Case(
        typed="another podTemplate for an existing cluster",
        base=changed(PERSISTENT, {"spec/podTemplate/priorityClassName": "low"}),
        changes={"spec/podTemplate/priorityClassName": "high"},
        edits=True,
        rule="immutable-podTemplate",
        sees=_immutable("spec.podTemplate"),
    ),
    Case(
        typed="an affinity removed from an existing cluster",
        base=changed(PERSISTENT, {"spec/affinity/podAntiAffinity": {}}),
        changes={"spec/affinity": ABSENT},
        edits=True,
        rule="immutable-affinity",
        sees=_immutable("spec.affinity"),
    ),
    Case(
        typed="an affinity added to an existing cluster",
        base=PERSISTENT,
        changes={"spec/affinity/podAntiAffinity": {}},
        edits=True,
        rule="immutable-affinity",
        sees=_immutable("spec.affinity"),
    ),
)

PEER_CHANGEABLE = "spec.version and spec.bootstrap"
OPERATOR_CREATES_PEERS = "the operator creates EtcdPeers: create an EtcdCluster instead"
NO_HOST = "each with its own host, like my-cluster-0.my-cluster.my-namespace.svc"
ONLY_OPERATOR = f"denied request: {OPERATOR_CREATES_PEERS} (writing them requires the permission 'operate')"
PEER_CASES = (
    Case(
        typed="an EtcdPeer, as an ordinary user",
        base=PEER,
        changes={},
        user="somebody",
        sees=ONLY_OPERATOR,
    ),
    *(
        Case(
            typed=f"another {field} for an existing EtcdPeer, as an ordinary user",
            base=PEER,
            changes={path: value},
            edits=True,
            user="somebody",
            sees=ONLY_OPERATOR,
        )
        for field, path, value in (
            ("version", "spec/version", "3.6.17"),
            ("label", "metadata/labels", {"etcd.improbable.io/cluster-name": "other"}),
            ("finalizer", "metadata/finalizers", ["etcdpeer.etcd.improbable.io/pvc-cleanup"]),
        )
    ),
    Case(
        typed="a name of 64 characters",
        base=PEER,
        changes={"metadata/name": "n" * 64},
        rule="name-length",
        sees=f"metadata.name: Invalid value: must have at most 63 characters; {OPERATOR_CREATES_PEERS}",
    ),
    Case(
        typed="name: other-0, with clusterName: no-cluster",
        base=PEER,
        changes={"metadata/name": "other-0"},
        rule="name-of-member",
        sees="metadata.name: Invalid value: must be the name of its cluster and a number, like my-cluster-0; "
        f"{OPERATOR_CREATES_PEERS}",
    ),
    Case(
        typed="clusterName: No.Cluster",
        base=PEER,
        changes={"spec/clusterName": "No.Cluster"},
        rule="cluster-name",
        sees='spec.clusterName: Invalid value: "No.Cluster": must be the name of an EtcdCluster; '
        f"{OPERATOR_CREATES_PEERS}",
    ),
    Case(
        typed="initialClusterToken: My/Token",
        base=PEER,
        changes={f"{BOOTSTRAP}/initialClusterToken": "My/Token"},
        rule="token-form",
        sees='spec.bootstrap.initialClusterToken: Invalid value: "My/Token": must be the token of '
        f"its cluster, with only lower-case letters, digits and '-'; {OPERATOR_CREATES_PEERS}",
    ),
    *(
        Case(
            typed=f"initialCluster: {name} at {host}",
            base=PEER,
            changes={f"{BOOTSTRAP}/static/initialCluster": [{"name": name, "host": host}]},
            rule="member-hosts",
            sees="spec.bootstrap.static.initialCluster: Invalid value: must list only members of this "
            f"cluster, {NO_HOST}; {OPERATOR_CREATES_PEERS}",
        )
        for name, host in (
            ("no-cluster-0", "10.0.0.1"),
            ("no-cluster-0", "no-cluster-1.no-cluster.default.svc"),
            ("other-0", "other-0.no-cluster.default.svc"),
        )
    ),
    *(
        Case(
            typed=f"survivor: {host}",
            base=PEER,
            changes={f"{BOOTSTRAP}/survivor": host},
            rule="survivor-host",
            sees="spec.bootstrap.survivor: Invalid value: must be the host of a member of this cluster, like "
            f"my-cluster-0.my-cluster.my-namespace.svc; {OPERATOR_CREATES_PEERS}",
        )
        for host in ("10.0.0.1", "other-0.other.default.svc", "no-cluster-0.no-cluster.default.svc:2379,x")
    ),
    *_reserved_names(PEER),
    Case(
        typed='version: "latest"',
        base=PEER,
        changes={"spec/version": "latest"},
        rule="version-supported",
        sees=f'spec.version: Invalid value: "latest": "latest" {NO_VERSION}',
    ),
    Case(
        typed="initialClusterState: New, for a member that has started",
        base=PEER,
        changes={"spec/bootstrap/initialClusterState": "New"},
        edits=True,
        rule="bootstrapped-once",
        sees="spec.bootstrap.initialClusterState: Invalid value: a member that has started cannot "
        "bootstrap a cluster again: keep the value Existing",
    ),
    *(
        Case(
            typed=f"another {path.split('/')[1]} for an existing EtcdPeer",
            base=PEER,
            changes={path: value},
            edits=True,
            rule=f"immutable-{path.split('/')[1]}",
            sees=_immutable(f"spec.{path.split('/')[1]}", PEER_CHANGEABLE),
        )
        for path, value in (
            ("spec/clusterName", "other"),
            (f"{REQUESTS}/storage", "60Mi"),
            ("spec/podTemplate", {}),
        )
    ),
)

EPHEMERAL_CASES = (
    *_sizes(EPHEMERAL, "size"),
    *_versions(EPHEMERAL),
    *_names(EPHEMERAL, 57),
    *(
        Case(
            typed=f"no {field}",
            base=EPHEMERAL,
            changes={path: ABSENT},
            rule="size-given",
            sees="spec: Invalid value: spec.size is missing: set the number of members, like 3",
        )
        for field, path in (("size", "spec/size"), ("spec and no size", "spec"))
    ),
    *(
        Case(
            typed=f"spec.{field}",
            base=EPHEMERAL,
            changes={f"spec/{field.replace('.', '/')}": value},
            rule=f"unsupported-{field}",
            sees=f"spec.{field}: Invalid value: spec.{field} is not supported yet: remove it",
        )
        for field, value in (
            ("backup", {"backupIntervalInSecond": 1800, "storageType": "PersistentVolume"}),
            ("restore", {"backupClusterName": "other", "storageType": "PersistentVolume"}),
            ("selfHosted", {"bootMemberClientEndpoint": "http://10.0.0.1:2379"}),
            ("pod.labels", {"team": "storage"}),
            ("pod.annotations", {"team": "storage"}),
            ("pod.nodeSelector", {"disk": "ssd"}),
            ("pod.affinity", {"nodeAffinity": {}}),
            ("pod.antiAffinity", True),
            ("pod.resources", {"limits": {"cpu": "1"}}),
            ("pod.tolerations", [{"key": "etcd", "operator": "Exists"}]),
            ("pod.etcdEnv", [{"name": "ETCD_AUTO_COMPACTION_RETENTION", "value": "1"}]),
            ("pod.persistentVolumeClaimSpec", {"storageClassName": "standard"}),
            ("pod.busyboxImage", "busybox:1.36"),
            ("pod.DNSTimeoutInSecond", 5),
            ("TLS", {"static": {}}),
            ("repository", "example.com/etcd"),
            ("baseImage", "example.com/etcd"),
        )
    ),
    Case(
        typed="an unknown field",
        base=EPHEMERAL,
        changes={"spec/replicas": 3},
        sees='unknown field "spec.replicas"',
    ),
    *_version_changes(running_ephemeral),
    Case(
        typed='version: "3.5.35", where none was set',
        base=changed(running_ephemeral("3.6.16"), {"spec/version": ABSENT}),
        changes={"spec/version": "3.5.35"},
        edits=True,
        rule="version-no-downgrade",
        sees=f"spec.version: Invalid value: {NO_DOWNGRADE}",
    ),
)

GROUPS = {
    "EtcdCluster of `etcd.improbable.io/v1alpha1`": PERSISTENT_CASES,
    "EtcdCluster of `coreos.com/v1`": EPHEMERAL_CASES,
    "EtcdPeer": PEER_CASES,
}

INTRODUCTION = """\
# Invalid input and its error messages

Generated by `hack/generate-bad-input`; each line is tested on a real API server. The API server refuses this
input: the stored object does not change, and the operator never sees it. `kubectl` prints
`The EtcdCluster "NAME" is invalid:` before the message in the table.

Only the operator, and administrators with all permissions, can create or change EtcdPeers. Deleting them
requires only the ordinary permission.

Two inputs are accepted with a warning: an even number of members, and more than seven.

`kubectl create`, `apply`, `replace` and `edit` report unknown fields. A plain PUT, as with `curl`, drops them
and reports this in a `Warning` header.
"""


def document() -> str:
    """The text of docs/bad-input.md."""
    sections = [INTRODUCTION]
    for title, cases in GROUPS.items():
        rows = [f"| {_cell(case.typed)} | {_cell(case.sees)} |" for case in cases]
        sections.append("\n".join([f"## {title}", "", "| input | message |", "|---|---|", *rows, ""]))
    return "\n".join(sections)


def _cell(text: str) -> str:
    return text.replace("n" * 57, "n...").replace("|", "\\|")
