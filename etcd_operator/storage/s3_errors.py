"""What answers of S3, and failures of its SDK, mean."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from etcd_operator.storage import errors
from etcd_operator.storage.errors import AccessDenied, StoreError, Transient
from etcd_operator.storage.retries import reason

_DENIED = ("ExpiredToken", "InvalidToken", "InvalidAccessKeyId")
_FULL = ("QuotaExceeded", "XMinioStorageFull", "InsufficientStorage", "StorageFull")
_BUSY = ("OperationAborted", "SlowDown", "RequestTimeout", "Throttling", "InternalError")
_ELSEWHERE = ("PermanentRedirect", "TemporaryRedirect", "AuthorizationHeaderMalformed")


class Unsupported(StoreError):
    """The store does not implement the request, or a header of it (HTTP 501)."""


class DigestRequired(StoreError):
    """The bucket takes no object without a digest, as one with Object Lock does."""


class BehindEnd(StoreError):
    """The object has no bytes at that offset (HTTP 416)."""


@contextmanager
def translated(subject: str, stall: float) -> Iterator[None]:
    """Exceptions of the SDK as `StoreError`, or as `Transient`; `subject` is the URL of the object."""
    from botocore import exceptions

    try:
        yield
    except exceptions.ClientError as error:
        raise _answered(error.response, subject, stall) from None
    except (exceptions.NoCredentialsError, exceptions.PartialCredentialsError):
        raise AccessDenied(
            f"No credentials for {subject} were found. Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or "
            "mount a credentials file and set AWS_SHARED_CREDENTIALS_FILE."
        ) from None
    except exceptions.CredentialRetrievalError:
        raise AccessDenied(
            f"The credentials for {subject} could not be retrieved. Check the source of the credentials."
        ) from None
    except _broken() as error:
        raise _unanswered(error, subject, stall) from None
    except (
        RecursionError
    ):  # the SDK asks for the region of the bucket, is redirected, asks for the region ...
        raise _elsewhere(subject) from None
    except exceptions.BotoCoreError as error:
        raise errors.refused(subject, type(error).__name__) from None


def expect(reply: Mapping[str, Any], name: str, subject: str) -> Any:
    """A field of an answer; `StoreError` if it is not there: no S3 listens at the endpoint."""
    if name not in reply:
        raise errors.refused(subject, f"its answer has no {name}, which S3 always sends")
    return reply[name]


def _answered(response: Mapping[str, Any], subject: str, stall: float) -> StoreError | Transient:
    error = response.get("Error", {})
    code = str(error.get("Code", ""))
    status = int(response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))
    answer = f"{status} {code}" if str(status) != code else code
    known = _refusal(code, status, subject, f"{answer}, {error.get('Message', '')}")
    if known is not None:
        return known
    if status >= 500 or status == 429 or code in _BUSY:
        return errors.busy(subject, answer, stall)
    return errors.refused(subject, f"{answer}, {error.get('Message', '')}")


def _refusal(code: str, status: int, subject: str, answer: str) -> StoreError | None:
    """The answers that another attempt does not change."""
    if code == "NoSuchBucket":
        return errors.bucket_missing(subject)
    if code == "NoSuchUpload":
        return StoreError(f"The upload to {subject} was aborted by someone else. Try again.")
    if code in _ELSEWHERE:
        return _elsewhere(subject)
    if status in (401, 403) or code in _DENIED:
        return errors.denied(subject, answer)
    if status == 412 or code == "ConditionalRequestConflict":
        return errors.name_taken(subject)
    return _rarer_refusal(code, status, subject, answer)


def _elsewhere(subject: str) -> StoreError:
    return StoreError(
        f"The store redirects requests for {subject}: the bucket is in another region, or the endpoint is "
        "wrong. Set region= or correct endpoint= in the URL."
    )


def _rarer_refusal(code: str, status: int, subject: str, answer: str) -> StoreError | None:
    if status == 404:
        return errors.not_found(subject)
    if status == 507 or code in _FULL:
        return errors.full(subject, answer)
    if status == 400 and "Content-MD5" in answer:
        return DigestRequired(f"The store wants a digest for {subject}: {errors.one_line(answer)}.")
    if status == 400 and code in ("400", "BadRequest"):  # answers to HEAD have no text
        return StoreError(
            f"The store refused the request for {subject}, and gives no reason ({errors.one_line(answer)}). "
            "The bucket may be in another region: set region= in the URL."
        )
    if status == 416:
        return BehindEnd(f"{subject} has fewer bytes.")
    if status == 501:
        return Unsupported(f"The store does not implement the request for {subject}: {code}.")
    return None


def _broken() -> tuple[type[Exception], ...]:
    """What the SDK raises if a connection cannot be made, breaks, hangs, or ends too early."""
    from botocore import exceptions
    from urllib3.exceptions import HTTPError

    ended = exceptions.IncompleteReadError
    return exceptions.HTTPClientError, exceptions.ConnectionError, ended, HTTPError, OSError


def _unanswered(error: Exception, subject: str, stall: float) -> StoreError | Transient:
    from botocore import exceptions

    if isinstance(error, exceptions.SSLError) and errors.is_untrusted(error):
        advice = "Set AWS_CA_BUNDLE to the file of its CA, or disableSSL=true for a store without TLS."
        return errors.untrusted(subject, advice)
    no_connection = (
        exceptions.EndpointConnectionError,
        exceptions.ConnectTimeoutError,
        exceptions.ProxyConnectionError,
    )
    failure = errors.unreachable if isinstance(error, no_connection) else errors.broken
    return failure(subject, reason(error), stall)
