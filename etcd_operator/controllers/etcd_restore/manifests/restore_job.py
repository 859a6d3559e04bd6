"""The Jobs of an EtcdRestore: one that verifies the backup, and one for each member that restores it.

Their pods have no rights, as those of an EtcdBackup (see `manifests.job_pod`).
"""

from etcd_operator.api.backups import BackupSpec
from etcd_operator.api.cluster_spec import PodTemplate
from etcd_operator.api.meta import ObjectMeta, RawObject
from etcd_operator.api.restores import KIND
from etcd_operator.controllers.shared.decide.backup_spec import url_in_pod
from etcd_operator.controllers.shared.manifests import restoring_job
from etcd_operator.controllers.shared.manifests.affinity import required_terms, spread_among, terms_among
from etcd_operator.controllers.shared.manifests.job import job_name as job_name_of
from etcd_operator.controllers.shared.manifests.job_pod import REPORT, keys_flag
from etcd_operator.controllers.shared.manifests.security import as_etcd, security


def check_name(metadata: ObjectMeta) -> str:
    """The name of the Job that verifies the backup: another one for another EtcdRestore of the same name."""
    return job_name_of(metadata, "verify")


def job_name(metadata: ObjectMeta, ordinal: int) -> str:
    """The name of the Job that restores a member."""
    return job_name_of(metadata, str(ordinal))


def check_job(metadata: ObjectMeta, access: BackupSpec, *, image: str, url: str) -> RawObject:
    """The Job that reads the whole backup at `url`, and reports what it is."""
    arguments = ["restore", url_in_pod(url), "--check", *keys_flag(access), *REPORT]
    return restoring_job.job_of(
        metadata,
        check_name(metadata),
        restoring_job.CHECK_CONTAINER,
        restoring_job.pod_of(access, restoring_job.CHECK_CONTAINER, image, arguments),
    )


def job(  # noqa: PLR0913 -- all that a Job depends on
    metadata: ObjectMeta,
    access: BackupSpec,
    member: restoring_job.RestoredMember,
    template: PodTemplate,
    *,
    image: str,
    etcd_image: str,
    url: str,
    sha256: str,
    size: int,
    bump: int,
    claim_uid: str,
) -> RawObject:
    """The Job that restores `member` to its claim. sha256, size: of the snapshot that was verified.

    bump: how much higher the revisions of the new cluster are, the same for all members. claim_uid: of the
    claim, so that another one of that name is not taken for it.
    """
    flags = [
        *keys_flag(access),
        *restoring_job.flags_of(member, sha256),
        f"--bump-revision={bump}",
    ]
    spec = restoring_job.restoring_pod(
        access, member, url, flags, image=image, etcd_image=etcd_image, size=size
    )
    # The member reads what this pod writes, and runs where its volume is.
    spec["securityContext"] = as_etcd(security(template).pod)
    spec |= restoring_job.placement(metadata, template, required=_required(metadata, template, member))
    spread = spread_among(template, member.labels, restoring_job.labels_of(metadata))
    if spread:
        spec["topologySpreadConstraints"] = spread
    return restoring_job.restoring_job(
        metadata, KIND, job_name(metadata, member.ordinal), spec, claim_uid=claim_uid
    )


def _required(
    metadata: ObjectMeta, template: PodTemplate, member: restoring_job.RestoredMember
) -> list[RawObject]:
    """Apart from whatever the member has to be apart from, and from each other if the members are."""
    return [
        *required_terms(template),
        *terms_among(template, member.labels, restoring_job.labels_of(metadata)),
    ]
