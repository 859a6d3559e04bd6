"""Backup tools to render."""

from typing import Any

from etcd_operator.api.meta import RawObject
from etcd_operator.controllers.backup_tool.decide.policy import wanted
from etcd_operator.controllers.backup_tool.manifests.backup_tool import ToolSettings, replica_set
from etcd_operator.controllers.etcd_cluster.decide.desired import DesiredCluster
from unit.controllers.manifests.cases import PLAIN_EPHEMERAL

IMAGE = "localhost/etcd-operator:0.1.0"
ON_VOLUME: RawObject = {"maxBackups": 3, "volumeSizeInMB": 1024}
IN_S3: RawObject = {
    "backupIntervalInSecond": 60,
    "maxBackups": 5,
    "storageType": "S3",
    "s3": {
        "s3Bucket": "my-bucket",
        "prefix": "etcd/main/",
        "awsSecret": "my-aws-secret",
        "region": "eu-west-1",
        "endpoint": "http://s3.storage.svc:7070",
    },
}


def tool_of(policy: RawObject, cluster: DesiredCluster = PLAIN_EPHEMERAL) -> ToolSettings:
    """The tool of a valid policy."""
    found = wanted(policy)
    assert found.problem == ""
    assert found.policy is not None
    return ToolSettings(cluster=cluster, policy=found.policy, image=IMAGE)


def pod_of(policy: RawObject, cluster: DesiredCluster = PLAIN_EPHEMERAL) -> Any:
    """The spec of the tool's pod."""
    return replica_set(tool_of(policy, cluster))["spec"]["template"]["spec"]
