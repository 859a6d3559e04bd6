"""The Jobs that take and verify one backup.

A backup is run once, since a second run could not know what the first one has stored; the command itself
retries, and ends what makes no progress.
"""

from collections.abc import Sequence

from etcd_operator.api.backups import KIND, SECRET_ANNOTATION, UID_LABEL, BackupSpec
from etcd_operator.api.meta import ObjectMeta, RawObject
from etcd_operator.controllers.shared.decide.backup_spec import series_of, url_in_pod
from etcd_operator.controllers.shared.decide.job_state import JobState
from etcd_operator.controllers.shared.manifests import etcd_access, job_pod
from etcd_operator.controllers.shared.manifests import job as job_of
from etcd_operator.controllers.shared.manifests.command import SCRATCH
from etcd_operator.controllers.shared.manifests.etcd_access import EtcdCredentials
from etcd_operator.controllers.shared.manifests.owner import owned_by
from etcd_operator.formats import MIB

VERIFY_CONTAINER = "verify"
TRIAL_RESOURCES: RawObject = {"requests": {"cpu": "100m", "memory": "256Mi"}}
"""A restored etcd needs as much memory as a member, which depends on the data: there is no limit."""

TRIAL_LOG = 512 * MIB
"""Bytes, more than twice what etcd needs beside its database: it preallocates files of 64 MB for its log."""


def job_name(metadata: ObjectMeta, *, is_verification: bool = False) -> str:
    """The name of a Job of an EtcdBackup: another one for another object of the same name."""
    return job_of.job_name(metadata, "verify" if is_verification else "")


def job(
    metadata: ObjectMeta,
    spec: BackupSpec,
    *,
    image: str,
    url: str,
    endpoints: Sequence[str],
    has_secret: bool = False,
) -> RawObject:
    """The Job. url: the rendered one. endpoints: `host:port` of each member that may be the source.

    has_secret: whether it reaches them over TLS, with `secret` and not with one of the user's.
    """
    name, arguments = job_name(metadata), _arguments(spec, url, endpoints, series_of(metadata))
    secret_name, more = f"{name}-etcd" if has_secret else spec.source.tls_secret, []
    if secret_name:
        more.append(etcd_access.volume(secret_name))
        arguments.append(etcd_access.FLAG)
    if spec.source.auth is not None:
        more.append(etcd_access.user_volume(spec.source.auth.secret_name))
        arguments.append(etcd_access.USER_FLAG)
    runs = job_pod.container(spec, job_pod.CONTAINER, image, arguments, more=more)
    body = _job(metadata, name, job_of.BACKUP_APP, job_pod.pod(spec, runs, more=more))
    if has_secret:
        body["metadata"]["annotations"] = {SECRET_ANNOTATION: secret_name}
    return body


def secret(metadata: ObjectMeta, made: JobState, credentials: EtcdCredentials) -> RawObject:
    """The Secret of a Job that was made with one: Kubernetes deletes it with the Job."""
    (owner,) = owned_by("batch/v1", "Job", name=made.name, uid=made.uid)
    body = {
        "name": made.secret,
        "namespace": metadata.namespace,
        "labels": {job_of.APP_LABEL: job_of.BACKUP_APP, UID_LABEL: metadata.uid},
        # It keeps nothing from being deleted, so that it needs no right on the finalizers of Jobs.
        "ownerReferences": [{**owner, "blockOwnerDeletion": False}],
    }
    return etcd_access.secret(body, credentials)


def verification_job(
    metadata: ObjectMeta, spec: BackupSpec, *, image: str, url: str, etcd_image: str, size: int
) -> RawObject:
    """The Job that verifies what is stored at `url`, a snapshot of `size` bytes.

    etcd_image: for a test restore, empty for none.
    """
    arguments = _verify_arguments(spec, url, etcd_image)
    runs = job_pod.container(spec, VERIFY_CONTAINER, image, arguments, reads_only=True)
    # The snapshot, what is restored of it, and the log of etcd.
    made = job_pod.pod(spec, runs, scratch=2 * size + TRIAL_LOG if etcd_image else 0)
    if etcd_image:
        runs["resources"] = TRIAL_RESOURCES
        made |= job_pod.programs(etcd_image)
    return _job(metadata, job_name(metadata, is_verification=True), "etcd-backup-verification", made)


def _job(metadata: ObjectMeta, name: str, app: str, pod: RawObject) -> RawObject:
    return job_of.job(
        metadata,
        kind=KIND,
        name=name,
        labels={job_of.APP_LABEL: app, UID_LABEL: metadata.uid},
        pod=pod,
        annotations=job_pod.UNDISTURBED,
    )


def _arguments(spec: BackupSpec, url: str, endpoints: Sequence[str], series: str) -> list[str]:
    arguments = ["backup", f"--endpoints={','.join(endpoints)}", f"--to={url_in_pod(url)}"]
    if spec.compression is not None:
        arguments.append("--compress")
    arguments += job_pod.keys_flag(spec)
    if series:
        arguments.append(f"--series={series}")
    return [*arguments, *job_pod.REPORT]


def _verify_arguments(spec: BackupSpec, url: str, etcd_image: str) -> list[str]:
    arguments = ["verify", url_in_pod(url)]
    if etcd_image:
        arguments += ["--restore", "--etcd-in-pod", f"--scratch-dir={SCRATCH}"]
    return [*arguments, *job_pod.keys_flag(spec), *job_pod.REPORT]
