"""What only Azure Blob Storage does: accounts and credentials from variables, blocks of several writers."""

import sys
from collections.abc import Iterator

import pytest

from etcd_operator.storage.azure import Azure, connect
from etcd_operator.storage.errors import AccessDenied, MissingSDK
from etcd_operator.storage.retries import Attempts
from unit.storage.cases import LARGE, Case, Cases
from unit.storage.fake_azure import FakeAzure, key
from unit.storage.server import Server


@pytest.fixture
def case(cases: Cases) -> Case:
    return cases.fresh("azure")


@pytest.fixture
def server(case: Case) -> Server:
    assert case.server is not None
    return case.server


def test_blocks_of_two_writers_are_not_mixed(case: Case, server: Server) -> None:
    """Both write one name at the same time; the parts of the other were staged under other IDs."""

    def chunks() -> Iterator[bytes]:
        yield LARGE
        other = case.open("bucket", 19.0)
        with pytest.raises(ZeroDivisionError):
            other.put("a", interrupted())
        yield LARGE

    case.store.put("a", chunks())
    assert b"".join(case.store.read("a")) == LARGE * 2


def interrupted() -> Iterator[bytes]:
    yield bytes(len(LARGE))
    yield bytes(1 // 0)


def test_folders_of_a_hierarchical_namespace_are_not_listed(case: Case, server: Server) -> None:
    case.store.put("a/b", [b"x"])
    assert isinstance(server.app, FakeAzure)
    server.app.folders = frozenset({"a"})
    assert [stored.name for stored in case.store.list("")] == ["a/b"]


ACCOUNT = {"AZURE_STORAGE_ACCOUNT": "account"}
CONNECTION = (
    f"DefaultEndpointsProtocol=https;AccountName=account;AccountKey={key()};EndpointSuffix=core.windows.net"
)


@pytest.mark.parametrize(
    ("environment", "kind"),
    [
        ({**ACCOUNT, "AZURE_STORAGE_KEY": key()}, "SharedKeyCredentialPolicy"),
        ({**ACCOUNT, "AZURE_STORAGE_SAS_TOKEN": "sig=planted"}, "AzureSasCredential"),
        (ACCOUNT, "DefaultAzureCredential"),
        ({"AZURE_STORAGE_CONNECTION_STRING": CONNECTION}, "SharedKeyCredentialPolicy"),
    ],
    ids=["key", "signature", "identity", "connection"],
)
def test_credentials_come_from_variables(environment: dict[str, str], kind: str) -> None:
    client = connect("bucket", Attempts(1.0), environment)
    assert client.primary_hostname == "account.blob.core.windows.net"
    assert type(client.credential).__name__ == kind


@pytest.mark.parametrize(
    ("environment", "message"),
    [
        ({}, "AZURE_STORAGE_CONNECTION_STRING, or AZURE_STORAGE_ACCOUNT"),
        ({"AZURE_STORAGE_CONNECTION_STRING": "planted"}, "is malformed"),
    ],
)
def test_an_account_that_is_not_known_is_a_sentence(environment: dict[str, str], message: str) -> None:
    with pytest.raises(AccessDenied, match=message) as caught:
        connect("bucket", Attempts(1.0), environment)
    assert "planted" not in str(caught.value)


def test_a_key_that_is_no_key_is_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT", "account")
    monkeypatch.setenv("AZURE_STORAGE_KEY", "planted")
    with pytest.raises(AccessDenied, match="No usable credentials for azblob://bucket/a") as caught:
        Azure("bucket", stall=1.0).stat("a")
    assert "planted" not in str(caught.value)


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "azure.storage.blob", None)
    with pytest.raises(MissingSDK, match=r"etcd-operator\[azure\]"):
        Azure("bucket", stall=1.0)
    monkeypatch.undo()
    monkeypatch.setitem(sys.modules, "azure.identity", None)
    with pytest.raises(MissingSDK, match="azure-identity"):
        connect("bucket", Attempts(1.0), ACCOUNT)
