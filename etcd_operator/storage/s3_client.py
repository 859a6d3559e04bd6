"""A client of S3, from the options of a URL.

The options are those that earlier etcd operators document. The SDK repeats nothing, and sends no checksum
trailers, which stores that are compatible with S3 refuse; each request is signed over its content instead.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from etcd_operator.storage.aws_files import session_values
from etcd_operator.storage.errors import InvalidURL, MissingSDK
from etcd_operator.storage.parts import Body
from etcd_operator.storage.retries import Attempts, quiet

_DEFAULT_REGION = "us-east-1"  # stores that are compatible with S3 sign for some region, mostly for this one
_ENCRYPTIONS = ("AES256", "aws:kms", "aws:kms:dsse")


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The query of an `s3://` URL; `path_style` is None for the default, which depends on the endpoint."""

    region: str = ""
    endpoint: str = ""
    path_style: bool | None = None
    disable_ssl: bool = False
    sse: str = ""
    sse_kms_key_id: str = ""

    @property
    def endpoint_url(self) -> str | None:
        """The endpoint with its scheme; None for AWS itself."""
        if not self.endpoint or "://" in self.endpoint:
            return self.endpoint or None
        return f"{'http' if self.disable_ssl else 'https'}://{self.endpoint}"

    @property
    def encryption(self) -> dict[str, str]:
        """The parameters of requests that create an object."""
        given = {"ServerSideEncryption": self.sse, "SSEKMSKeyId": self.sse_kms_key_id}
        return {name: value for name, value in given.items() if value}


def parse_options(query: Mapping[str, str]) -> Options:
    """The options of a URL; `InvalidURL` for unknown ones, and for values that have no meaning."""
    known = {"region", "endpoint", "s3ForcePathStyle", "disableSSL", "sse", "sseKMSKeyID"}
    if set(query) - known:
        raise InvalidURL(f"The URL has unknown options. An s3:// URL may have {', '.join(sorted(known))}.")
    options = Options(
        region=query.get("region", ""),
        endpoint=query.get("endpoint", "").rstrip("/"),
        path_style=_boolean(query, "s3ForcePathStyle"),
        disable_ssl=bool(_boolean(query, "disableSSL")),
        sse=query.get("sse", ""),
        sse_kms_key_id=query.get("sseKMSKeyID", ""),
    )
    _check(options)
    return options


def connect(options: Options, attempts: Attempts) -> Any:
    """A client of boto3 with credentials of the SDK's normal chain, or of `aws_files`. Sends nothing.

    Raises `InvalidURL` and `AccessDenied`.
    """
    try:
        import boto3
        import botocore.exceptions
        from botocore.config import Config
    except ImportError as error:
        raise MissingSDK("s3:// needs the Python package boto3. Install etcd-operator with it.") from error

    _check_authorities(options)
    quiet("boto3", "botocore", "urllib3")
    config = Config(
        connect_timeout=attempts.connect_timeout,
        read_timeout=attempts.read_timeout,
        retries={"total_max_attempts": 1, "mode": "standard"},
        request_checksum_calculation="when_required",
        response_checksum_validation="when_required",
        s3={"addressing_style": _addressing(options)},
    )
    try:
        given = session_values() | ({"region_name": options.region} if options.region else {})
        session = boto3.session.Session(**given)
        region = session.region_name or (_DEFAULT_REGION if options.endpoint else None)
        client = session.client("s3", region_name=region, endpoint_url=options.endpoint_url, config=config)
    except (botocore.exceptions.BotoCoreError, ValueError) as error:
        raise InvalidURL(
            f"No client of S3 can be made: {str(error).rstrip('.')}. Correct the URL or the configuration."
        ) from None
    client.meta.events.register("before-send.s3", _begin_sending)
    return client


def _begin_sending(request: Any, **_: object) -> None:
    """The body was read for the signature: from now on it is sent."""
    if isinstance(request.body, Body):
        request.body.begin_sending()


def _boolean(query: Mapping[str, str], name: str) -> bool | None:
    value = query.get(name)
    if value not in (None, "true", "false"):
        raise InvalidURL(f"The option {name} of the URL must be true or false.")
    return None if value is None else value == "true"


def _check(options: Options) -> None:
    if options.sse and options.sse not in _ENCRYPTIONS:
        raise InvalidURL(f"The option sse of the URL must be one of {', '.join(_ENCRYPTIONS)}.")
    if options.sse_kms_key_id and not options.sse.startswith("aws:kms"):
        raise InvalidURL("The option sseKMSKeyID of the URL needs sse=aws:kms.")
    if options.disable_ssl and not options.endpoint:
        raise InvalidURL("The option disableSSL of the URL needs an endpoint.")
    if options.disable_ssl and options.endpoint.startswith("https://"):
        raise InvalidURL("The option disableSSL of the URL contradicts an endpoint with https://.")
    if "@" in options.endpoint:
        raise InvalidURL("The endpoint of the URL must not contain credentials. Use the environment.")


def _addressing(options: Options) -> str:
    """Most stores that are compatible with S3 have no host names per bucket."""
    by_path = bool(options.endpoint) if options.path_style is None else options.path_style
    return "path" if by_path else "auto" if options.path_style is None else "virtual"


def _check_authorities(options: Options) -> None:
    """The SDK reports a missing file as a connection that failed, which would be repeated."""
    bundle = os.environ.get("AWS_CA_BUNDLE", "")
    is_used = not (options.endpoint_url or "").startswith("http://")
    if bundle and is_used and not os.access(bundle, os.R_OK):
        raise InvalidURL(f"AWS_CA_BUNDLE names {bundle}, which cannot be read. Correct or remove it.")
