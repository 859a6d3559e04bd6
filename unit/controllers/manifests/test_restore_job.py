"""Rules that Jobs, claims and clusters of every EtcdRestore obey, and the Job of a cluster that exists."""

from dataclasses import replace
from typing import Any

import msgspec
import pytest

from etcd_operator.api.improbable import CLUSTER_LABEL, TOKEN_LABEL
from etcd_operator.api.meta import ObjectMeta, RawObject
from etcd_operator.api.restores import UID_LABEL, RestoreSpec
from etcd_operator.cli import _parser
from etcd_operator.commands import outcome, restore
from etcd_operator.controllers.etcd_restore.decide import spec as specs
from etcd_operator.controllers.etcd_restore.decide.spec import access
from etcd_operator.controllers.etcd_restore.manifests import restore_job, restored
from etcd_operator.controllers.shared.manifests.affinity import REQUIRED, selects
from etcd_operator.controllers.shared.manifests.command import REPORT_PATH
from unit.api.contract.case import changed
from unit.api.contract.restore_cases import RESTORE
from unit.controllers.etcd_cluster.decide.builders import persistent
from unit.controllers.manifests.backups import seed_job_of

METADATA = ObjectMeta(name="my-restore", namespace="default", uid="0f0f-uid")
TEMPLATE = "spec/clusterTemplate/spec"


def spec(changes: dict[str, Any] | None = None) -> RestoreSpec:
    return msgspec.convert(changed(RESTORE, changes or {})["spec"], RestoreSpec)


def job_of(parsed: RestoreSpec, ordinal: int = 0) -> RawObject:
    member = restored.members(METADATA, parsed.cluster_template)[ordinal]
    return restore_job.job(
        METADATA,
        access(parsed),
        member,
        parsed.cluster_template.spec.pod_template,
        image="operator:1",
        etcd_image="etcd:v3.6.16",
        url="s3://my-bucket/one.db",
        sha256="ab" * 32,
        size=1_000_000_000,
        bump=1_000_000_000,
        claim_uid="uid-of-the-claim",
    )


def pod_of(job: RawObject) -> RawObject:
    pod: RawObject = job["spec"]["template"]["spec"]
    return pod


def check_of(parsed: RestoreSpec) -> RawObject:
    url = access(parsed).destination.object_url_template
    return restore_job.check_job(METADATA, access(parsed), image="operator:1", url=url)


@pytest.mark.parametrize("job", [job_of(spec()), check_of(spec())], ids=["restore", "verify"])
def test_the_pods_have_no_rights_and_are_no_members(job: RawObject) -> None:
    pod = pod_of(job)
    assert (pod["restartPolicy"], pod["automountServiceAccountToken"]) == ("Never", False)
    for container in (*pod["containers"], *pod.get("initContainers", ())):
        context = container["securityContext"]
        assert (context["capabilities"], context["readOnlyRootFilesystem"]) == ({"drop": ["ALL"]}, True)
    for labels in (job["metadata"]["labels"], job["spec"]["template"]["metadata"]["labels"]):
        assert labels[UID_LABEL] == METADATA.uid
        assert not {CLUSTER_LABEL, TOKEN_LABEL} & set(labels)
        assert labels["app.kubernetes.io/name"] != "etcd"
    assert f"--report={REPORT_PATH}" in pod["containers"][0]["args"]


def test_only_a_command_that_was_killed_is_tried_again() -> None:
    (rule, _) = job_of(spec())["spec"]["podFailurePolicy"]["rules"]
    (container,) = pod_of(job_of(spec()))["containers"]
    assert (rule["action"], rule["onExitCodes"]["containerName"]) == ("FailJob", container["name"])
    assert rule["onExitCodes"]["values"] == [outcome.FAILED, outcome.WRONG_USAGE, outcome.DAMAGED]


def test_the_command_understands_its_arguments() -> None:
    parsed = spec({"spec/encryption": {"secretName": "keys"}})
    (container,) = pod_of(job_of(parsed, 2))["containers"]
    options = _parser().parse_args(container["args"])
    member = restore.member_of(options)
    assert (options.command, options.url, member.name) == ("restore", "s3://my-bucket/one.db", "my-cluster-2")
    assert member.token == METADATA.uid
    assert member.initial_cluster == {
        f"my-cluster-{n}": (f"http://my-cluster-{n}.my-cluster-peer.default.svc:2380",) for n in range(3)
    }
    assert (options.skip_restored, options.skip_existing) == (True, False)
    mounts = {mount["mountPath"]: mount for mount in container["volumeMounts"]}
    assert str(options.data_dir.parent) in mounts, "a folder in the volume, not the volume itself"
    assert {str(options.scratch_dir), str(options.encryption_keys)} < set(mounts)
    (check,) = pod_of(check_of(parsed))["containers"]
    assert _parser().parse_args(check["args"]).check


def test_etcdutl_is_in_a_container_whose_processes_are_seen() -> None:
    pod = pod_of(job_of(spec()))
    (programs,) = pod["initContainers"]
    assert (pod["shareProcessNamespace"], programs["restartPolicy"]) == (True, "Always")
    assert programs["image"] == "etcd:v3.6.16"
    assert _parser().parse_args(pod["containers"][0]["args"]).etcd_in_pod


def test_the_pod_runs_as_and_where_its_member_will() -> None:
    template = {
        "securityContext": {"runAsUser": 1001},
        "nodeSelector": {"disk": "fast"},
        "tolerations": [{"key": "dedicated", "operator": "Exists"}],
        "priorityClassName": "high",
        "affinity": {"nodeAffinity": {"x": 1}, "podAntiAffinity": {"y": 1}},
    }
    pod = pod_of(job_of(spec({f"{TEMPLATE}/podTemplate": template})))
    for field in ("securityContext", "nodeSelector", "tolerations", "priorityClassName"):
        assert pod[field] == template[field]
    assert pod["affinity"]["nodeAffinity"] == {"x": 1}
    terms = pod["affinity"]["podAntiAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"]
    selected = {term["podAffinityTerm"]["labelSelector"]["matchLabels"][UID_LABEL] for term in terms}
    assert selected == {METADATA.uid}, "the pods of a restore spread, since volumes stay where they were"


def apart_by(selector: Any, key: str = "kubernetes.io/hostname") -> dict[str, Any]:
    return {"labelSelector": selector, "topologyKey": key}


OF_CLUSTER = {"matchLabels": {CLUSTER_LABEL: "my-cluster"}}
OF_OTHERS = {"matchLabels": {"app": "greedy"}}
OF_RESTORE = {"matchLabels": {UID_LABEL: METADATA.uid}}


def test_pods_of_one_restore_are_kept_apart_where_the_members_will_be() -> None:
    """Their volumes stay where they were: two members of one node could never both run."""
    required = [apart_by(OF_CLUSTER), apart_by(OF_OTHERS, "topology.kubernetes.io/zone")]
    template = {"affinity": {"podAntiAffinity": {REQUIRED: required}}}
    pod = pod_of(job_of(spec({f"{TEMPLATE}/podTemplate": template})))
    assert pod["affinity"]["podAntiAffinity"][REQUIRED] == [*required, apart_by(OF_RESTORE)]
    assert REQUIRED not in pod_of(job_of(spec()))["affinity"]["podAntiAffinity"]


def test_pods_of_one_restore_are_spread_as_strictly_as_the_members_will_be() -> None:
    strict = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}
    found = [
        {**strict, "labelSelector": OF_CLUSTER},
        {**strict, "labelSelector": OF_OTHERS},
        {**strict, "whenUnsatisfiable": "ScheduleAnyway", "labelSelector": OF_CLUSTER},
    ]
    pod = pod_of(job_of(spec({f"{TEMPLATE}/podTemplate": {"topologySpreadConstraints": found}})))
    assert pod["topologySpreadConstraints"] == [{**strict, "labelSelector": OF_RESTORE}]
    assert "topologySpreadConstraints" not in pod_of(job_of(spec()))


@pytest.mark.parametrize(
    ("selector", "is_selected"),
    [
        (None, False),
        ({}, True),
        ({"matchLabels": {"a": "1"}}, True),
        ({"matchLabels": {"a": "1", "b": "1"}}, False),
        ({"matchExpressions": [{"key": "a", "operator": "In", "values": ["1", "2"]}]}, True),
        ({"matchExpressions": [{"key": "a", "operator": "In", "values": ["2"]}]}, False),
        ({"matchExpressions": [{"key": "a", "operator": "NotIn", "values": ["1"]}]}, False),
        ({"matchExpressions": [{"key": "b", "operator": "NotIn", "values": ["1"]}]}, True),
        ({"matchExpressions": [{"key": "a", "operator": "Exists"}]}, True),
        ({"matchExpressions": [{"key": "b", "operator": "Exists"}]}, False),
        ({"matchExpressions": [{"key": "a", "operator": "DoesNotExist"}]}, False),
        ({"matchExpressions": [{"key": "b", "operator": "DoesNotExist"}]}, True),
        ({"matchLabels": {"a": "1"}, "matchExpressions": [{"key": "a", "operator": "DoesNotExist"}]}, False),
    ],
)
def test_label_selectors_select_as_in_kubernetes(selector: Any, is_selected: bool) -> None:
    assert selects(selector, {"a": "1"}) is is_selected


def test_the_pod_runs_where_the_older_field_for_affinity_requests() -> None:
    parsed = spec({f"{TEMPLATE}/affinity": {"nodeAffinity": {"x": 1}}})
    assert specs.pod_template(parsed).affinity == {"nodeAffinity": {"x": 1}}
    assert specs.pod_template(spec()).affinity == {}


def test_an_optional_credential() -> None:
    key = {"name": "gcs", "key": "gcp.json", "optional": True}
    bucket = {
        "bucketURL": "gs://b",
        "objectPath": "one.db",
        "credentials": {"googleCloud": {"secretKeyRef": key}},
    }
    sources = [
        volume.get("secret")
        for volume in pod_of(check_of(spec({"spec/source": {"bucket": bucket}})))["volumes"]
    ]
    (secret,) = [source for source in sources if source]
    assert (secret["secretName"], secret["optional"]) == ("gcs", True)


def test_a_claim_belongs_to_the_restore_until_it_is_annotated() -> None:
    parsed = spec()
    member = restored.members(METADATA, parsed.cluster_template)[1]
    body = restored.claim(METADATA, parsed.cluster_template, member, "3.6.16")
    made = msgspec.convert(body["metadata"], ObjectMeta)
    assert made.controller_uid == METADATA.uid
    assert not restored.is_annotated(made, member)
    change = restored.annotation_patch(member)
    assert change["ownerReferences"] is None
    annotated = msgspec.structs.replace(
        made, owner_references=(), annotations={**made.annotations, **change["annotations"]}
    )
    assert restored.is_annotated(annotated, member)
    assert not restored.is_annotated(
        msgspec.structs.replace(annotated, owner_references=made.owner_references), member
    )
    another = msgspec.structs.replace(METADATA, uid="another")
    assert not restored.is_annotated(annotated, restored.members(another, parsed.cluster_template)[1])


def test_a_security_context_of_the_template_decides_who_reads_the_volume() -> None:
    parsed = spec({f"{TEMPLATE}/podTemplate": {"securityContext": {"runAsUser": 0}}})
    member = restored.members(METADATA, parsed.cluster_template)[0]
    body = restored.claim(METADATA, parsed.cluster_template, member, "3.6.16")
    assert "etcd.improbable.io/non-root" not in body["metadata"]["annotations"]


def test_it_does_not_run_where_the_seed_could_not() -> None:
    """The members run beside it: where none may share a node, it takes another one, or waits."""
    apart = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "db"}}}
    cluster = persistent()
    template = msgspec.structs.replace(
        cluster.pod_template, affinity={"podAntiAffinity": {REQUIRED: [apart]}}
    )
    job = seed_job_of(replace(cluster, pod_template=template), is_root_owned=False)
    assert job["spec"]["template"]["spec"]["affinity"]["podAntiAffinity"][REQUIRED] == [apart]


def test_on_a_volume_of_root_it_runs_as_root() -> None:
    """As etcd, whose processes it has to see: the default of the operator's image is another user."""
    pod = seed_job_of(persistent(), is_root_owned=True)["spec"]["template"]["spec"]
    assert pod["securityContext"]["runAsUser"] == 0
    (main,), (programs,) = pod["containers"], pod["initContainers"]
    assert "runAsUser" not in {**main["securityContext"], **programs["securityContext"]}
