"""The Jobs of an EtcdRestore: one that verifies the backup, and one for each member that restores it.

Their pods have no rights, as those of an EtcdBackup (see `manifests.backup_job`). A pod that was killed is
repeated: complete data of this very restore is left alone, and incomplete data has another name. What the
command itself reports fails the Job at once: it has retried what is worth it.

etcdutl is not in the operator's image, and etcd's images have no shell and no program that copies a file. So
a second container runs a program of such an image that does nothing, and the containers of the pod share
their processes: the command finds etcdutl in `/proc/PID/root`.
"""

from collections.abc import Sequence

from etcd_operator.api.backups import BackupSpec
from etcd_operator.api.cluster_spec import PodTemplate
from etcd_operator.api.meta import ObjectMeta, RawObject
from etcd_operator.api.restores import CLAIM_UID_ANNOTATION, KIND, UID_LABEL
from etcd_operator.controllers.etcd_backup.decide.spec import url_in_pod
from etcd_operator.controllers.etcd_backup.manifests.backup_job import (
    REPORT,
    container,
    keys_flag,
    pod,
    programs,
)
from etcd_operator.controllers.etcd_cluster.manifests.affinity import (
    preferred_apart,
    required_terms,
    spread_among,
    terms_among,
)
from etcd_operator.controllers.etcd_cluster.manifests.security import as_etcd, security
from etcd_operator.controllers.etcd_restore.manifests.restored import DATA_FOLDER, MOUNT_PATH, RestoredMember
from etcd_operator.controllers.shared.manifests import job as job_of
from etcd_operator.controllers.shared.manifests.command import SCRATCH
from etcd_operator.controllers.shared.manifests.pod import DATA_VOLUME, scheduling

PROGRESS_PORT = 19998
"""Where the pods report how far they are: numbers of bytes, which need no protection."""

CHECK_CONTAINER = "verify"
CONTAINER = "restore"
NAME_LABELS = {"app.kubernetes.io/name": "etcd-restore"}

_RETRIES = 3
_NOT_REPEATED = [1, 2, 3]
"""Exit codes of the command's own failures, not those of signals."""

RESOURCES: RawObject = {"requests": {"cpu": "100m", "memory": "128Mi"}}
"""etcdutl maps the whole database, which counts as memory of the container: there is no limit."""


def check_name(metadata: ObjectMeta) -> str:
    """The name of the Job that verifies the backup: another one for another EtcdRestore of the same name."""
    return job_of.job_name(metadata, "verify")


def job_name(metadata: ObjectMeta, ordinal: int) -> str:
    """The name of the Job that restores a member."""
    return job_of.job_name(metadata, str(ordinal))


def check_job(metadata: ObjectMeta, access: BackupSpec, *, image: str, url: str) -> RawObject:
    """The Job that reads the whole backup at `url`, and reports what it is."""
    arguments = ["restore", url_in_pod(url), "--check", *keys_flag(access), *REPORT]
    return _job(
        metadata, check_name(metadata), CHECK_CONTAINER, _pod(access, CHECK_CONTAINER, image, arguments)
    )


def job(  # noqa: PLR0913 -- all that a Job depends on
    metadata: ObjectMeta,
    access: BackupSpec,
    member: RestoredMember,
    template: PodTemplate,
    *,
    image: str,
    etcd_image: str,
    url: str,
    sha256: str,
    bump: int,
    claim_uid: str,
) -> RawObject:
    """The Job that restores `member` to its claim. sha256: of the snapshot that was verified.

    bump: how much higher the revisions of the new cluster are, the same for all members. claim_uid: of the
    claim, so that another one of that name is not taken for it.
    """
    flags = [*keys_flag(access), *flags_of(member, sha256), f"--bump-revision={bump}"]
    spec = restoring_pod(access, member, url, flags, image=image, etcd_image=etcd_image)
    # The member reads what this pod writes, and runs where its volume is.
    spec["securityContext"] = as_etcd(security(template).pod)
    spec |= placement(metadata, template, required=_required(metadata, template, member))
    spread = spread_among(template, member.labels, _labels(metadata))
    if spread:
        spec["topologySpreadConstraints"] = spread
    return restoring_job(metadata, KIND, job_name(metadata, member.ordinal), spec, claim_uid=claim_uid)


def restoring_job(
    metadata: ObjectMeta, kind: str, name: str, spec: RawObject, *, claim_uid: str
) -> RawObject:
    """A Job whose pod restores to a claim, owned by an object of this kind. spec: of its pod."""
    made = _job(metadata, name, CONTAINER, spec, kind=kind)
    made["metadata"]["annotations"] = {CLAIM_UID_ANNOTATION: claim_uid}
    return made


def restoring_pod(
    access: BackupSpec, member: RestoredMember, url: str, flags: list[str], *, image: str, etcd_image: str
) -> RawObject:
    """The spec of a pod that restores to the claim of a member, but for where and as whom it runs.

    flags: for `etcd-operator restore`, beside the URL.
    """
    spec = _pod(access, CONTAINER, image, ["restore", url_in_pod(url), *flags, *REPORT])
    (main,) = spec["containers"]
    main["resources"] = RESOURCES
    main["volumeMounts"].append({"name": DATA_VOLUME, "mountPath": MOUNT_PATH})
    spec["volumes"].append({"name": DATA_VOLUME, "persistentVolumeClaim": {"claimName": member.name}})
    spec |= programs(etcd_image)
    return spec


def flags_of(member: RestoredMember, sha256: str) -> list[str]:
    """The flags that name for which member is restored, and what the snapshot has to be."""
    peers = ",".join(f"{name}={url}" for name, url in member.peer_urls.items())
    return [
        f"--data-dir={DATA_FOLDER}",
        f"--scratch-dir={SCRATCH}",
        "--skip-restored",
        "--etcd-in-pod",
        f"--sha256={sha256}",
        f"--name={member.name}",
        f"--initial-cluster={peers}",
        f"--initial-cluster-token={member.token}",
        f"--initial-advertise-peer-urls={member.peer_urls[member.name]}",
    ]


def _pod(access: BackupSpec, name: str, image: str, arguments: list[str]) -> RawObject:
    arguments = [*arguments, f"--progress-port={PROGRESS_PORT}"]
    return pod(access, container(access, name, image, arguments, reads_only=True))


def placement(
    metadata: ObjectMeta, template: PodTemplate, *, required: Sequence[RawObject] = ()
) -> RawObject:
    """Where the pods run: as the members, as far as that does not depend on labels of members' pods.

    They spread (see `manifests.affinity`). required: terms of anti-affinity that they have to keep.
    """
    affinity = preferred_apart({"matchLabels": _labels(metadata)}, required)
    if "nodeAffinity" in template.affinity:
        affinity["nodeAffinity"] = template.affinity["nodeAffinity"]
    return {"affinity": affinity, **scheduling(template)}


def _required(metadata: ObjectMeta, template: PodTemplate, member: RestoredMember) -> list[RawObject]:
    """Apart from whatever the member has to be apart from, and from each other if the members are."""
    return [*required_terms(template), *terms_among(template, member.labels, _labels(metadata))]


def _labels(metadata: ObjectMeta) -> dict[str, str]:
    """Of the pods of this restore only."""
    return {UID_LABEL: metadata.uid}


def _job(
    metadata: ObjectMeta, name: str, container_name: str, spec: RawObject, *, kind: str = KIND
) -> RawObject:
    on_exit = {"containerName": container_name, "operator": "In", "values": _NOT_REPEATED}
    disrupted = [{"type": "DisruptionTarget", "status": "True"}]
    body = job_of.job(
        metadata,
        kind=kind,
        name=name,
        labels={**NAME_LABELS, **_labels(metadata)},
        pod=spec,
        retries=_RETRIES,
    )
    body["spec"]["podFailurePolicy"] = {
        "rules": [
            {"action": "FailJob", "onExitCodes": on_exit},
            {"action": "Ignore", "onPodConditions": disrupted},
        ]
    }
    return body
