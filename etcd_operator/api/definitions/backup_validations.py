"""The validation rules of EtcdBackup, as the API server applies them (see `definitions.cel`).

`decide.spec` has the same rules in Python, for objects that were stored under another definition.
"""

from etcd_operator.api.backups import (
    CLUSTER_URL_PATTERN,
    CREDENTIALS_PATTERN,
    DOTS_PATTERN,
    OBJECT_PATTERN,
    OPTIONS_PATTERN,
    PLACEHOLDERS,
    S3_OPTIONS,
    SCHEME_PATTERN,
    TEMPLATE_PATTERN,
)
from etcd_operator.api.definitions.cel import Validation, final, whole
from etcd_operator.api.definitions.limits import NAME_PATTERN

_EXAMPLE = "s3://my-bucket/{{ .Namespace }}/{{ .Name }}.db"
USE_PLACEHOLDERS = "use " + ", ".join(f"{{{{ .{name} }}}}" for name in PLACEHOLDERS)
ONE_SOURCE = "clusterURL and clusterName are alternatives: set exactly one of them"
CLUSTER_URL = "must be the client URL of an etcd cluster without TLS, like http://my-cluster:2379"
CLUSTER_NAME = "must be the name of an EtcdCluster in the same namespace"
UNKNOWN_PLACEHOLDER = f"has an unknown placeholder: {USE_PLACEHOLDERS}"
SCHEME = "must start with s3://, gs:// or file://"
NO_CREDENTIALS = "must not contain credentials: remove what is before '@', and set destination.credentials"
OBJECT = (
    f"must name a bucket and an object in it, like {_EXAMPLE}, or a file, like file:///{{{{ .Name }}}}.db"
)
DOTS = "must not contain '.' or '..' as a folder, nor %2E or %2F: write the name itself"
OPTIONS = f"has an unknown option after '?': s3:// has {', '.join(S3_OPTIONS)}; gs:// and file:// have none"
CLAIM = "persistentVolumeClaim belongs to file:// URLs: set it for them, and only for them"
CREDENTIALS_FIT = (
    "credentials must fit the URL: aws belongs to s3://, googleCloud to gs://, environment to both, "
    "none to file://"
)
IMMUTABLE = "Unsupported changes: an EtcdBackup is taken once: create another EtcdBackup"


def of_template(at: str) -> tuple[Validation, ...]:
    """The rules of an EtcdBackup's spec, which is at the path `at`."""
    destination = f"{at}.destination"
    url = f"{destination}.objectURLTemplate"
    placeholders = Validation(
        name="placeholders", at=url, holds=whole(TEMPLATE_PATTERN), message=UNKNOWN_PLACEHOLDER
    )
    return (
        *_of_source(f"{at}.source"),
        placeholders,
        *of_url(url, no_credentials=NO_CREDENTIALS, an_object=OBJECT),
        *of_access(destination, "objectURLTemplate"),
    )


def _of_source(at: str) -> tuple[Validation, ...]:
    return (
        Validation(
            name="one-source",
            at=at,
            holds="has(self.clusterURL) != has(self.clusterName)",
            message=ONE_SOURCE,
        ),
        Validation(
            name="cluster-url",
            at=f"{at}.clusterURL",
            holds=whole(CLUSTER_URL_PATTERN),
            message=CLUSTER_URL,
        ),
        Validation(
            name="cluster-name",
            at=f"{at}.clusterName",
            holds=f"self.matches('{NAME_PATTERN}')",
            message=CLUSTER_NAME,
        ),
    )


def of_url(at: str, *, no_credentials: str, an_object: str) -> tuple[Validation, ...]:
    """The rules of the URL of an object in a store, which is at the path `at`, with two of their messages."""
    return (
        Validation(name="scheme", at=at, holds=whole(SCHEME_PATTERN), message=SCHEME),
        Validation(
            name="no-credentials", at=at, holds=f"!{whole(CREDENTIALS_PATTERN)}", message=no_credentials
        ),
        Validation(
            name="object",
            at=at,
            # The other rules report more about these.
            holds=f"!{whole(SCHEME_PATTERN)} || {whole(CREDENTIALS_PATTERN)} || {whole(OBJECT_PATTERN)}",
            message=an_object,
        ),
        Validation(name="no-dots", at=at, holds=f"!{whole(DOTS_PATTERN)}", message=DOTS),
        Validation(name="options", at=at, holds=whole(OPTIONS_PATTERN), message=OPTIONS),
    )


def of_access(at: str, url: str, unless: str = "") -> tuple[Validation, ...]:
    """The rules of the claim and the credentials at the path `at`; they fit the URL in the field `url`.

    unless: CEL before `||`, for what has no such field.
    """
    starts = f"self.{url}.startsWith"
    return (
        Validation(
            name="claim",
            at=at,
            holds=f"{unless}{starts}('file://') == has(self.persistentVolumeClaim)",
            message=CLAIM,
        ),
        Validation(
            name="credentials-fit",
            at=at,
            holds=f"{unless}!has(self.credentials) || ("
            f"(!has(self.credentials.aws) || {starts}('s3://')) && "
            f"(!has(self.credentials.googleCloud) || {starts}('gs://')) && "
            f"(!has(self.credentials.environment) || !{starts}('file://')))",
            message=CREDENTIALS_FIT,
        ),
    )


BACKUP = (
    *of_template("spec"),
    final(IMMUTABLE),
)
