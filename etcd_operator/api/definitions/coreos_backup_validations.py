"""The validation rules of `spec.backup`, as the API server applies them (see `definitions.cel`).

`decide.policy` has the same rules in Python, for objects stored under another definition.
"""

from etcd_operator.api.definitions.cel import Form, Validation
from etcd_operator.api.definitions.limits import LONGEST_BACKED_UP_NAME

VOLUME_SIZE = "volumeSizeInMB is missing: set the size of the volume for backups, like 1024"
S3_FITS = "s3 belongs to storageType S3: set it for that type, and only for it"
BUCKET = Form(
    pattern="[A-Za-z0-9][A-Za-z0-9._-]{1,220}[A-Za-z0-9]",
    message="must be the name of a bucket: letters, digits, '-', '.' and '_'",
)
_FOLDER = "[A-Za-z0-9_-][A-Za-z0-9._-]*"
PREFIX = Form(
    pattern=f"{_FOLDER}(/{_FOLDER})*/?",
    message="must consist of folders like backups/etcd, without '.' or '/' at the beginning",
)
REGION = Form(pattern="[a-z0-9-]+", message="must be the name of a region, like eu-west-1")
ENDPOINT = Form(
    pattern=r"https?://([A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(:[0-9]{1,5})?/?",
    message="must be the URL of an S3 service without credentials, like https://s3.example.com:9000",
)
CLUSTER = Form(
    pattern="[a-z]([-a-z0-9]*[a-z0-9])?",
    message="must be the name of an EtcdCluster: lower-case letters, digits and '-'",
)
RESTORE_S3 = (
    "storageType S3 needs spec.backup with storageType S3: backups are restored from the bucket that it names"
)

BACKUP_POLICY = (
    Validation(
        at="",
        field=".metadata.name",
        holds="self.?spec.?backup.?maxBackups.orValue(0) == 0 || "
        f"self.metadata.name.size() <= {LONGEST_BACKED_UP_NAME}",
        message=f"must have at most {LONGEST_BACKED_UP_NAME} characters in a cluster with backups, because "
        "the name of the backup tool is derived from it: choose a shorter name, or remove spec.backup",
    ),
    Validation(
        at="spec.backup",
        holds="self.maxBackups == 0 || (has(self.storageType) && self.storageType == 'S3') || "
        "has(self.volumeSizeInMB)",
        message=VOLUME_SIZE,
    ),
    Validation(
        at="spec.backup",
        holds="has(self.s3) == (has(self.storageType) && self.storageType == 'S3')",
        message=S3_FITS,
    ),
    BUCKET.rule("spec.backup.s3.s3Bucket"),
    PREFIX.rule("spec.backup.s3.prefix"),
    REGION.rule("spec.backup.s3.region"),
    ENDPOINT.rule("spec.backup.s3.endpoint"),
    CLUSTER.rule("spec.restore.backupClusterName"),
    Validation(
        at="",
        field=".spec.restore",
        holds="self.?spec.?restore.?storageType.orValue('') != 'S3' || "
        "self.?spec.?backup.?storageType.orValue('') == 'S3'",
        message=RESTORE_S3,
    ),
    Validation(
        at="",
        field=".spec.restore",
        holds="!has(self.spec) || !has(self.spec.restore) || "
        "(has(oldSelf.spec) && has(oldSelf.spec.restore) && self.spec.restore == oldSelf.spec.restore)",
        message="a backup is restored only when the cluster is created: keep the field unchanged, remove it, "
        "or create another cluster with it",
    ),
    Validation(
        at="spec.backup",
        field=".volumeSizeInMB",
        holds="!has(self.volumeSizeInMB) || !has(oldSelf.volumeSizeInMB) || "
        "self.volumeSizeInMB >= oldSelf.volumeSizeInMB",
        message="the volume cannot become smaller: keep the earlier value",
    ),
)
