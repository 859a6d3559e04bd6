"""EtcdRestores that are refused."""

from unit.api.contract.case import (
    ABSENT,
    LONG,
    NO_VERSION,
    PERSISTENT,
    Case,
    Changes,
    Manifest,
    empty_volumes,
)
from unit.api.contract.network_cases import networks
from unit.api.contract.tls_cases import (
    AUTH_ISSUES,
    BOTH,
    DURATION,
    EITHER_KEY,
    ISSUED,
    ISSUED_SUITES,
    NOT_DISABLED,
    OF_ISSUERS,
    ONLY_AUTO,
    OPERATOR,
    OWN_CLIENT,
    OWN_NAMES,
    OWN_SUITES,
    SOURCE,
    SUITES_VERSION,
)

RESTORE: Manifest = {
    "apiVersion": "etcd.improbable.io/v1alpha1",
    "kind": "EtcdRestore",
    "metadata": {"name": "my-restore"},
    "spec": {
        "source": {"objectURL": "s3://my-bucket/one.db"},
        "clusterTemplate": {
            "clusterName": "my-cluster",
            "spec": {"replicas": 3, "storage": PERSISTENT["spec"]["storage"]},
        },
    },
}
_URL = "spec/source/objectURL"
_TEMPLATE = "spec/clusterTemplate/spec"
_AT = "spec.clusterTemplate.spec"
_ONE = (
    "spec.source: Invalid value: bucket, objectURL and backupName are alternatives: set exactly one of them"
)
_OBJECT = (
    "must name a bucket and an object in it, like s3://my-bucket/my-backup.db, or a file, like file:///my.db"
)
_OPTIONS = (
    "has an unknown option after '?': s3:// has region, endpoint, s3ForcePathStyle, disableSSL, sse, "
    "sseKMSKeyID; gs:// and file:// have none"
)
_BUCKET = "must name a bucket only, like gs://my-bucket or s3://my-bucket?region=eu-west-1"
_PATH = "must be the path of an object in the bucket, like backups/my-backup.db"
_NAME = (
    "must be the name of the new EtcdCluster: it starts with a letter, contains only lower-case letters, "
    "digits and '-', and has at most 58 characters"
)
_FIT = (
    "credentials must fit the URL: aws belongs to s3://, googleCloud to gs://, environment to both, none to "
    "file://"
)
_URLS = (
    ("http://my-bucket/one.db", "must start with s3://, gs:// or file://"),
    (
        "s3://key:secret@my-bucket/one.db",
        "must not contain credentials: remove what is before '@', and set source.credentials",
    ),
    ("s3://my-bucket", _OBJECT),
    (
        "s3://my-bucket/../one.db",
        "must not contain '.' or '..' as a folder, nor %2E or %2F: write the name itself",
    ),
    ("gs://my-bucket/one.db?region=eu-west-1", _OPTIONS),
)
_KEY = {"secretKeyRef": {"name": "my-secret", "key": "credentials"}}


def _refused(typed: str, changes: Changes, sees: str) -> Case:
    return Case(typed=typed, base=RESTORE, changes=changes, sees=sees)


def _bucket(field: str, value: str, message: str) -> Case:
    bucket = {"bucketURL": "gs://my-bucket", "objectPath": "one.db", field: value}
    sees = f'spec.source.bucket.{field}: Invalid value: "{value}": {message}'
    return _refused(f"{field}: {value}", {"spec/source": {"bucket": bucket}}, sees)


RESTORE_CASES = (
    _refused("no source", {"spec/source": {}}, _ONE),
    _refused("objectURL and backupName", {"spec/source/backupName": "my-backup"}, _ONE),
    _refused(
        "credentials and backupName",
        {"spec/source": {"backupName": "my-backup", "credentials": {"aws": _KEY}}},
        "spec.source: Invalid value: credentials and persistentVolumeClaim belong to objectURL: a bucket has "
        "its own credentials",
    ),
    *(
        _refused(
            f"objectURL: {url}", {_URL: url}, f'spec.source.objectURL: Invalid value: "{url}": {message}'
        )
        for url, message in _URLS
    ),
    _bucket("bucketURL", "http://my-bucket", _BUCKET),
    _bucket("bucketURL", "gs://my-bucket/folder", _BUCKET),
    _bucket("objectPath", "/one.db", _PATH),
    _bucket("objectPath", "../one.db", _PATH),
    _refused(
        "aws credentials for gs://",
        {
            "spec/source": {
                "bucket": {"bucketURL": "gs://b", "objectPath": "one.db", "credentials": {"aws": _KEY}}
            }
        },
        f"spec.source.bucket: Invalid value: {_FIT}",
    ),
    _refused(
        "googleCloud credentials for s3://",
        {"spec/source/credentials": {"googleCloud": _KEY}},
        f"spec.source: Invalid value: {_FIT}",
    ),
    _refused(
        "file:// without persistentVolumeClaim",
        {_URL: "file:///one.db"},
        "spec.source: Invalid value: persistentVolumeClaim belongs to file:// URLs: set it for them, and "
        "only for them",
    ),
    _refused(
        "clusterName: My-Cluster",
        {"spec/clusterTemplate/clusterName": "My-Cluster"},
        f'spec.clusterTemplate.clusterName: Invalid value: "My-Cluster": {_NAME}',
    ),
    _refused(
        "a name of 64 characters",
        {"metadata/name": "n" * 64},
        "metadata.name: Invalid value: must have at most 63 characters, because it is the value of a label: "
        "choose a shorter name",
    ),
    _refused(
        "version: 3.3.0",
        {f"{_TEMPLATE}/version": "3.3.0"},
        f'{_AT}.version: Invalid value: "3.3.0": "3.3.0" {NO_VERSION}',
    ),
    _refused(
        "storage: 0",
        {f"{_TEMPLATE}/storage/volumeClaimTemplate/resources/requests/storage": 0},
        f"{_AT}.storage.volumeClaimTemplate.resources.requests: Invalid value: storage must be greater than "
        "0: set the size of each member's volume, like 8Gi",
    ),
    *networks(RESTORE, _TEMPLATE),
    *empty_volumes(RESTORE, f"{_TEMPLATE}/storage/volumeClaimTemplate"),
    *(
        _refused(
            f"a reserved name in {field}",
            {f"{_TEMPLATE}/podTemplate/metadata/{field}": {"etcd.improbable.io/x": "y"}},
            f"{_AT}.podTemplate.metadata.{field}: Invalid value: {what} that begin with etcd.improbable.io/ "
            "are reserved for the operator: remove them",
        )
        for field, what in (
            ("annotations", "annotations"),
            ("labels", "app.kubernetes.io/name, etcd_cluster, etcd_node and labels"),
        )
    ),
    _refused(
        "annotations of 20480 characters",
        {f"{_TEMPLATE}/podTemplate/metadata/annotations": LONG},
        f"{_AT}.podTemplate.metadata.annotations: Invalid value: annotations of pods have at most 16384 "
        "characters together: shorten them",
    ),
    _refused(
        "affinity in both places",
        {f"{_TEMPLATE}/affinity": {}, f"{_TEMPLATE}/podTemplate/affinity": {}},
        f"{_AT}: Invalid value: affinity and podTemplate.affinity are alternatives: set one of them",
    ),
    _refused(
        "tls: {}",
        {f"{_TEMPLATE}/tls": {}},
        f"{_AT}.tls: Invalid value: set peer, client or both; without TLS, remove spec.tls",
    ),
    *(
        _refused(
            f"tls.{side}: {{}}",
            {f"{_TEMPLATE}/tls": {side: {}}},
            f"{_AT}.tls.{side}: Invalid value: {SOURCE}",
        )
        for side in BOTH
    ),
    *(
        _refused(
            f"tls.{side}.{field}: forever",
            {f"{_TEMPLATE}/tls": {side: {"auto": {}, field: "forever"}}},
            f'{_AT}.tls.{side}.{field}: Invalid value: "forever": {DURATION}',
        )
        for side in BOTH
        for field in ("leafDuration", "caDuration")
    ),
    *(
        _refused(
            f"tls.{side}.secretRef with leafDuration",
            {f"{_TEMPLATE}/tls": {side: {"secretRef": {"name": "own"}, "leafDuration": "90d"}}},
            f"{_AT}.tls.{side}: Invalid value: {ONLY_AUTO}",
        )
        for side in BOTH
    ),
    *(
        _refused(
            f"tls.{side}.certManager with {what}",
            {f"{_TEMPLATE}/tls": {side: {**ISSUED, **more}}},
            f"{_AT}.tls.{side}{field}: Invalid value: {message}",
        )
        for side in BOTH
        for what, more, field, message in OF_ISSUERS
    ),
    _refused(
        "tls.client.secretRef alone",
        {f"{_TEMPLATE}/tls": {"client": {"secretRef": {"name": "own"}}}},
        f"{_AT}.tls.client: Invalid value: {OPERATOR}",
    ),
    _refused(
        "tls.client.secretRef with the mode Disabled",
        {f"{_TEMPLATE}/tls": {"client": {**OWN_CLIENT, "mode": "Disabled"}}},
        f"{_AT}.tls.client: Invalid value: {NOT_DISABLED}",
    ),
    _refused(
        "tls.client.secretRef with extraIPs",
        {f"{_TEMPLATE}/tls": {"client": {**OWN_CLIENT, "extraIPs": ["192.0.2.7"]}}},
        f"{_AT}.tls.client: Invalid value: {OWN_NAMES}",
    ),
    *(
        _refused(
            f"tls.client.cipherSuites {what}",
            {f"{_TEMPLATE}/tls": {"client": {**client, "cipherSuites": EITHER_KEY[:1]}}},
            f"{_AT}.tls.client: Invalid value: {message}",
        )
        for what, client, message in (
            ("with minVersion: TLS1.3", {"auto": {}, "minVersion": "TLS1.3"}, SUITES_VERSION),
            ("with secretRef: ECDSA only", OWN_CLIENT, OWN_SUITES),
        )
    ),
    _refused(
        "tls.client.cipherSuites with auto: RSA and ECDSA",
        {f"{_TEMPLATE}/tls": {"client": {"auto": {}, "cipherSuites": EITHER_KEY}}},
        f"{_AT}.tls.client: Invalid value: {ISSUED_SUITES}",
    ),
    _refused(
        "auth with tls.client.secretRef",
        {f"{_TEMPLATE}/tls": {"client": OWN_CLIENT}, f"{_TEMPLATE}/auth": {"enabled": True}},
        f"{_AT}.auth: Invalid value: {AUTH_ISSUES}",
    ),
    _refused(
        "auth without tls.client",
        {f"{_TEMPLATE}/auth": {"enabled": True}},
        f"{_AT}.auth: Invalid value: authentication needs tls.client with clientCertAuth and mode "
        "Require: set these, or enabled: false",
    ),
    _refused("no storage", {f"{_TEMPLATE}/storage": ABSENT}, f"{_AT}.storage: Required value"),
    Case(
        typed="another source of an existing EtcdRestore",
        base=RESTORE,
        changes={_URL: "s3://my-bucket/two.db"},
        edits=True,
        sees="spec: Invalid value: Unsupported changes: an EtcdRestore is carried out once: create another "
        "EtcdRestore",
    ),
)
