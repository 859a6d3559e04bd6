"""Azure Blob Storage, with credentials from the variables that Azure's own tools use.

Blocks of an upload that failed are invisible, and the service removes them after a week.
"""

import os
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC
from functools import partial
from typing import TYPE_CHECKING, Any

from etcd_operator.storage import errors
from etcd_operator.storage.errors import (
    AccessDenied,
    MissingSDK,
    NameTaken,
    ObjectMissing,
    Stalled,
    StoreError,
    Transient,
    Unreachable,
)
from etcd_operator.storage.parts import PAGE_OBJECTS, PART_BYTES, Body, Page, Part, cut, transfer
from etcd_operator.storage.protocol import Stored, check_name
from etcd_operator.storage.retries import Attempts, quiet, reason
from etcd_operator.storage.service import BlockService

if TYPE_CHECKING:
    from azure.core.exceptions import AzureError, HttpResponseError

_WRITER_ID = "etcd_operator_upload"
_AFTERMATH_SECONDS = 10.0
_NO_CONTAINER = ("ContainerNotFound", "ContainerBeingDeleted", "ContainerDisabled")


class Azure(BlockService):
    """The objects of one container. Implements `Store`."""

    def __init__(self, container: str, *, stall: float) -> None:
        super().__init__("azblob", container, _translated, stall=stall)
        self._client = connect(container, self._attempts)

    def put(self, name: str, chunks: Iterable[bytes]) -> None:
        """See `Store.put`.

        The names of blocks contain the ID of this writer: two writers of one name never mix. After a lost
        reply the ID in the metadata shows whether the object is ours.
        """
        key, writer_id = check_name(name), uuid.uuid4().hex
        self._refuse_taken(key)
        blocks = transfer(cut(chunks, PART_BYTES), partial(self._stage, key, writer_id))
        try:
            self._run(key, partial(self._commit, key, blocks, writer_id))
        except (NameTaken, Stalled, Unreachable):
            if not self._is_ours(key, writer_id):
                raise

    def delete(self, name: str) -> None:
        """See `Store.delete`; its snapshots go with it."""
        blob = self._blob(check_name(name))
        with suppress(ObjectMissing):
            self._run(name, partial(blob.delete_blob, delete_snapshots="include"))

    def _blob(self, key: str) -> Any:
        return self._client.get_blob_client(key)

    def _look_up(self, key: str) -> tuple[Stored, Any]:
        found = self._run(key, self._blob(key).get_blob_properties)
        return _stored(found), found.etag

    def _stage(self, key: str, writer_id: str, part: Part) -> str:
        """Transfer a part; returns its block ID, "" for an empty part."""
        block_id = f"{writer_id}{part.number:06d}"
        body = Body(part.data, self._attempts.moved)

        def attempt() -> None:
            body.rewind(sending=True)
            self._blob(key).stage_block(block_id, body, length=len(part.data))

        if part.data:  # an empty object has no blocks
            self._run(key, attempt)
        return block_id if part.data else ""

    def _commit(self, key: str, block_ids: Sequence[str], writer_id: str) -> None:
        from azure.core import MatchConditions
        from azure.storage.blob import BlobBlock

        blocks = [BlobBlock(block_id) for block_id in block_ids if block_id]
        self._blob(key).commit_block_list(
            blocks, metadata={_WRITER_ID: writer_id}, match_condition=MatchConditions.IfMissing
        )

    def _is_ours(self, key: str, writer_id: str) -> bool:
        brief = Attempts(_AFTERMATH_SECONDS)
        try:
            found = self._run(key, self._blob(key).get_blob_properties, brief)
        except StoreError:
            return False
        return bool(found.metadata.get(_WRITER_ID) == writer_id)

    def _fetch(self, key: str, version: Any, begin: int, end: int) -> bytes:
        from azure.core import MatchConditions

        same = {"etag": version, "match_condition": MatchConditions.IfNotModified}
        return bytes(self._blob(key).download_blob(begin, end - begin, **same).readall())

    def _page(self, prefix: str, token: str | None) -> Page:
        found = self._client.list_blobs(
            name_starts_with=prefix or None, include=["metadata"], results_per_page=PAGE_OBJECTS
        )
        pages = found.by_page(token)
        return tuple(next(pages, ())), pages.continuation_token

    def _stored(self, item: Any) -> Stored | None:
        """Accounts with a hierarchical namespace list folders as empty objects."""
        is_folder = item.name.endswith("/") or (item.metadata or {}).get("hdi_isfolder") == "true"
        return None if is_folder else _stored(item)


def _stored(blob: Any) -> Stored:
    return Stored(name=blob.name, size=blob.size, modified=blob.last_modified.astimezone(UTC))


_CONNECTION = "AZURE_STORAGE_CONNECTION_STRING"
_ACCOUNT = "AZURE_STORAGE_ACCOUNT"


def connect(container: str, attempts: Attempts, environment: Mapping[str, str] = os.environ) -> Any:
    """A client whose SDK repeats nothing. Sends nothing."""
    try:
        from azure.storage.blob import ContainerClient
    except ImportError as error:
        raise MissingSDK(
            "azblob:// needs the Python package azure-storage-blob. Install etcd-operator[azure]."
        ) from error

    quiet("azure", "msal", "urllib3", "requests")
    options = {
        "retry_total": 0,
        "connection_timeout": attempts.connect_timeout,
        "read_timeout": attempts.read_timeout,
    }
    connection = environment.get(_CONNECTION, "")
    if not connection:
        url, credential = _url(environment), _credential(environment)
        return ContainerClient(url, container, credential=credential, **options)
    try:
        return ContainerClient.from_connection_string(connection, container, **options)
    except ValueError:
        raise AccessDenied(f"{_CONNECTION} is malformed. Copy it again from the account.") from None


def _url(environment: Mapping[str, str]) -> str:
    account = environment.get(_ACCOUNT, "")
    if not account:
        raise AccessDenied(
            f"The account of azblob:// is not known. Set {_CONNECTION}, or {_ACCOUNT} together with "
            "AZURE_STORAGE_KEY, AZURE_STORAGE_SAS_TOKEN or workload identity."
        )
    return environment.get("AZURE_STORAGE_SERVICE_ENDPOINT") or f"https://{account}.blob.core.windows.net"


def _credential(environment: Mapping[str, str]) -> Any:
    """A key, a shared access signature, or the identity of the workload."""
    key = environment.get("AZURE_STORAGE_KEY")
    if key:
        return {"account_name": environment[_ACCOUNT], "account_key": key}
    signature = environment.get("AZURE_STORAGE_SAS_TOKEN")
    if signature:
        from azure.core.credentials import AzureSasCredential

        return AzureSasCredential(signature)
    return _identity()


def _identity() -> Any:
    try:
        from azure.identity import DefaultAzureCredential
    except ImportError as error:
        raise MissingSDK(
            "Workload identity needs the Python package azure-identity. Install etcd-operator[azure]."
        ) from error
    return DefaultAzureCredential()


@contextmanager
def _translated(subject: str, stall: float) -> Iterator[None]:
    """Exceptions of the SDK as `StoreError`, or as `Transient`; `subject` is the URL of the object.

    Causes are cut off: they contain URLs, and those of a shared access signature are credentials.
    """
    from azure.core import exceptions

    try:
        yield
    except (exceptions.IncompleteReadError, exceptions.DecodeError) as error:
        raise errors.broken(subject, reason(error), stall) from None
    except exceptions.HttpResponseError as error:
        raise _answered(error, subject, stall) from None
    except exceptions.AzureError as error:
        raise _unanswered(error, subject, stall) from None
    except OSError as error:
        raise errors.broken(subject, reason(error), stall) from None


def _answered(error: "HttpResponseError", subject: str, stall: float) -> StoreError | Transient:
    status, code = error.status_code or 0, _code(error)
    answer = f"{status} {code}".strip()
    if code in _NO_CONTAINER:
        return errors.bucket_missing(subject)
    if status == 0:  # the credential itself failed
        return AccessDenied(
            f"No usable credentials for {subject} were found. Set AZURE_STORAGE_KEY, AZURE_STORAGE_SAS_TOKEN "
            "or AZURE_STORAGE_CONNECTION_STRING, or use workload identity."
        )
    if status in (409, 412) and code in ("BlobAlreadyExists", "ConditionNotMet", ""):
        return errors.name_taken(subject)
    return errors.of_status(status, subject, answer, stall)


def _code(error: "HttpResponseError") -> str:
    """The code of the service: messages repeat parts of the request."""
    code = getattr(error, "error_code", None) or ""
    return str(getattr(code, "value", code))


def _unanswered(error: "AzureError", subject: str, stall: float) -> StoreError | Transient:
    from azure.core import exceptions

    if errors.is_untrusted(error):
        return errors.untrusted(subject, "Set REQUESTS_CA_BUNDLE to the file of its CA.")
    if isinstance(error, exceptions.ServiceResponseError):
        return errors.broken(subject, reason(error), stall)
    if isinstance(error, exceptions.ServiceRequestError):
        return errors.unreachable(subject, reason(error), stall)
    return errors.refused(subject, type(error).__name__)
