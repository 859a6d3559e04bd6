"""The validation rules of EtcdBackup, as the API server applies them (see `definitions.cel`).

`decide.spec` has the same rules in Python, for objects that were stored under another definition.
"""

from etcd_operator.api.backups import PLACEHOLDERS, TEMPLATE_PATTERN
from etcd_operator.api.definitions.cel import Form, Validation, final, whole
from etcd_operator.api.definitions.limits import NAME_PATTERN

S3_OPTIONS = ("region", "endpoint", "s3ForcePathStyle", "disableSSL", "sse", "sseKMSKeyID")
"""The query of `s3://`, as `storage.urls` reads it."""

_EXAMPLE = "s3://my-bucket/{{ .Namespace }}/{{ .Name }}.db"
_USE_PLACEHOLDERS = "use " + ", ".join(f"{{{{ .{name} }}}}" for name in PLACEHOLDERS)
_OPTION = f"({'|'.join(S3_OPTIONS)})=[^&#]*"
_CREDENTIALS_PATTERN = "[a-z0-9]+://([^/?#]*|[^?]*[?](.*&)?endpoint=[^&#]*)@.*"

CLUSTER_URL = Form(
    pattern=r"https?://([A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(:[0-9]{1,5})?/?",
    message="must be the client URL of an etcd cluster, like http://my-cluster:2379",
)
KNOWN_PLACEHOLDERS = Form(
    pattern=TEMPLATE_PATTERN, message=f"has an unknown placeholder: {_USE_PLACEHOLDERS}"
)
SCHEME = Form(pattern="(s3|gs|file)://.*", message="must start with s3://, gs:// or file://")
DOTS = Form(
    pattern=".*/[.][.]?([/?].*)?|[^?]*%2[EeFf].*",
    forbids=True,
    message="must not contain '.' or '..' as a folder, nor %2E or %2F: write the name itself",
)
OPTIONS = Form(
    pattern=f"[^?]*|s3://[^?]*[?]{_OPTION}(&{_OPTION})*",
    message=f"has an unknown option after '?': s3:// has {', '.join(S3_OPTIONS)}; gs:// and file:// have "
    "none",
)


def url_forms(*, no_credentials: str, an_object: str) -> tuple[Form, ...]:
    """The forms of the URL of an object in a store, with two of their messages."""
    return (
        SCHEME,
        Form(pattern=_CREDENTIALS_PATTERN, forbids=True, message=no_credentials),
        Form(
            pattern="(s3|gs)://[^/?#:]+/([^/?#]+/)*[^/?#]+([?].*)?|file:///[^/?#]+([?].*)?",
            unless=f"!{whole(SCHEME.pattern)} || {whole(_CREDENTIALS_PATTERN)} || ",
            message=an_object,
        ),
        DOTS,
        OPTIONS,
    )


ONE_SOURCE = "clusterURL and clusterName are alternatives: set exactly one of them"
CLUSTER_NAME = "must be the name of an EtcdCluster in the same namespace"
TLS_SECRET = "tlsSecret belongs to https:// URLs: set it for them, and only for them"  # noqa: S105 -- a message
AUTH = "auth belongs to clusterURL: an EtcdCluster in clusterName needs none"
NO_CREDENTIALS = "must not contain credentials: remove what is before '@', and set destination.credentials"
OBJECT = (
    f"must name a bucket and an object in it, like {_EXAMPLE}, or a file, like file:///{{{{ .Name }}}}.db"
)
URL = url_forms(no_credentials=NO_CREDENTIALS, an_object=OBJECT)
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
    return (
        Validation(
            at=f"{at}.source", holds="has(self.clusterURL) != has(self.clusterName)", message=ONE_SOURCE
        ),
        CLUSTER_URL.rule(f"{at}.source.clusterURL"),
        Validation(
            at=f"{at}.source",
            holds="(has(self.clusterURL) && self.clusterURL.startsWith('https://')) == has(self.tlsSecret)",
            message=TLS_SECRET,
        ),
        Validation(at=f"{at}.source", holds="!has(self.auth) || has(self.clusterURL)", message=AUTH),
        Validation(
            at=f"{at}.source.clusterName", holds=f"self.matches('{NAME_PATTERN}')", message=CLUSTER_NAME
        ),
        *(form.rule(url) for form in (KNOWN_PLACEHOLDERS, *URL)),
        *of_access(destination, "objectURLTemplate"),
    )


def of_access(at: str, url: str, unless: str = "") -> tuple[Validation, ...]:
    """The rules of the claim and the credentials at the path `at`; they fit the URL in the field `url`.

    unless: CEL before `||`, for what has no such field.
    """
    starts = f"self.{url}.startsWith"
    return (
        Validation(
            at=at, holds=f"{unless}{starts}('file://') == has(self.persistentVolumeClaim)", message=CLAIM
        ),
        Validation(
            at=at,
            holds=f"{unless}!has(self.credentials) || ("
            f"(!has(self.credentials.aws) || {starts}('s3://')) && "
            f"(!has(self.credentials.googleCloud) || {starts}('gs://')) && "
            f"(!has(self.credentials.environment) || !{starts}('file://')))",
            message=CREDENTIALS_FIT,
        ),
    )


BACKUP = (*of_template("spec"), final(IMMUTABLE))
