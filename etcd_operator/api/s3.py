"""A bucket of S3 in the spec of a cluster: of no API group, as a new cluster is restored from one, too."""

from etcd_operator.api.meta import Value


class S3Target(Value, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A folder of a bucket of S3, and the access to it."""

    s3_bucket: str  #: The name of the bucket, which must exist.
    prefix: str = ""  #: The folder in the bucket; objects are named PREFIX/v1/NAMESPACE/NAME/FILE.
    aws_secret: str = ""  #: A Secret with the files credentials and config as keys, as in ~/.aws.
    region: str = ""  #: The region of the bucket, if the file config does not have it.
    endpoint: str = ""  #: The URL of a service that is compatible with S3.
