"""What answers of Google Cloud Storage, and failures of its SDK, mean."""

from collections.abc import Iterator
from contextlib import contextmanager

from etcd_operator.storage import failures
from etcd_operator.storage.errors import AccessDenied, StoreError
from etcd_operator.storage.retries import Transient, reason

_FULL = ("quotaExceeded", "storageQuotaExceeded")


@contextmanager
def translated(subject: str, stall: float) -> Iterator[None]:
    """Exceptions of the SDK as `StoreError`, or as `Transient`; `subject` is the URL of the object.

    Causes are cut off: they contain the URLs of uploads, which need no other credentials.
    """
    from google.api_core.exceptions import GoogleAPICallError
    from google.auth.exceptions import GoogleAuthError, TransportError
    from requests.exceptions import RequestException
    from urllib3.exceptions import HTTPError

    try:
        yield
    except GoogleAPICallError as error:
        raise answered(int(error.code or 0), str(error.message or ""), subject, stall) from None
    except (RequestException, TransportError, HTTPError, OSError) as error:
        raise _unanswered(error, subject, stall) from None
    except GoogleAuthError as error:
        raise AccessDenied(
            f"No usable credentials for {subject} were found ({type(error).__name__}). Mount the key of a "
            "service account and set GOOGLE_APPLICATION_CREDENTIALS, or use workload identity."
        ) from None


def answered(status: int, text: str, subject: str, stall: float) -> StoreError | Transient:
    """What an error of the service means; `text` is its message."""
    answer = f"{status} {_message(text)}"
    if any(word in text for word in _FULL):
        return failures.full(subject, answer)
    if status == 412:
        return failures.name_taken(subject)
    return failures.of_status(status, subject, answer, stall)


def _message(text: str) -> str:
    """The message without the request that the SDK puts before it, which may have a signed URL."""
    return "" if "://" in text.rpartition(": ")[2] else text.rpartition(": ")[2]


def _unanswered(error: Exception, subject: str, stall: float) -> StoreError | Transient:
    from requests.exceptions import ConnectTimeout

    if failures.is_untrusted(error):
        return failures.untrusted(subject, "Set REQUESTS_CA_BUNDLE to the file of its CA.")
    text = repr(error)
    if isinstance(error, ConnectTimeout) or "NewConnectionError" in text or "NameResolutionError" in text:
        return failures.unreachable(subject, reason(error), stall)
    return failures.broken(subject, reason(error), stall)
