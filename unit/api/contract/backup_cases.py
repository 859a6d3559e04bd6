"""EtcdBackups that are refused."""

from unit.api.contract.case import ABSENT, Case, Changes, Manifest

BACKUP: Manifest = {
    "apiVersion": "etcd.improbable.io/v1alpha1",
    "kind": "EtcdBackup",
    "metadata": {"name": "my-backup"},
    "spec": {
        "source": {"clusterURL": "http://my-cluster:2379"},
        "destination": {"objectURLTemplate": "s3://my-bucket/{{ .Namespace }}/{{ .Name }}.db"},
    },
}
URL = "spec/destination/objectURLTemplate"
_PLACEHOLDERS = (
    "has an unknown placeholder: use {{ .Name }}, {{ .Namespace }}, {{ .UID }}, {{ .CreationTimestamp }}"
)
_OBJECT = (
    "must name a bucket and an object in it, like s3://my-bucket/{{ .Namespace }}/{{ .Name }}.db, or a file, "
    "like file:///{{ .Name }}.db"
)
_OPTIONS = (
    "has an unknown option after '?': s3:// has region, endpoint, s3ForcePathStyle, disableSSL, sse, "
    "sseKMSKeyID; gs:// and file:// have none"
)
_NO_CREDENTIALS = "must not contain credentials: remove what is before '@', and set destination.credentials"
_DOTS = "must not contain '.' or '..' as a folder, nor %2E or %2F: write the name itself"
_SCHEME = "must start with s3://, gs:// or file://"
_URLS = (
    ("s3://my-bucket/{{ .Nme }}.db", _PLACEHOLDERS),
    ("s3://my-bucket/{{ .Name | upper }}.db", _PLACEHOLDERS),
    ("s3://my-bucket/{.Name}.db", _PLACEHOLDERS),
    ("http://my-bucket/one.db", _SCHEME),
    ("my-bucket/one.db", _SCHEME),
    ("s3://key:secret@my-bucket/one.db", _NO_CREDENTIALS),
    ("s3://my-bucket/one.db?endpoint=http://key:secret@minio:9000", _NO_CREDENTIALS),
    ("s3://my-bucket", _OBJECT),
    ("s3://my-bucket/folder/", _OBJECT),
    ("s3://my-bucket/../one.db", _DOTS),
    ("s3://my-bucket/folder%2Fone.db", _DOTS),
    ("s3://my-bucket/one.db?regin=eu-west-1", _OPTIONS),
    ("gs://my-bucket/one.db?region=eu-west-1", _OPTIONS),
)
_ONE_SOURCE = (
    "spec.source: Invalid value: clusterURL and clusterName are alternatives: set exactly one of them"
)
_TLS_SECRET = (
    "spec.source: Invalid value: tlsSecret belongs to https:// URLs: set it for them, and only for them"
)
_CLAIM = (
    "spec.destination: Invalid value: persistentVolumeClaim belongs to file:// URLs: set it for them, and "
    "only for them"
)
_CREDENTIALS = (
    "spec.destination: Invalid value: credentials must fit the URL: aws belongs to s3://, googleCloud to "
    "gs://, environment to both, none to file://"
)
_KEY = {"secretKeyRef": {"name": "my-secret", "key": "credentials"}}
_PLACE = "spec/destination"


def _refused(typed: str, changes: Changes, sees: str) -> Case:
    return Case(typed=typed, base=BACKUP, changes=changes, sees=sees)


def _source(name: str, value: str, message: str) -> Case:
    changes: Changes = {"spec/source": {name: value}}
    return _refused(f"{name}: {value}", changes, f'spec.source.{name}: Invalid value: "{value}": {message}')


BACKUP_CASES = (
    *(
        _refused(
            f"objectURLTemplate: {url}",
            {URL: url},
            f'spec.destination.objectURLTemplate: Invalid value: "{url}": {message}',
        )
        for url, message in _URLS
    ),
    _refused("no source", {"spec/source": {}}, _ONE_SOURCE),
    _refused("clusterURL and clusterName", {"spec/source/clusterName": "my-cluster"}, _ONE_SOURCE),
    *(
        _source(
            "clusterURL",
            url,
            "must be the client URL of an etcd cluster, like http://my-cluster:2379",
        )
        for url in ("ftp://my-cluster:2379", "my-cluster:2379")
    ),
    _refused("https:// without tlsSecret", {"spec/source": {"clusterURL": "https://etcd:2379"}}, _TLS_SECRET),
    _refused("tlsSecret with http://", {"spec/source/tlsSecret": "my-secret"}, _TLS_SECRET),
    _refused(
        "tlsSecret with clusterName",
        {"spec/source": {"clusterName": "my-cluster", "tlsSecret": "my-secret"}},
        _TLS_SECRET,
    ),
    _refused(
        "auth with clusterName",
        {"spec/source": {"clusterName": "my-cluster", "auth": {"secretName": "my-secret"}}},
        "spec.source: Invalid value: auth belongs to clusterURL: an EtcdCluster in clusterName needs none",
    ),
    _source("clusterName", "other/my-cluster", "must be the name of an EtcdCluster in the same namespace"),
    _refused("a file:// URL without a claim", {URL: "file:///{{ .Name }}.db"}, _CLAIM),
    _refused(
        "an s3:// URL with a claim", {f"{_PLACE}/persistentVolumeClaim": {"claimName": "backups"}}, _CLAIM
    ),
    _refused(
        "credentials.googleCloud for s3://", {f"{_PLACE}/credentials": {"googleCloud": _KEY}}, _CREDENTIALS
    ),
    Case(
        typed="no objectURLTemplate",
        base=BACKUP,
        changes={URL: ABSENT},
        sees="spec.destination.objectURLTemplate: Required value",
    ),
    Case(
        typed="compression: gzip",
        base=BACKUP,
        changes={"spec/compression": "gzip"},
        sees='spec.compression: Unsupported value: "gzip": supported values: "zstd"',
    ),
    Case(
        typed="verify: Full",
        base=BACKUP,
        changes={"spec/verify": "Full"},
        sees='spec.verify: Unsupported value: "Full": supported values: "Hash", "Restore"',
    ),
    Case(
        typed="an unknown field",
        base=BACKUP,
        changes={"spec/schedule": "@daily"},
        sees='unknown field "spec.schedule"',
    ),
    Case(
        typed="another URL for an existing EtcdBackup",
        base=BACKUP,
        changes={URL: "s3://my-bucket/other.db"},
        edits=True,
        sees="spec: Invalid value: Unsupported changes: an EtcdBackup is taken once: create another "
        "EtcdBackup",
    ),
)
