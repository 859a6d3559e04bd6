"""What answers of Azure Blob Storage, and failures of its SDK, mean."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from etcd_operator.storage import failures
from etcd_operator.storage.errors import AccessDenied, StoreError
from etcd_operator.storage.retries import Transient, reason

if TYPE_CHECKING:
    from azure.core.exceptions import AzureError, HttpResponseError

_NO_CONTAINER = ("ContainerNotFound", "ContainerBeingDeleted", "ContainerDisabled")


@contextmanager
def translated(subject: str, stall: float) -> Iterator[None]:
    """Exceptions of the SDK as `StoreError`, or as `Transient`; `subject` is the URL of the object.

    Causes are cut off: they contain URLs, and those of a shared access signature are credentials.
    """
    from azure.core import exceptions

    try:
        yield
    except (exceptions.IncompleteReadError, exceptions.DecodeError) as error:
        raise failures.broken(subject, reason(error), stall) from None
    except exceptions.HttpResponseError as error:
        raise _answered(error, subject, stall) from None
    except exceptions.AzureError as error:
        raise _unanswered(error, subject, stall) from None
    except OSError as error:
        raise failures.broken(subject, reason(error), stall) from None


def _answered(error: "HttpResponseError", subject: str, stall: float) -> StoreError | Transient:
    status, code = error.status_code or 0, _code(error)
    answer = f"{status} {code}".strip()
    if code in _NO_CONTAINER:
        return failures.bucket_missing(subject)
    if status == 0:  # the credential itself failed
        return _no_credentials(subject)
    if status in (409, 412) and code in ("BlobAlreadyExists", "ConditionNotMet", ""):
        return failures.name_taken(subject)
    return failures.of_status(status, subject, answer, stall)


def _code(error: "HttpResponseError") -> str:
    """The code of the service: messages repeat parts of the request."""
    code = getattr(error, "error_code", None) or ""
    return str(getattr(code, "value", code))


def _no_credentials(subject: str) -> AccessDenied:
    return AccessDenied(
        f"No usable credentials for {subject} were found. Set AZURE_STORAGE_KEY, AZURE_STORAGE_SAS_TOKEN or "
        "AZURE_STORAGE_CONNECTION_STRING, or use workload identity."
    )


def _unanswered(error: "AzureError", subject: str, stall: float) -> StoreError | Transient:
    from azure.core import exceptions

    if failures.is_untrusted(error):
        return failures.untrusted(subject, "Set REQUESTS_CA_BUNDLE to the file of its CA.")
    if isinstance(error, exceptions.ServiceResponseError):
        return failures.broken(subject, reason(error), stall)
    if isinstance(error, exceptions.ServiceRequestError):
        return failures.unreachable(subject, reason(error), stall)
    return failures.refused(subject, type(error).__name__)
