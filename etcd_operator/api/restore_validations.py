"""The validation rules of EtcdRestore, as the API server applies them (see `api.cel`).

`core.restores.spec` has the same rules in Python, for objects that were stored under another definition.
"""

from etcd_operator.api import improbable
from etcd_operator.api.backup_validations import CLAIM, CREDENTIALS_FIT, DOTS, OPTIONS, SCHEME, whole
from etcd_operator.api.backups import (
    CREDENTIALS_PATTERN,
    DOTS_PATTERN,
    OBJECT_PATTERN,
    OPTIONS_PATTERN,
    SCHEME_PATTERN,
)
from etcd_operator.api.cel import Validation, reserved
from etcd_operator.api.limits import LONGEST_IMPROBABLE_NAME, LONGEST_LABEL, NAME_PATTERN, VERSION_PATTERN
from etcd_operator.api.restores import BUCKET_PATTERN, OBJECT_PATH_PATTERN
from etcd_operator.api.validations import storage_size
from etcd_operator.api.version_validations import SUPPORTED

ONE_SOURCE = "bucket, objectURL and backupName are alternatives: set exactly one of them"
BUCKET_URL = "must name a bucket only, like gs://my-bucket or s3://my-bucket?region=eu-west-1"
OBJECT_PATH = "must be the path of an object in the bucket, like backups/my-backup.db"
OBJECT = (
    "must name a bucket and an object in it, like s3://my-bucket/my-backup.db, or a file, like file:///my.db"
)
NO_CREDENTIALS = "must not contain credentials: remove what is before '@', and set source.credentials"
ACCESS_OF_URL = "credentials and persistentVolumeClaim belong to objectURL: a bucket has its own credentials"
CLUSTER_NAME = (
    "must be the name of the new EtcdCluster: it starts with a letter, contains only lower-case letters, "
    f"digits and '-', and has at most {LONGEST_IMPROBABLE_NAME} characters"
)
NAME_LENGTH = (
    f"must have at most {LONGEST_LABEL} characters, because it is the value of a label: choose a shorter name"
)
IMMUTABLE = "Unsupported changes: an EtcdRestore is carried out once: create another EtcdRestore"

TEMPLATE = "spec.clusterTemplate.spec"
_CLAIM_TEMPLATE = f"{TEMPLATE}.storage.volumeClaimTemplate"
_PREFIX = f"k.startsWith('{improbable.RESERVED_PREFIX}')"
_STARTS = "self.objectURL.startsWith"

_SOURCE = (
    Validation(
        name="one-source",
        at="spec.source",
        holds="[has(self.bucket), has(self.objectURL), has(self.backupName)].filter(x, x).size() == 1",
        message=ONE_SOURCE,
    ),
    Validation(
        name="access-of-url",
        at="spec.source",
        holds="has(self.objectURL) || (!has(self.credentials) && !has(self.persistentVolumeClaim))",
        message=ACCESS_OF_URL,
    ),
    Validation(
        name="bucket-url", at="spec.source.bucket.bucketURL", holds=whole(BUCKET_PATTERN), message=BUCKET_URL
    ),
    Validation(
        name="object-path",
        at="spec.source.bucket.objectPath",
        holds=f"{whole(OBJECT_PATH_PATTERN)} && !{whole('(.*/)?[.][.]?(/.*)?|.*%2[EeFf].*')}",
        message=OBJECT_PATH,
    ),
    Validation(
        name="bucket-credentials",
        at="spec.source.bucket",
        holds="!has(self.credentials) || ("
        "(!has(self.credentials.aws) || self.bucketURL.startsWith('s3://')) && "
        "(!has(self.credentials.googleCloud) || self.bucketURL.startsWith('gs://')))",
        message=CREDENTIALS_FIT,
    ),
    *(
        Validation(name=name, at="spec.source.objectURL", holds=holds, message=message)
        for name, holds, message in (
            ("scheme", whole(SCHEME_PATTERN), SCHEME),
            ("no-credentials", f"!{whole(CREDENTIALS_PATTERN)}", NO_CREDENTIALS),
            (
                "object",
                f"!{whole(SCHEME_PATTERN)} || {whole(CREDENTIALS_PATTERN)} || {whole(OBJECT_PATTERN)}",
                OBJECT,
            ),
            ("no-dots", f"!{whole(DOTS_PATTERN)}", DOTS),
            ("options", whole(OPTIONS_PATTERN), OPTIONS),
        )
    ),
    Validation(
        name="claim",
        at="spec.source",
        holds=f"!has(self.objectURL) || {_STARTS}('file://') == has(self.persistentVolumeClaim)",
        message=CLAIM,
    ),
    Validation(
        name="credentials-fit",
        at="spec.source",
        holds="!has(self.objectURL) || !has(self.credentials) || ("
        f"(!has(self.credentials.aws) || {_STARTS}('s3://')) && "
        f"(!has(self.credentials.googleCloud) || {_STARTS}('gs://')) && "
        f"(!has(self.credentials.environment) || !{_STARTS}('file://')))",
        message=CREDENTIALS_FIT,
    ),
)

RESTORE = (
    Validation(
        name="name-length",
        at="",
        field=".metadata.name",
        holds=f"self.metadata.name.size() <= {LONGEST_LABEL}",
        message=NAME_LENGTH,
    ),
    *_SOURCE,
    Validation(
        name="cluster-name",
        at="spec.clusterTemplate.clusterName",
        holds=f"self.matches('{NAME_PATTERN}') && self.size() <= {LONGEST_IMPROBABLE_NAME}",
        message=CLUSTER_NAME,
    ),
    Validation(
        name="version-supported",
        at=f"{TEMPLATE}.version",
        holds=f"self.matches('{VERSION_PATTERN}')",
        message=f"the version {SUPPORTED}",
    ),
    storage_size(_CLAIM_TEMPLATE),
    reserved(
        f"{TEMPLATE}.podTemplate.metadata.annotations",
        _PREFIX,
        f"annotations that begin with {improbable.RESERVED_PREFIX} are",
    ),
    reserved(
        f"{TEMPLATE}.podTemplate.metadata.labels",
        f"{_PREFIX} || k == 'app.kubernetes.io/name'",
        f"app.kubernetes.io/name and labels that begin with {improbable.RESERVED_PREFIX} are",
    ),
    Validation(
        name="one-affinity",
        at=TEMPLATE,
        holds="!has(self.affinity) || !has(self.podTemplate) || !has(self.podTemplate.affinity)",
        message="affinity and podTemplate.affinity are alternatives: set one of them",
    ),
    Validation(name="immutable", at="spec", holds="self == oldSelf", message=IMMUTABLE),
)
