"""A bucket of S3 in the spec of a cluster: of no API group, as a new cluster is restored from one, too."""

from etcd_operator.api.meta import Value


class S3Target(Value, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where backups go in S3.

    prefix: of the names of all objects. aws_secret: a Secret with the keys `credentials` and, optional,
    `config`, in the format of the files in ~/.aws; empty for an identity that the platform gives.
    region, endpoint: as the options of `s3://` (docs/backup.md); empty for those in the file `config`.
    """

    s3_bucket: str
    prefix: str = ""
    aws_secret: str = ""
    region: str = ""
    endpoint: str = ""
