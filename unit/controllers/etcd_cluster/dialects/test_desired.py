"""The desired state of resources of both groups, and problems of their specs."""

from typing import Any

import msgspec
import pytest

from etcd_operator.api import coreos, improbable
from etcd_operator.api.persisted import Bootstrap
from etcd_operator.api.restores import RESTORED_FROM_LABEL, UID_ANNOTATION
from etcd_operator.api.shared_keys import RECOVER_ANNOTATION
from etcd_operator.controllers.etcd_cluster.decide.desired import (
    Adopt,
    DesiredCluster,
    PersistedState,
    RestoreFrom,
)
from etcd_operator.controllers.etcd_cluster.decide.kinds.ephemeral import EPHEMERAL
from etcd_operator.controllers.etcd_cluster.decide.kinds.persistent import PERSISTENT
from etcd_operator.controllers.etcd_cluster.dialects.coreos import CoreosDialect
from etcd_operator.controllers.etcd_cluster.dialects.improbable import LONGEST_REQUEST, ImprobableDialect
from etcd_operator.controllers.shared.decide.clusters import Defaults
from unit.controllers.etcd_cluster.dialects.builders import (
    DEFAULTS,
    META,
    STORAGE,
    coreos_cluster,
    improbable_cluster,
)

COREOS, IMPROBABLE = CoreosDialect(DEFAULTS), ImprobableDialect(DEFAULTS)
BOOTSTRAP = Bootstrap(members=("db-0",), token="t")
TOLERATION = {"key": "etcd", "operator": "Exists"}
SPREAD = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}
AFFINITY: dict[str, Any] = {"nodeAffinity": {"x": []}}


MINIMAL: dict[str, Any] = {
    "namespace": "ns",
    "name": "db",
    "uid": "uid-1",
    "generation": 7,
    "created": "2026-01-01T00:00:00Z",
    "size": 3,
    "repository": "quay.io/coreos/etcd",
    "version": "3.6.16",
}


def test_a_minimal_ephemeral_cluster() -> None:
    wanted = DesiredCluster(
        **MINIMAL, api_version="coreos.com/v1", kind=EPHEMERAL, selector="etcd_cluster=db"
    )
    assert COREOS.desired(coreos_cluster()) == wanted


def test_the_requested_recovery_is_read_up_to_a_length() -> None:
    def requested(value: str) -> str:
        cluster = improbable_cluster()
        metadata = msgspec.structs.replace(cluster.metadata, annotations={RECOVER_ANNOTATION: value})
        return IMPROBABLE.desired(msgspec.structs.replace(cluster, metadata=metadata)).recover

    assert requested("feed/db-0/1") == "feed/db-0/1"
    assert len(requested("x" * 1000)) == LONGEST_REQUEST


@pytest.mark.parametrize(
    ("annotations", "labels", "expected"),
    [
        ({UID_ANNOTATION: "uid-r"}, {RESTORED_FROM_LABEL: "back"}, "back"),
        ({UID_ANNOTATION: "uid-r"}, {}, "uid-r"),
        ({}, {RESTORED_FROM_LABEL: "back"}, ""),
    ],
    ids=["as created", "without its label", "the annotation was removed"],
)
def test_the_restore_that_created_a_cluster_is_known(
    annotations: dict[str, str], labels: dict[str, str], expected: str
) -> None:
    cluster = improbable_cluster()
    metadata = msgspec.structs.replace(cluster.metadata, annotations=annotations, labels=labels)
    found = IMPROBABLE.desired(msgspec.structs.replace(cluster, metadata=metadata))
    assert found.restored_by == expected


def test_a_minimal_persistent_cluster() -> None:
    assert IMPROBABLE.desired(improbable_cluster()) == DesiredCluster(
        **MINIMAL,
        api_version="etcd.improbable.io/v1alpha1",
        kind=PERSISTENT,
        selector="etcd.improbable.io/cluster-name=db",
        claim_template=STORAGE["volumeClaimTemplate"],
        cluster_version="",
    )


@pytest.mark.parametrize(
    ("spec", "top", "size"),
    [
        pytest.param({"size": 5}, None, 5, id="in the spec"),
        pytest.param({}, 4, 4, id="at the top level"),
        pytest.param({"size": 5}, 4, 5, id="the spec takes precedence"),
    ],
)
def test_the_size_of_an_ephemeral_cluster(spec: dict[str, Any], top: int | None, size: int) -> None:
    made = COREOS.desired(coreos_cluster(spec, size=top))

    assert (made.size, made.problem) == (size, "")


@pytest.mark.parametrize("written", ["3.5.35", "v3.5.35"])
def test_versions_are_accepted_with_and_without_v(written: str) -> None:
    for made in (
        COREOS.desired(coreos_cluster({"size": 1, "version": written})),
        IMPROBABLE.desired(improbable_cluster({"version": written})),
    ):
        assert (made.version, made.image) == ("3.5.35", "quay.io/coreos/etcd:v3.5.35")


def test_the_operators_repository_and_default_version_are_used() -> None:
    dialect = CoreosDialect(Defaults(repository="mirror:5000/etcd", version="v3.7.3"))

    assert dialect.desired(coreos_cluster()).image == "mirror:5000/etcd:v3.7.3"


def test_pausing_is_read() -> None:
    assert COREOS.desired(coreos_cluster({"size": 3, "paused": True})).is_paused
    assert not COREOS.desired(coreos_cluster()).is_paused
    assert IMPROBABLE.desired(_annotated("true")).is_paused
    assert not IMPROBABLE.desired(_annotated("false")).is_paused
    assert not IMPROBABLE.desired(improbable_cluster()).is_paused


@pytest.mark.parametrize("value", ["True", "yes", "1", ""])
def test_another_value_of_the_annotation_paused_stops_the_operator_and_is_reported(value: str) -> None:
    assert IMPROBABLE.desired(_annotated(value)).problem == (
        f'metadata.annotations: etcd.improbable.io/paused must be "true" or "false", not "{value}"'
    )


def _annotated(paused: str) -> improbable.EtcdCluster:
    metadata = msgspec.structs.replace(META, annotations={"etcd.improbable.io/paused": paused})
    return improbable_cluster(metadata=metadata)


@pytest.mark.parametrize(
    ("spec", "seconds"),
    [
        ({}, None),
        ({"recovery": "Manual"}, None),
        ({"recovery": "Manual", "recoveryAfterSeconds": 60}, None),
        ({"recovery": "Automatic"}, 600.0),
        ({"recovery": "Automatic", "recoveryAfterSeconds": 60}, 60.0),
    ],
)
def test_the_time_after_which_a_recovery_begins_by_itself_is_read(
    spec: dict[str, Any], seconds: float | None
) -> None:
    assert COREOS.desired(coreos_cluster({"size": 3, **spec})).recovers_after == seconds
    assert IMPROBABLE.desired(improbable_cluster(spec)).recovers_after == seconds


def test_node_selector_and_anti_affinity_of_an_ephemeral_cluster() -> None:
    template = COREOS.desired(
        coreos_cluster({"size": 3, "nodeSelector": {"disk": "ssd"}, "antiAffinity": True})
    ).pod_template

    assert template.node_selector == {"disk": "ssd"}
    (term,) = template.affinity["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert term == {
        "labelSelector": {
            "matchLabels": {"etcd_cluster": "db"},
            "matchExpressions": [{"key": "etcd_node", "operator": "Exists"}],
        },
        "topologyKey": "kubernetes.io/hostname",
    }
    preferred = template.affinity["podAntiAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"]
    assert "topology.kubernetes.io/zone" in [each["podAffinityTerm"]["topologyKey"] for each in preferred]


def test_without_anti_affinity_there_is_no_affinity() -> None:
    template = COREOS.desired(coreos_cluster({"size": 3, "nodeSelector": {"disk": "ssd"}})).pod_template

    assert (template.affinity, template.node_selector) == ({}, {"disk": "ssd"})


def test_the_whole_pod_template_is_read() -> None:
    written = {
        "metadata": {"annotations": {"a": "1"}, "labels": {"l": "2"}},
        "resources": {"limits": {"cpu": "2"}},
        "affinity": AFFINITY,
        "nodeSelector": {"disk": "ssd"},
        "tolerations": [TOLERATION],
        "topologySpreadConstraints": [SPREAD],
        "priorityClassName": "high",
    }
    made = IMPROBABLE.desired(improbable_cluster({"podTemplate": written}))

    assert made.problem == ""
    assert msgspec.json.decode(msgspec.json.encode(made.pod_template)) == written


def test_an_affinity_beside_the_pod_template_is_the_same_thing() -> None:
    made = IMPROBABLE.desired(
        improbable_cluster({"affinity": AFFINITY, "podTemplate": {"priorityClassName": "high"}})
    )

    assert (made.pod_template.affinity, made.pod_template.priority_class_name) == (AFFINITY, "high")


def test_the_record_is_read_from_status() -> None:
    status = coreos.ClusterStatus(bootstrap=BOOTSTRAP, cluster_id="feed", next_ordinal=4)
    assert COREOS.desired(coreos_cluster(status=status)).persisted == PersistedState(
        bootstrap=BOOTSTRAP, cluster_id="feed", next_ordinal=4
    )

    kept = improbable.ClusterStatus(bootstrap=BOOTSTRAP, cluster_id="feed")
    assert IMPROBABLE.desired(improbable_cluster(status=kept)).persisted == PersistedState(
        bootstrap=BOOTSTRAP, cluster_id="feed"
    )


def test_a_deletion_in_progress_is_read() -> None:
    deleting = msgspec.structs.replace(META, deletion_timestamp="2026-01-01T00:00:00Z")

    assert COREOS.desired(coreos_cluster(metadata=deleting)).is_deleting
    assert IMPROBABLE.desired(improbable_cluster(metadata=deleting)).is_deleting
    assert not COREOS.desired(coreos_cluster()).is_deleting


@pytest.mark.parametrize(
    ("backup", "secret"),
    [
        (None, ""),
        ({"maxBackups": 1, "volumeSizeInMB": 1}, ""),
        ({"maxBackups": 0, "encryption": {"secretName": "keys"}}, "keys"),
        ({"maxBackups": 1, "volumeSizeInMB": 1, "encryption": {"secretName": "keys"}}, "keys"),
    ],
)
def test_a_new_cluster_reads_backups_with_the_keys_of_its_spec(
    backup: dict[str, Any] | None, secret: str
) -> None:
    """Also if it takes none: keys that are given and not used would let it begin with a plain backup."""
    made = COREOS.desired(
        coreos_cluster({"size": 3, "restore": {"backupClusterName": "other"}, "backup": backup})
    )
    assert made.problem == ""
    assert made.restore == RestoreFrom(cluster="other", key_secret=secret)


VERSIONS = ["latest", "4.0.0", "2.3.8", "3.6", "3.3.27"]

BAD_EPHEMERAL = [
    pytest.param({}, "spec.size is missing", id="no size"),
    pytest.param({"size": 0}, "$.size", id="size 0"),
    pytest.param({"size": -1}, "$.size", id="size -1"),
    pytest.param({"size": "three"}, "$.size", id="size as text"),
    pytest.param({"size": 1.5}, "$.size", id="size with a fraction"),
    pytest.param({"size": 3, "paused": "yes"}, "$.paused", id="paused as text"),
    pytest.param({"size": 3, "nodeSelector": {"a": 1}}, "$.nodeSelector", id="a selector of numbers"),
    pytest.param({"size": 3, "antiAffinity": {}}, "$.antiAffinity", id="an affinity instead of a boolean"),
    pytest.param({"size": 3, "version": 3.6}, "$.version", id="version as a number"),
    pytest.param({"size": 3, "restore": {}}, "$.restore", id="restore of nothing"),
    pytest.param(
        {"size": 3, "restore": {"backupClusterName": "../other"}},
        "spec.restore.backupClusterName: must be the name",
        id="restore of no name",
    ),
    pytest.param(
        {"size": 3, "restore": {"backupClusterName": "other", "storageType": "S3"}},
        "spec.restore: storageType S3 needs spec.backup",
        id="restore from no bucket",
    ),
    pytest.param(
        {"size": 3, "restore": {"backupClusterName": "other"}, "backup": {"encryption": {}}},
        "spec.backup: Object missing required field",
        id="restore with keys that cannot be read",
    ),
    *(pytest.param({"size": 3, "version": text}, repr(text), id=f"version {text}") for text in VERSIONS),
]


@pytest.mark.parametrize(("spec", "words"), BAD_EPHEMERAL)
def test_a_problem_of_an_ephemeral_spec_is_returned_not_raised(spec: dict[str, Any], words: str) -> None:
    made = COREOS.desired(coreos_cluster(spec))

    assert words in made.problem
    assert (made.name, made.uid, made.size, made.version) == ("db", "uid-1", 0, "")


@pytest.mark.parametrize("size", [0, -1])
def test_a_top_level_size_below_one_is_refused(size: int) -> None:
    assert "spec.size is missing" in COREOS.desired(coreos_cluster({}, size=size)).problem


BAD_PERSISTENT = [
    pytest.param({"replicas": None}, "replicas", id="no replicas"),
    pytest.param({"replicas": 0}, "$.replicas", id="replicas 0"),
    pytest.param({"replicas": -1}, "$.replicas", id="replicas -1"),
    pytest.param({"replicas": "three"}, "$.replicas", id="replicas as text"),
    pytest.param({"version": None}, "version", id="no version"),
    pytest.param({"version": 3.6}, "$.version", id="version as a number"),
    pytest.param({"storage": None}, "storage", id="no storage"),
    pytest.param({"storage": {}}, "volumeClaimTemplate", id="storage without a template"),
    pytest.param({"storage": {**STORAGE, "size": 1}}, "unknown field `size`", id="unknown field in storage"),
    pytest.param({"size": 3}, "unknown field `size`", id="unknown field"),
    pytest.param({"podTemplate": {"hostNetwork": True}}, "hostNetwork", id="unknown field in the template"),
    pytest.param({"podTemplate": {"metadata": {"name": "x"}}}, "unknown field `name`", id="a pod's name"),
    pytest.param(
        {"podTemplate": {"tolerations": "all"}}, "$.podTemplate.tolerations", id="tolerations as text"
    ),
    *(pytest.param({"version": text}, repr(text), id=f"version {text}") for text in VERSIONS),
]


@pytest.mark.parametrize(("spec", "words"), BAD_PERSISTENT)
def test_a_problem_of_a_persistent_spec_is_returned_not_raised(spec: dict[str, Any], words: str) -> None:
    made = IMPROBABLE.desired(improbable_cluster(spec))

    assert words in made.problem
    assert (made.name, made.uid, made.size, made.version) == ("db", "uid-1", 0, "")


@pytest.mark.parametrize("field", ["annotations", "labels"])
def test_reserved_names_are_listed_in_the_refusal(field: str) -> None:
    names = {"etcd.improbable.io/peer-name": "x", "etcd.improbable.io/a": "y", "mine": "z"}
    made = IMPROBABLE.desired(improbable_cluster({"podTemplate": {"metadata": {field: names}}}))

    assert made.problem == (
        f"spec.podTemplate.metadata.{field}: reserved for the operator: "
        "remove etcd.improbable.io/a, etcd.improbable.io/peer-name"
    )


def test_labels_by_which_services_of_the_other_group_select_are_refused() -> None:
    names = {"etcd_cluster": "neighbour", "etcd_node": "neighbour-0000", "app": "etcd"}
    made = IMPROBABLE.desired(improbable_cluster({"podTemplate": {"metadata": {"labels": names}}}))

    assert made.problem.endswith("remove etcd_cluster, etcd_node")


def test_names_similar_to_reserved_ones_are_accepted() -> None:
    names = {"etcd.improbable.io": "x", "my.etcd.improbable.io/a": "y"}

    assert (
        IMPROBABLE.desired(improbable_cluster({"podTemplate": {"metadata": {"labels": names}}})).problem == ""
    )


SELF_HOSTED = {"bootMemberClientEndpoint": "http://10.0.0.1:2379"}
ENDPOINTS = [
    ("http://10.0.0.1:2379", "10.0.0.1:2379"),
    ("http://[2001:db8::1]:2379/", "[2001:db8::1]:2379"),
    ("http://old-0.old.other.svc:12379", "old-0.old.other.svc:12379"),
    ("http://old:2379", "old.ns.svc:2379"),
]


@pytest.mark.parametrize(("url", "at"), ENDPOINTS)
def test_endpoints_of_a_cluster_to_adopt_are_read_and_short_names_are_of_the_same_namespace(
    url: str, at: str
) -> None:
    asked = {"endpoints": [url], "mode": "Join"}
    expected = Adopt(endpoints=(at,), mode="Join")

    assert COREOS.desired(coreos_cluster({"size": 3, "adopt": asked})).adopt == expected
    assert IMPROBABLE.desired(improbable_cluster({"adopt": asked})).adopt == expected


def test_the_boot_member_of_the_document_is_the_only_endpoint() -> None:
    made = COREOS.desired(coreos_cluster({"size": 3, "selfHosted": SELF_HOSTED}))

    assert made.adopt == Adopt(endpoints=("10.0.0.1:2379",), mode="Complete")
    assert COREOS.desired(coreos_cluster({"size": 3})).adopt is None


BAD_ADOPTIONS = [
    pytest.param({"adopt": {"endpoints": ["https://a:2379"]}}, "without TLS", id="TLS"),
    pytest.param({"adopt": {"endpoints": ["http://a"]}}, "with its port", id="no port"),
    pytest.param({"adopt": {"endpoints": ["http://u:p@a:1"]}}, "'http://u:p@a:1' must be", id="a user"),
    pytest.param({"adopt": {"endpoints": []}}, "name the client URL of each", id="no endpoint"),
    pytest.param({"adopt": {"endpoints": ["http://a:1"], "mode": "Go"}}, "'Go'", id="no such mode"),
    pytest.param({"selfHosted": {}}, "bootMemberClientEndpoint", id="no boot member"),
    pytest.param(
        {"selfHosted": SELF_HOSTED, "adopt": {"endpoints": ["http://a:1"]}}, "are alternatives", id="both"
    ),
]


@pytest.mark.parametrize(("spec", "words"), BAD_ADOPTIONS)
def test_a_cluster_that_cannot_be_found_is_not_adopted(spec: dict[str, Any], words: str) -> None:
    assert words in COREOS.desired(coreos_cluster({"size": 3, **spec})).problem
