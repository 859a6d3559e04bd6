"""Azure Blob Storage, with credentials from the variables that Azure's own tools use.

Blocks of an upload that failed are invisible, and the service removes them after a week.
"""

import os
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC
from functools import partial
from typing import Any, TypeVar

from etcd_operator.storage import failures
from etcd_operator.storage.azure_errors import translated
from etcd_operator.storage.errors import (
    AccessDenied,
    MissingSDK,
    NameTaken,
    ObjectMissing,
    Stalled,
    StoreError,
    Unreachable,
)
from etcd_operator.storage.names import check_name, check_prefix
from etcd_operator.storage.parts import (
    PAGE_OBJECTS,
    PART_BYTES,
    Body,
    Page,
    Part,
    blocks,
    cut,
    paged,
    transfer,
)
from etcd_operator.storage.protocol import Stored
from etcd_operator.storage.retries import Attempts, quiet

Result = TypeVar("Result")

_WRITER_ID = "etcd_operator_upload"
_AFTERMATH_SECONDS = 10.0


class Azure:
    """The objects of one container. Implements `Store`."""

    def __init__(self, container: str, *, stall: float) -> None:
        self._name = container
        self._attempts = Attempts(stall)
        self._client = connect(container, self._attempts)

    def __repr__(self) -> str:
        return f"Azure({self._name!r})"

    def put(self, name: str, chunks: Iterable[bytes]) -> None:
        """See `Store.put`.

        The names of blocks contain the ID of this writer: two writers of one name never mix. After a lost
        reply the ID in the metadata shows whether the object is ours.
        """
        key, writer_id = check_name(name), uuid.uuid4().hex
        if self._exists(key):
            raise failures.name_taken(self._url(key))
        blocks = transfer(cut(chunks, PART_BYTES), partial(self._stage, key, writer_id))
        try:
            self._run(key, partial(self._commit, key, blocks, writer_id))
        except (NameTaken, Stalled, Unreachable):
            if not self._is_ours(key, writer_id):
                raise

    def read(self, name: str, offset: int = 0) -> Iterator[bytes]:
        """See `Store.read`."""
        found = self._properties(check_name(name))
        block = partial(self._block, name, found.etag)
        yield from blocks(lambda begin, end: self._run(name, partial(block, begin, end)), offset, found.size)

    def list(self, prefix: str) -> Iterator[Stored]:
        """See `Store.list`."""
        below = check_prefix(prefix)
        blobs = paged(lambda token: self._run(prefix, partial(self._page, below, token)))
        yield from (_stored(blob) for blob in blobs if not _is_folder(blob))

    def stat(self, name: str) -> Stored | None:
        """See `Store.stat`."""
        try:
            return _stored(self._properties(check_name(name)))
        except ObjectMissing:
            return None

    def delete(self, name: str) -> None:
        """See `Store.delete`; its snapshots go with it."""
        blob = self._blob(check_name(name))
        with suppress(ObjectMissing):
            self._run(name, partial(blob.delete_blob, delete_snapshots="include"))

    def _blob(self, key: str) -> Any:
        return self._client.get_blob_client(key)

    def _properties(self, key: str) -> Any:
        return self._run(key, self._blob(key).get_blob_properties)

    def _exists(self, key: str) -> bool:
        """Credentials that may only write cannot ask: then the condition of the commit decides."""
        try:
            return self.stat(key) is not None
        except AccessDenied:
            return False

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

    def _block(self, key: str, version: str, offset: int, end: int) -> bytes:
        """The bytes of one version of the object, from `offset` to before `end`."""
        from azure.core import MatchConditions

        same = {"etag": version, "match_condition": MatchConditions.IfNotModified}
        try:
            with translated(self._url(key), self._attempts.stall):
                block = bytes(self._blob(key).download_blob(offset, end - offset, **same).readall())
        except (ObjectMissing, NameTaken):  # a condition that failed looks like a taken name
            raise failures.replaced(self._url(key)) from None
        if len(block) != end - offset:
            raise failures.broken(self._url(key), "the answer is too short", self._attempts.stall)
        return block

    def _page(self, prefix: str, token: str | None) -> Page:
        """Some objects, and the token of the next ones."""
        found = self._client.list_blobs(
            name_starts_with=prefix or None, include=["metadata"], results_per_page=PAGE_OBJECTS
        )
        pages = found.by_page(token)
        return tuple(next(pages, ())), pages.continuation_token

    def _run(self, name: str, request: Callable[[], Result], attempts: Attempts | None = None) -> Result:
        def attempt() -> Result:
            with translated(self._url(name), self._attempts.stall):
                return request()

        return (attempts or self._attempts).run(attempt)

    def _url(self, name: str) -> str:
        return f"azblob://{self._name}/{name}"


def _is_folder(blob: Any) -> bool:
    """Accounts with a hierarchical namespace list folders as empty objects."""
    return blob.name.endswith("/") or (blob.metadata or {}).get("hdi_isfolder") == "true"


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
