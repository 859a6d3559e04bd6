"""Jobs that restore a backup to the claim of a member, or verify it before.

A pod that was killed is repeated: complete data of this very restore is left alone, and incomplete data has
another name. What the command itself reports fails the Job at once: it has retried what is worth it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from etcd_operator.api.backups import BackupSpec
from etcd_operator.api.cluster_spec import PodTemplate
from etcd_operator.api.meta import ObjectMeta, RawObject
from etcd_operator.api.restores import CLAIM_UID_ANNOTATION, KIND, UID_LABEL
from etcd_operator.controllers.shared.decide.backup_spec import url_in_pod
from etcd_operator.controllers.shared.manifests.affinity import preferred_apart
from etcd_operator.controllers.shared.manifests.command import SCRATCH
from etcd_operator.controllers.shared.manifests.job import APP_LABEL
from etcd_operator.controllers.shared.manifests.job import job as owned_job
from etcd_operator.controllers.shared.manifests.job_pod import REPORT, container, pod, programs
from etcd_operator.controllers.shared.manifests.pod import DATA_DIR, DATA_VOLUME, RESTORED_DIR, scheduling

PROGRESS_PORT = 19998
"""Where the pods report how far they are: numbers of bytes, which need no protection."""

CHECK_CONTAINER = "verify"
CONTAINER = "restore"

_RETRIES = 3
_NOT_REPEATED = [1, 2, 3]
"""Exit codes of the command's own failures, not those of signals."""

RESOURCES: RawObject = {"requests": {"cpu": "100m", "memory": "128Mi"}}
"""etcdutl maps the whole database, which counts as memory of the container: there is no limit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RestoredMember:
    """A member of the new cluster; all members have the same `peer_urls` (by name) and `token`."""

    name: str
    ordinal: int
    peer_urls: Mapping[str, str]
    token: str
    labels: Mapping[str, str] = field(default_factory=dict)  # by which a user may select the members


def restoring_job(
    metadata: ObjectMeta, kind: str, name: str, spec: RawObject, *, claim_uid: str
) -> RawObject:
    """A Job whose pod restores to a claim, owned by an object of this kind. spec: of its pod."""
    made = job_of(metadata, name, CONTAINER, spec, kind=kind)
    made["metadata"]["annotations"] = {CLAIM_UID_ANNOTATION: claim_uid}
    return made


def restoring_pod(
    access: BackupSpec,
    member: RestoredMember,
    url: str,
    flags: list[str],
    *,
    image: str,
    etcd_image: str,
    size: int | None,
) -> RawObject:
    """The spec of a pod that restores to the claim of a member, but for where and as whom it runs.

    flags: for `etcd-operator restore`, beside the URL. size: of the snapshot; None if that is not known.
    """
    spec = pod_of(access, CONTAINER, image, ["restore", url_in_pod(url), *flags, *REPORT], scratch=size)
    (main,) = spec["containers"]
    main["resources"] = RESOURCES
    main["volumeMounts"].append({"name": DATA_VOLUME, "mountPath": DATA_DIR})
    spec["volumes"].append({"name": DATA_VOLUME, "persistentVolumeClaim": {"claimName": member.name}})
    spec |= programs(etcd_image)
    return spec


def flags_of(member: RestoredMember, sha256: str) -> list[str]:
    """The flags that name for which member is restored, and what the snapshot has to be."""
    peers = ",".join(f"{name}={url}" for name, url in member.peer_urls.items())
    return [
        f"--data-dir={RESTORED_DIR}",
        f"--scratch-dir={SCRATCH}",
        "--skip-restored",
        "--etcd-in-pod",
        f"--sha256={sha256}",
        f"--name={member.name}",
        f"--initial-cluster={peers}",
        f"--initial-cluster-token={member.token}",
        f"--initial-advertise-peer-urls={member.peer_urls[member.name]}",
    ]


def pod_of(
    access: BackupSpec, name: str, image: str, arguments: list[str], *, scratch: int | None = 0
) -> RawObject:
    """The spec of a pod that runs a command, and reports how far it is."""
    arguments = [*arguments, f"--progress-port={PROGRESS_PORT}"]
    runs = container(access, name, image, arguments, reads_only=True)
    return pod(access, runs, scratch=scratch)


def placement(
    metadata: ObjectMeta, template: PodTemplate, *, required: Sequence[RawObject] = ()
) -> RawObject:
    """Where the pods run: as the members, as far as that does not depend on labels of members' pods.

    They spread (see `manifests.affinity`). required: terms of anti-affinity that they have to keep.
    """
    affinity = preferred_apart({"matchLabels": labels_of(metadata)}, required)
    if "nodeAffinity" in template.affinity:
        affinity["nodeAffinity"] = template.affinity["nodeAffinity"]
    return {"affinity": affinity, **scheduling(template)}


def labels_of(metadata: ObjectMeta) -> dict[str, str]:
    """Of the pods of this restore only."""
    return {UID_LABEL: metadata.uid}


def job_of(
    metadata: ObjectMeta, name: str, container_name: str, spec: RawObject, *, kind: str = KIND
) -> RawObject:
    """A Job that tolerates disruptions. spec: of its pod."""
    on_exit = {"containerName": container_name, "operator": "In", "values": _NOT_REPEATED}
    disrupted = [{"type": "DisruptionTarget", "status": "True"}]
    body = owned_job(
        metadata,
        kind=kind,
        name=name,
        labels={APP_LABEL: "etcd-restore", **labels_of(metadata)},
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
