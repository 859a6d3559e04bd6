"""The validation rules of EtcdRestore, as the API server applies them (see `definitions.cel`).

`decide.spec` has the same rules in Python, for objects that were stored under another definition.
"""

from etcd_operator.api.definitions.backup_validations import CREDENTIALS_FIT, of_access, url_forms
from etcd_operator.api.definitions.cel import Form, Validation, final, name_length, one_affinity, whole
from etcd_operator.api.definitions.limits import (
    LONGEST_IMPROBABLE_NAME,
    LONGEST_LABEL,
    NAME_LENGTH,
    NAME_PATTERN,
    VERSION_PATTERN,
)
from etcd_operator.api.definitions.tls_validations import of_auth, of_tls
from etcd_operator.api.definitions.validations import (
    empty_volumes,
    network_peers,
    reserved_names,
    storage_size,
)
from etcd_operator.api.definitions.version_validations import EXPLAINED, SUPPORTED

ONE_SOURCE = "bucket, objectURL and backupName are alternatives: set exactly one of them"
BUCKET_URL = Form(
    pattern="(s3|gs)://[^/?#:@]+/?([?].*)?",
    message="must name a bucket only, like gs://my-bucket or s3://my-bucket?region=eu-west-1",
)
OBJECT_PATH = Form(
    pattern="([^/?#]+/)*[^/?#]+",
    message="must be the path of an object in the bucket, like backups/my-backup.db",
)
_NO_DOTS = f"!{whole('(.*/)?[.][.]?(/.*)?|.*%2[EeFf].*')}"
URL = url_forms(
    no_credentials="must not contain credentials: remove what is before '@', and set source.credentials",
    an_object="must name a bucket and an object in it, like s3://my-bucket/my-backup.db, or a file, like "
    "file:///my.db",
)
ACCESS_OF_URL = "credentials and persistentVolumeClaim belong to objectURL: a bucket has its own credentials"
CLUSTER_NAME = (
    "must be the name of the new EtcdCluster: it starts with a letter, contains only lower-case letters, "
    f"digits and '-', and has at most {LONGEST_IMPROBABLE_NAME} characters"
)
IMMUTABLE = "Unsupported changes: an EtcdRestore is carried out once: create another EtcdRestore"

TEMPLATE = "spec.clusterTemplate.spec"
_CLAIM_TEMPLATE = f"{TEMPLATE}.storage.volumeClaimTemplate"

_SOURCE = (
    Validation(
        at="spec.source",
        holds="[has(self.bucket), has(self.objectURL), has(self.backupName)].filter(x, x).size() == 1",
        message=ONE_SOURCE,
    ),
    Validation(
        at="spec.source",
        holds="has(self.objectURL) || (!has(self.credentials) && !has(self.persistentVolumeClaim))",
        message=ACCESS_OF_URL,
    ),
    BUCKET_URL.rule("spec.source.bucket.bucketURL"),
    Validation(
        at="spec.source.bucket.objectPath",
        holds=f"{whole(OBJECT_PATH.pattern)} && {_NO_DOTS}",
        message=OBJECT_PATH.message,
    ),
    Validation(
        at="spec.source.bucket",
        holds="!has(self.credentials) || ("
        "(!has(self.credentials.aws) || self.bucketURL.startsWith('s3://')) && "
        "(!has(self.credentials.googleCloud) || self.bucketURL.startsWith('gs://')))",
        message=CREDENTIALS_FIT,
    ),
    *(form.rule("spec.source.objectURL") for form in URL),
    *of_access("spec.source", "objectURL", unless="!has(self.objectURL) || "),
)

RESTORE = (
    name_length(LONGEST_LABEL, NAME_LENGTH),
    *_SOURCE,
    Validation(
        at="spec.clusterTemplate.clusterName",
        holds=f"self.matches('{NAME_PATTERN}') && self.size() <= {LONGEST_IMPROBABLE_NAME}",
        message=CLUSTER_NAME,
    ),
    Validation(
        at=f"{TEMPLATE}.version",
        holds=f"self.matches('{VERSION_PATTERN}')",
        message=f"the version {SUPPORTED}",
        explain=EXPLAINED,
    ),
    storage_size(_CLAIM_TEMPLATE),
    *empty_volumes(_CLAIM_TEMPLATE),
    *reserved_names(f"{TEMPLATE}.podTemplate"),
    *of_tls(f"{TEMPLATE}.tls"),
    *of_auth(TEMPLATE),
    *network_peers(TEMPLATE),
    one_affinity(TEMPLATE, "affinity and podTemplate.affinity are alternatives: set one of them"),
    final(IMMUTABLE),
)
