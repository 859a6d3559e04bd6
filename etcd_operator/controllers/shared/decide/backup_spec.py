"""What a spec of an EtcdBackup means: whether it is valid, and the URL that its template stands for."""

import re
from collections.abc import Iterator
from urllib.parse import urlsplit

from etcd_operator.api.backup_schedules import KIND
from etcd_operator.api.backups import (
    ANY_PLACEHOLDER_PATTERN,
    COMPLETED,
    PLACEHOLDER_PATTERN,
    BackupDestination,
    BackupSource,
    BackupSpec,
    EtcdBackup,
)
from etcd_operator.api.definitions import backup_validations as rules
from etcd_operator.api.definitions.cel import misfits
from etcd_operator.api.definitions.limits import NAME_PATTERN
from etcd_operator.api.meta import ObjectMeta
from etcd_operator.decoding import parsed
from etcd_operator.keys import Key

CLAIM_FOLDER = "/backups"
"""Where the claim of a `file://` URL is mounted."""

_FILE = "file://"


def problem(spec: BackupSpec, at: str = "spec") -> str:
    """What is wrong with a spec, as the API server reports it; empty if nothing is. at: its path."""
    return next((f"{at}.{text}" for text in _problems(spec)), "")


def named_cluster(source: BackupSource, namespace: str) -> str:
    """The EtcdCluster of the namespace that is the source: by its name, or by a name of its Service.

    Empty for an address of another etcd. There may be no such cluster.
    """
    if source.cluster_name:
        return source.cluster_name
    try:
        host = urlsplit(source.cluster_url).hostname or ""
    except ValueError:  # not a URL
        return ""
    name, _, rest = host.partition(".")
    # Behind any other domain is somebody else's etcd; where that of Kubernetes has another name, so is this.
    own = ("", namespace, f"{namespace}.svc", f"{namespace}.svc.cluster.local")
    return name if rest in own and re.fullmatch(NAME_PATTERN, name) else ""


def rendered_url(template: str, metadata: ObjectMeta) -> str:
    """The URL with all placeholders replaced. The template is a valid one."""
    values = {
        "Name": metadata.name,
        "Namespace": metadata.namespace,
        "UID": metadata.uid,
        "CreationTimestamp": metadata.creation_timestamp,
    }
    return re.sub(PLACEHOLDER_PATTERN, lambda found: values[found[1]], template)


def series_of(backup: ObjectMeta) -> str:
    """The series of the schedule that owns an EtcdBackup; empty if none does."""
    owner = next((each for each in backup.owner_references if each.controller and each.kind == KIND), None)
    return f"{backup.namespace}/{owner.name}/{owner.uid}" if owner is not None else ""


def url_in_pod(url: str) -> str:
    """The URL as the pod of the backup has to be given it: files are in the folder of the claim."""
    return f"{_FILE}{CLAIM_FOLDER}{url.removeprefix(_FILE)}" if url.startswith(_FILE) else url


def access_problems(destination: BackupDestination) -> Iterator[str]:
    """What does not fit the URL: the claim, the credentials."""
    url, credentials = destination.object_url_template, destination.credentials
    if url.startswith(_FILE) != (destination.persistent_volume_claim is not None):
        yield rules.CLAIM
    fits = (
        (credentials.aws is None or url.startswith("s3://"))
        and (credentials.google_cloud is None or url.startswith("gs://"))
        and (credentials.environment is None or not url.startswith(_FILE))
    )
    if not fits:
        yield rules.CREDENTIALS_FIT


def _problems(spec: BackupSpec) -> Iterator[str]:
    for text in _source_problems(spec.source):
        yield f"source: {text}"
    for text in _url_problems(spec.destination.object_url_template):
        yield f"destination.objectURLTemplate: {text}"
    for text in access_problems(spec.destination):
        yield f"destination: {text}"


def _source_problems(source: BackupSource) -> Iterator[str]:
    if bool(source.cluster_url) == bool(source.cluster_name):
        yield rules.ONE_SOURCE
    if source.cluster_url and not _is_client_url(source.cluster_url):
        yield f"clusterURL {rules.CLUSTER_URL.message}"
    if source.cluster_url.startswith("https://") != bool(source.tls_secret):
        yield rules.TLS_SECRET
    if source.auth is not None and not source.cluster_url:
        yield rules.AUTH
    if source.cluster_name and not re.fullmatch(NAME_PATTERN, source.cluster_name):
        yield f"clusterName {rules.CLUSTER_NAME}"


def _is_client_url(url: str) -> bool:
    """The pattern, which the API server has, too, permits ports and addresses that do not exist."""
    try:
        return rules.CLUSTER_URL.fits(url) and urlsplit(url).port != 0
    except ValueError:
        return False


def _url_problems(url: str) -> Iterator[str]:
    if not rules.KNOWN_PLACEHOLDERS.fits(url):
        wrong = [
            each.group()
            for each in re.finditer(ANY_PLACEHOLDER_PATTERN, url)
            if not re.fullmatch(PLACEHOLDER_PATTERN, each.group())
        ]
        yield f"{', '.join(wrong)}: {rules.KNOWN_PLACEHOLDERS.message}"
    yield from misfits(url, rules.URL)


def is_restorable(backup: EtcdBackup, cluster: Key) -> bool:
    """Whether an EtcdBackup is a completed one of this cluster, with all that a restore needs."""
    status = backup.status
    is_whole = status.phase == COMPLETED and status.url and status.sha256 and status.cluster_id
    if (
        not (is_whole and status.cluster_uid)
        or backup.metadata.namespace != cluster.namespace
        or backup.metadata.is_deleting
    ):
        return False
    spec, _ = parsed(backup.spec, BackupSpec, lambda _: "")
    return spec is not None and named_cluster(spec.source, cluster.namespace) == cluster.name
