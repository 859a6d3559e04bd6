"""Clusters with TLS and users that lose their members: backups come back, and are sent over TLS only."""

from e2e.support.clusters import ephemeral
from e2e.support.space import Space
from e2e.support.waiting import wait_until
from e2e.test_tls import CLIENT, SECURED, etcdctl, settled, start_user
from etcd_operator.kube import resources

BACKUP = {"backupIntervalInSecond": 5, "maxBackups": 3, "volumeSizeInMB": 50}


def test_a_cluster_that_loses_all_members_is_restored_from_its_backup_tool(space: Space) -> None:
    document = space.create(ephemeral(**SECURED, backup=BACKUP))
    settled(space, document)
    name = document["metadata"]["name"]
    start_user(space, document)
    etcdctl(space, document, "put", "first", "1")
    wait_until(lambda: space.status(document).get("backup", {}).get("revision", 0) >= 2, "it is backed up")
    plain = (
        "exec",
        CLIENT,
        "--",
        "wget",
        "-q",
        "-T",
        "5",
        "-O",
        "-",
        f"http://{name}-backup-tool:19999/v1/status",
    )
    assert "newest" not in space.kubectl(*plain, check=False)

    lost = {pod["metadata"]["name"]: pod["metadata"]["uid"] for pod in space.pods(document)}
    space.kubectl("delete", "pod", *lost, "--grace-period=0", "--force")
    wait_until(
        lambda: not {pod["metadata"]["uid"] for pod in space.pods(document)} & set(lost.values()),
        "all are gone",
    )
    space.wait_for(document, lambda: len(space.pods(document)) == len(lost), "there are as many again")
    settled(space, document)
    source = space.status(document)["recovery"]["source"]
    assert (source["type"], source["tls"]) == ("ToolBackup", True)
    assert etcdctl(space, document, "get", "first").split() == ["first", "1"]
    etcdctl(space, document, "put", "second", "2")
    members = [pod["metadata"]["name"] for pod in space.pods(document)]
    held = {secret for secret in space.names(resources.SECRETS) if secret.endswith("-tls")}
    assert held == {f"{each}-tls" for each in (*members, f"{name}-backup-tool")}

    wait_until(
        lambda: space.status(document)["backup"]["clusterID"] == space.status(document)["clusterID"],
        "the new cluster is backed up",
    )
