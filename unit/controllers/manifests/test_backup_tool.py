"""Rules that the objects of every backup tool obey."""

from dataclasses import replace
from typing import Any

import pytest

from etcd_operator.api.cluster_spec import PodTemplate
from etcd_operator.cli import _parser
from etcd_operator.commands.backup_tool import _config
from etcd_operator.controllers.backup_tool.manifests import backup_tool
from etcd_operator.controllers.backup_tool.manifests.backup_tool import TEMPLATE_ANNOTATION, replica_set
from etcd_operator.controllers.etcd_cluster.manifests import ephemeral
from etcd_operator.controllers.shared.manifests.affinity import selects
from etcd_operator.controllers.shared.storage_class import class_name, storage_class
from unit.controllers.manifests.cases import EPHEMERAL_BOOTSTRAPPING, FULL_EPHEMERAL, PLAIN_EPHEMERAL
from unit.controllers.manifests.tools import IN_S3, ON_VOLUME, pod_of, tool_of

POLICIES = pytest.mark.parametrize("policy", [ON_VOLUME, IN_S3])


@POLICIES
def test_nothing_takes_it_for_a_member(policy: Any) -> None:
    """It has the label of the cluster: budget, anti-affinity and the client Service select members only."""
    labels = replica_set(tool_of(policy))["spec"]["template"]["metadata"]["labels"]
    assert labels == {"app": "etcd_backup_tool", "etcd_cluster": "db"}
    member = ephemeral.pod(PLAIN_EPHEMERAL, "db-0001", EPHEMERAL_BOOTSTRAPPING)["metadata"]["labels"]
    budget = ephemeral.budget(PLAIN_EPHEMERAL, 2)["spec"]["selector"]
    assert selects(budget, member)
    assert not selects(budget, labels)
    apart = ephemeral.members_selector("db")
    assert selects(apart, member)
    assert not selects(apart, labels)
    clients = ephemeral.services(PLAIN_EPHEMERAL)[-1]["spec"]["selector"]
    assert not clients.items() <= labels.items()
    assert backup_tool.tool_service(PLAIN_EPHEMERAL)["spec"]["selector"] == labels


@POLICIES
def test_the_command_understands_its_arguments(policy: Any) -> None:
    (container,) = pod_of(policy)["containers"]
    options = _parser().parse_args(container["args"])
    assert options.command == "backup-tool"
    config = _config(options)
    assert config.folder == "v1/test/db" or config.folder.endswith("/db")
    assert config.max_backups == policy["maxBackups"]
    mounted = {mount["mountPath"] for mount in container["volumeMounts"]}
    assert {str(config.scratch), str(config.token_file.parent)} < mounted


def test_where_backups_go() -> None:
    def to(policy: Any) -> str:
        (container,) = pod_of(policy)["containers"]
        return str(_parser().parse_args(container["args"]).to)

    assert to(ON_VOLUME) == "file:///var/etcd-backup/"
    assert to(IN_S3) == ("s3://my-bucket/etcd/main/?region=eu-west-1&endpoint=http://s3.storage.svc:7070")
    bare = {**IN_S3, "s3": {"s3Bucket": "my-bucket"}}
    assert to(bare) == "s3://my-bucket/"


def test_it_runs_as_its_cluster_requests() -> None:
    cluster = replace(
        PLAIN_EPHEMERAL,
        pod_template=PodTemplate(node_selector={"disk": "fast"}, security_context={"runAsUser": 0}),
    )
    pod = pod_of(ON_VOLUME, cluster)
    assert (pod["nodeSelector"], pod["securityContext"]) == ({"disk": "fast"}, {"runAsUser": 0})
    assert "affinity" not in pod_of(ON_VOLUME, FULL_EPHEMERAL)


def test_a_template_has_its_own_digest() -> None:
    first, again = replica_set(tool_of(ON_VOLUME)), replica_set(tool_of(ON_VOLUME))
    assert first == again
    other = replica_set(tool_of({**ON_VOLUME, "maxBackups": 4}))

    def digests(body: Any) -> tuple[str, str]:
        template = body["spec"]["template"]["metadata"]
        return body["metadata"]["annotations"][TEMPLATE_ANNOTATION], template["annotations"][
            TEMPLATE_ANNOTATION
        ]

    assert digests(first)[0] == digests(first)[1] != digests(other)[0]
    larger = replica_set(tool_of({**ON_VOLUME, "volumeSizeInMB": 2048}))
    assert larger == first, "the pod need not restart for a larger claim"


def test_a_claim_outlives_its_cluster() -> None:
    claim = backup_tool.claim(PLAIN_EPHEMERAL, tool_of(ON_VOLUME).policy, "")
    assert "ownerReferences" not in claim["metadata"]
    assert "storageClassName" not in claim["spec"]
    named = backup_tool.claim(PLAIN_EPHEMERAL, tool_of(ON_VOLUME).policy, "etcd-operator-backup-gce-pd")
    assert named["spec"]["storageClassName"] == "etcd-operator-backup-gce-pd"


@pytest.mark.parametrize(
    ("given", "name", "driver"),
    [
        ("kubernetes.io/gce-pd", "etcd-operator-backup-gce-pd", "pd.csi.storage.gke.io"),
        ("pd.csi.storage.gke.io", "etcd-operator-backup-gce-pd", "pd.csi.storage.gke.io"),
        ("kubernetes.io/aws-ebs", "etcd-operator-backup-aws-ebs", "ebs.csi.aws.com"),
        ("ebs.csi.aws.com", "etcd-operator-backup-aws-ebs", "ebs.csi.aws.com"),
        ("example.com/fast", "etcd-operator-backup-fast", "example.com/fast"),
    ],
)
def test_the_storage_class_has_the_documented_name(given: str, name: str, driver: str) -> None:
    made = storage_class(given)
    assert (class_name(given), made["metadata"]["name"], made["provisioner"]) == (name, name, driver)
