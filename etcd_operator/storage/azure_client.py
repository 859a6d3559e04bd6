"""A client of one container of Azure Blob Storage, from the variables that Azure's own tools use."""

import os
from collections.abc import Mapping
from typing import Any

from etcd_operator.storage.errors import AccessDenied, MissingSDK
from etcd_operator.storage.retries import Attempts, quiet

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
