"""What a spec of an EtcdRestore means: whether it is valid, fits a snapshot, and how its backup is read."""

import re
from collections.abc import Iterator

import msgspec
from semver import Version

from etcd_operator.api.backups import BackupDestination, BackupSource, BackupSpec
from etcd_operator.api.cluster_spec import NetworkAccess, PodTemplate
from etcd_operator.api.definitions import restore_validations as rules
from etcd_operator.api.definitions.cel import misfits
from etcd_operator.api.definitions.limits import LONGEST_IMPROBABLE_NAME, NAME_PATTERN
from etcd_operator.api.definitions.validations import EMPTY_VOLUME, NETWORK_PEER, VOLUME_SOURCES
from etcd_operator.api.restores import RestoreSource, RestoreSpec, Verified
from etcd_operator.controllers.shared.decide import tls_spec
from etcd_operator.controllers.shared.decide.backup_spec import access_problems
from etcd_operator.errors import InvalidSpec
from etcd_operator.formats import bytes_of
from etcd_operator.versions import can_restore, minors_that_start_on, parse_version, starts_on

OLDEST = Version(3, 4)
"""The oldest etcd whose backups can be restored: 3.5.10, the first that raises revisions, starts on them."""

_SELECTORS = {"podSelector", "namespaceSelector"}


def problem(spec: RestoreSpec) -> str:
    """What is wrong with a spec, as the API server reports it; empty if nothing is."""
    return next((f"spec.{text}" for text in _problems(spec)), "")


def template_version(spec: RestoreSpec) -> str:
    """The version of etcd in the template, without `v`; empty for that of the backup."""
    wanted = spec.cluster_template.spec.version
    return str(parse_version(wanted)) if wanted else ""


def storage(spec: RestoreSpec) -> int | None:
    """The bytes that each claim requests; None for a form that is not read here."""
    requests = spec.cluster_template.spec.storage.volume_claim_template.get("resources", {}).get(
        "requests", {}
    )
    return bytes_of(str(requests.get("storage", "")))


def version_problem(snapshot: Verified, wanted: str) -> str:
    """Why a cluster of the version `wanted` (empty: that of the backup) cannot start; empty if it can."""
    found = snapshot.etcd_version if Version.is_valid(snapshot.etcd_version) else ""
    if found and Version.parse(found) < OLDEST:
        return (
            f"a backup of etcd {found} cannot be restored: the first etcd that raises revisions is 3.5.10, "
            "which starts on data of etcd 3.4 or later"
        )
    if not wanted and (snapshot.check != "manifest" or not found):
        return (
            "the exact version of the snapshot is not known, because it has no manifest: set "
            f"spec.clusterTemplate.spec.version{f' to one of {minors_that_start_on(found)}' if found else ''}"
        )
    version = wanted or found
    try:
        release = parse_version(version)
    except InvalidSpec as error:
        return f"an EtcdCluster cannot run etcd {version} ({error}): set spec.clusterTemplate.spec.version"
    if release.build:
        return f"etcd {version} is not a release: set spec.clusterTemplate.spec.version to a release"
    if not can_restore(version):
        field = "spec.clusterTemplate.spec.version"
        return f"etcdutl {version} cannot raise revisions: set {field} to 3.5.10 or later"
    if found and not starts_on(version, found):
        return (
            f"a backup of etcd {found} can be restored to etcd {minors_that_start_on(found)}, not to etcd "
            f"{version}"
        )
    return ""


def pod_template(spec: RestoreSpec) -> PodTemplate:
    """The settings of the members' pods, whichever of the two fields has the affinity."""
    template = spec.cluster_template.spec
    return msgspec.structs.replace(
        template.pod_template, affinity=template.affinity or template.pod_template.affinity
    )


def access(spec: RestoreSpec) -> BackupSpec:
    """How the pods reach the backup, for a source that is not an EtcdBackup: as one that stored it there."""
    source = spec.source
    credentials = source.bucket.credentials if source.bucket is not None else source.credentials
    return BackupSpec(
        source=BackupSource(),
        destination=BackupDestination(
            object_url_template=source.url,
            credentials=credentials,
            persistent_volume_claim=source.persistent_volume_claim,
        ),
        encryption=spec.encryption,
        service_account_name=spec.service_account_name,
    )


def access_of_backup(spec: RestoreSpec, backup: BackupSpec) -> BackupSpec:
    """How the pods reach what an EtcdBackup has stored: as its own pod, unless the restore names more."""
    return msgspec.structs.replace(
        backup,
        encryption=spec.encryption or backup.encryption,
        service_account_name=spec.service_account_name or backup.service_account_name,
    )


def _problems(spec: RestoreSpec) -> Iterator[str]:
    source, template = spec.source, spec.cluster_template
    if sum(map(bool, (source.bucket, source.object_url, source.backup_name))) != 1:
        yield f"source: {rules.ONE_SOURCE}"
    yield from (f"source.{text}" for text in _source_problems(source))
    yield from (f"source: {text}" for text in _access_problems(access(spec)))
    name = template.cluster_name
    if not re.fullmatch(NAME_PATTERN, name) or len(name) > LONGEST_IMPROBABLE_NAME:
        yield f"clusterTemplate.clusterName: {rules.CLUSTER_NAME}"
    try:
        template_version(spec)
    except InvalidSpec as error:
        yield f"clusterTemplate.spec: {error}"
    claim = template.spec.storage.volume_claim_template
    for field in filter(claim.__contains__, VOLUME_SOURCES):
        yield f"clusterTemplate.spec.storage.volumeClaimTemplate.{field}: {EMPTY_VOLUME}"
    if template.spec.tls is not None:
        yield from (f"clusterTemplate.spec.{text}" for text in tls_spec.problems(template.spec.tls))
    wrong = tls_spec.auth_problem(template.spec.auth, template.spec.tls)
    if wrong:
        yield f"clusterTemplate.spec.{wrong}"
    yield from (f"clusterTemplate.spec.{text}" for text in _peer_problems(template.spec.network_policy))
    if template.spec.affinity and template.spec.pod_template.affinity:
        yield "clusterTemplate.spec: affinity and podTemplate.affinity are alternatives: set one of them"


def _peer_problems(access: NetworkAccess) -> Iterator[str]:
    for field, peers in (("clients", access.clients or ()), ("metrics", access.metrics)):
        if any(("ipBlock" in each) == bool(each.keys() & _SELECTORS) for each in peers):
            yield f"networkPolicy.{field}: {NETWORK_PEER}"


def _source_problems(source: RestoreSource) -> Iterator[str]:
    if source.bucket is not None and not rules.BUCKET_URL.fits(source.bucket.bucket_url):
        yield f"bucket.bucketURL: {rules.BUCKET_URL.message}"
    if source.bucket is not None and not rules.OBJECT_PATH.fits(source.bucket.object_path):
        yield f"bucket.objectPath: {rules.OBJECT_PATH.message}"
    has_access = bool(source.persistent_volume_claim or source.credentials != type(source.credentials)())
    if has_access and not source.object_url:
        yield rules.ACCESS_OF_URL


def _access_problems(access: BackupSpec) -> Iterator[str]:
    url = access.destination.object_url_template
    if url:
        yield from misfits(url, rules.URL)
        yield from access_problems(access.destination)
