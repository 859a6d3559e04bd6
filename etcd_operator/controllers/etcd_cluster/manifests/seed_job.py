"""The Job that restores an EtcdBackup to the claim of a seed: like that of an EtcdRestore, for one member.

It is owned by the EtcdCluster. After its end it is deleted in time; a repetition leaves complete data alone.
"""

from etcd_operator.api.backups import BackupSpec
from etcd_operator.api.meta import ObjectMeta, RawObject
from etcd_operator.api.recoveries import Recovery
from etcd_operator.controllers.etcd_cluster.decide.desired import DesiredCluster
from etcd_operator.controllers.etcd_cluster.manifests.persistent_services import member_host
from etcd_operator.controllers.shared.decide.clusters import ordinal_of
from etcd_operator.controllers.shared.manifests import job as job_of
from etcd_operator.controllers.shared.manifests.affinity import required_terms
from etcd_operator.controllers.shared.manifests.job_pod import keys_flag
from etcd_operator.controllers.shared.manifests.restoring_job import (
    RestoredMember,
    flags_of,
    placement,
    restoring_job,
    restoring_pod,
)
from etcd_operator.controllers.shared.manifests.security import as_etcd, security
from etcd_operator.controllers.shared.manifests.urls import PEER_PORT
from etcd_operator.controllers.shared.manifests.urls import url as url_of

KIND = "EtcdCluster"
KEPT_SECONDS = 600
"""For which a Job that has ended is kept, for its log."""


def job_name(cluster: DesiredCluster, recovery: Recovery) -> str:
    """The name of the Job: another one for each attempt."""
    return job_of.job_name(_metadata(cluster), f"seed-{recovery.generation}")


def job(
    cluster: DesiredCluster,
    recovery: Recovery,
    access: BackupSpec,
    *,
    image: str,
    etcd_image: str,
    claim_uid: str,
    is_root_owned: bool,
) -> RawObject:
    """The Job. image: of the operator. etcd_image: has etcdutl. is_root_owned: see `manifests.security`.

    claim_uid: of the claim, so that another one of that name is not taken for it.
    """
    metadata, seed, backup = _metadata(cluster), recovery.seed, recovery.stored_backup
    if backup is None:
        raise TypeError(f"recovery {recovery.generation} restores no EtcdBackup")
    host = member_host(cluster.name, cluster.namespace, seed, recovery.token)
    peers = {seed: url_of(host, PEER_PORT, is_secure=cluster.secured.has_secure_peers)}
    member = RestoredMember(name=seed, ordinal=ordinal_of(seed), peer_urls=peers, token=recovery.token)
    flags = [*keys_flag(access), *flags_of(member, backup.sha256), f"--bump-revision={recovery.bump}"]
    size = backup.size or None
    spec = restoring_pod(access, member, backup.url, flags, image=image, etcd_image=etcd_image, size=size)
    contexts = security(cluster.pod_template, is_root_owned=is_root_owned)
    spec["securityContext"] = as_etcd(contexts.pod)
    # The members run meanwhile: where no node is left for the seed, the Job must not start either.
    spec |= placement(metadata, cluster.pod_template, required=required_terms(cluster.pod_template))
    body = restoring_job(metadata, KIND, job_name(cluster, recovery), spec, claim_uid=claim_uid)
    body["spec"]["ttlSecondsAfterFinished"] = KEPT_SECONDS
    return body


def _metadata(cluster: DesiredCluster) -> ObjectMeta:
    return ObjectMeta(name=cluster.name, namespace=cluster.namespace, uid=cluster.uid)
