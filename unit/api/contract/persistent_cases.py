"""EtcdClusters of etcd.improbable.io that are refused."""

from unit.api.contract.adoption_cases import adoptions
from unit.api.contract.case import (
    ABSENT,
    CLAIM,
    NO_SIZE,
    PERSISTENT,
    REQUESTS,
    Case,
    changed,
    empty_volumes,
    immutable,
    names,
    reserved_names,
    running_persistent,
    sizes,
    version_changes,
    versions,
)
from unit.api.contract.network_cases import networks
from unit.api.contract.recovery_cases import recoveries
from unit.api.contract.tls_cases import tls

PERSISTENT_CASES = (
    *sizes(PERSISTENT, "replicas"),
    *versions(PERSISTENT),
    *names(PERSISTENT, 58),
    *tls(PERSISTENT),
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
        Case(typed=f'storage: "{size}"', base=PERSISTENT, changes={f"{REQUESTS}/storage": size}, sees=NO_SIZE)
        for size in ("0", "-1Gi", "much")
    ),
    Case(typed="storage: 0", base=PERSISTENT, changes={f"{REQUESTS}/storage": 0}, sees=NO_SIZE),
    Case(
        typed="volumeMode: Block",
        base=PERSISTENT,
        changes={f"{CLAIM}/volumeMode": "Block"},
        sees='spec.storage.volumeClaimTemplate.volumeMode: Unsupported value: "Block": '
        'supported values: "Filesystem"',
    ),
    *empty_volumes(PERSISTENT),
    *reserved_names(PERSISTENT),
    *(
        Case(
            typed=f'annotation etcd.improbable.io/paused: "{value}"',
            base=PERSISTENT,
            changes={"metadata/annotations": {"etcd.improbable.io/paused": value}},
            edits=edits,
            sees=f'metadata.annotations: etcd.improbable.io/paused must be "true" or "false", not "{value}"',
        )
        for value, edits in (("True", True), ("", False))
    ),
    Case(
        typed="affinity in both places",
        base=PERSISTENT,
        changes={"spec/affinity": {}, "spec/podTemplate/affinity": {}},
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
    *adoptions(PERSISTENT),
    *recoveries(PERSISTENT),
    *networks(PERSISTENT),
    *version_changes(running_persistent),
    Case(
        typed="larger storage of a cluster that has served",
        base=changed(PERSISTENT, {"status/clusterID": "c0de"}),
        changes={f"{REQUESTS}/storage": "60Mi"},
        edits=True,
        sees="spec.storage: Invalid value: Unsupported changes: spec.storage cannot be changed once the "
        "cluster has served: restore the earlier value",
    ),
    Case(
        typed="a podTemplate added to an existing cluster",
        base=PERSISTENT,
        changes={"spec/podTemplate/priorityClassName": "high"},
        edits=True,
        sees=immutable("spec.podTemplate"),
    ),
    Case(
        typed="another podTemplate for an existing cluster",
        base=changed(PERSISTENT, {"spec/podTemplate/priorityClassName": "low"}),
        changes={"spec/podTemplate/priorityClassName": "high"},
        edits=True,
        sees=immutable("spec.podTemplate"),
    ),
    Case(
        typed="an affinity removed from an existing cluster",
        base=changed(PERSISTENT, {"spec/affinity/podAntiAffinity": {}}),
        changes={"spec/affinity": ABSENT},
        edits=True,
        sees=immutable("spec.affinity"),
    ),
    Case(
        typed="an affinity added to an existing cluster",
        base=PERSISTENT,
        changes={"spec/affinity/podAntiAffinity": {}},
        edits=True,
        sees=immutable("spec.affinity"),
    ),
)
