"""Each store with what tests need to know about it: one contract for all of them."""

import shutil
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import pytest

from etcd_operator.storage.gcs import GCS
from etcd_operator.storage.protocol import Store
from etcd_operator.storage.urls import open_store
from unit.storage import moto_s3
from unit.storage.fake_azure import FakeAzure
from unit.storage.fake_gcs import FakeGCS
from unit.storage.server import Request, Server, Where, serving

PART = 256 * 1024
SECRET = "planted-secret"
LARGE = bytes(range(256)) * 3 * (PART // 256) + b"end"
"""Three parts and three bytes more."""
_PUTTING = ("s3", "gcs", "azure")


@dataclass(kw_only=True)
class Case:
    """`open(bucket, stall)` gives a store; the bucket "bucket" exists. `at(address, stall)` gives one whose
    service is elsewhere. `unfinished` names transfers that the
    service keeps although nothing is visible of them. The predicates name the requests of a service.
    `part`: bytes that are sent at once. `is_flat`: an object may have the name of a folder.
    `continues`: an upload can continue after a request failed.
    """

    open: Callable[[str, float], Store]
    reset: Callable[[], None]
    at: Callable[[str, float], Store]
    unfinished: Callable[[], list[str]]
    server: Server | None = None
    part: int = PART
    is_flat: bool = True
    continues: bool = True
    starts: Where = lambda _: False
    sends: Where = lambda _: False
    finishes: Where = lambda _: False
    reads: Where = lambda _: False
    lists: Where = lambda _: False

    @cached_property
    def store(self) -> Store:
        return self.open("bucket", 20.0)

    @cached_property
    def large(self) -> bytes:
        """Three parts and three bytes more."""
        return bytes(range(256)) * 3 * (self.part // 256) + b"end"


def url_of(address: str) -> str:
    return address if "://" in address else f"http://{address}"


def directory(root: Path, _: pytest.MonkeyPatch, __: ExitStack) -> Case:
    def reset() -> None:
        shutil.rmtree(root / "bucket", ignore_errors=True)
        (root / "bucket").mkdir(parents=True)

    return Case(
        open=lambda bucket, stall: open_store(f"{root}/{bucket}/", stall=stall)[0],
        at=lambda _, stall: open_store(f"{root}/none/", stall=stall)[0],
        reset=reset,
        unfinished=lambda: [path.name for path in (root / "bucket").rglob(".*")],
        is_flat=False,
    )


def s3(_: Path, monkeypatch: pytest.MonkeyPatch, stack: ExitStack) -> Case:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    monkeypatch.setenv("AWS_SESSION_TOKEN", SECRET)
    monkeypatch.setattr("moto.s3.models.S3_UPLOAD_PART_MIN_SIZE", 1)
    server = stack.enter_context(serving(moto_s3.app()))

    return s3_case(server, reset=lambda: moto_s3.reset("bucket"), unfinished=moto_s3.uploads)


def s3_case(server: Server, **about: Any) -> Case:
    def at(address: str, stall: float, bucket: str = "bucket") -> Store:
        return open_store(f"s3://{bucket}/?endpoint={url_of(address)}", stall=stall)[0]

    return Case(
        at=at,
        open=cache(lambda bucket, stall: at(server.address, stall, bucket)),
        server=server,
        starts=lambda r: r.method == "POST" and "uploads" in r.query,
        sends=lambda r: r.method == "PUT" and "partNumber" in r.query,
        finishes=_finishes_s3,
        reads=lambda r: r.method == "GET" and "list-type" not in r.query,
        lists=lambda r: "list-type" in r.query,
        **about,
    )


def _finishes_s3(request: Request) -> bool:
    if request.method == "POST":
        return "uploadId" in request.query
    return request.method == "PUT" and "partNumber" not in request.query


def gcs(_: Path, monkeypatch: pytest.MonkeyPatch, stack: ExitStack) -> Case:
    fake = FakeGCS("bucket", SECRET)
    server = stack.enter_context(serving(fake))
    fake.address = server.address
    return gcs_case(server, monkeypatch, reset=fake.reset, unfinished=fake.unfinished)


def gcs_case(server: Server, monkeypatch: pytest.MonkeyPatch, **about: Any) -> Case:
    def at(address: str, stall: float, bucket: str = "bucket") -> Store:
        monkeypatch.setenv("STORAGE_EMULATOR_HOST", url_of(address))
        store = GCS(bucket, stall=stall)
        assert store._client  # it reads the variable
        return store

    return Case(
        at=at,
        open=cache(lambda bucket, stall: at(server.address, stall, bucket)),
        server=server,
        starts=lambda r: r.method == "POST",
        sends=lambda r: r.method == "PUT" and r.headers["content-range"].endswith("/*"),
        finishes=lambda r: r.method == "PUT" and not r.headers["content-range"].endswith("/*"),
        reads=lambda r: r.query.get("alt") == "media",
        lists=lambda r: r.method == "GET" and r.path.endswith("/o"),
        **about,
    )


def azure(_: Path, monkeypatch: pytest.MonkeyPatch, stack: ExitStack) -> Case:
    fake = FakeAzure("account", "bucket")
    server = stack.enter_context(serving(fake))
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT", "account")
    monkeypatch.setenv("AZURE_STORAGE_SAS_TOKEN", f"sv=2025-01-05&sig={SECRET}")

    def at(address: str, stall: float, bucket: str = "bucket") -> Store:
        monkeypatch.setenv("AZURE_STORAGE_SERVICE_ENDPOINT", f"{url_of(address)}/account")
        return open_store(f"azblob://{bucket}/", stall=stall)[0]

    return Case(
        at=at,
        open=cache(lambda bucket, stall: at(server.address, stall, bucket)),
        reset=fake.reset,
        unfinished=list,  # staged blocks cannot be discarded
        server=server,
        starts=lambda r: r.query.get("comp") == "block",
        sends=lambda r: r.query.get("comp") == "block",
        finishes=lambda r: r.query.get("comp") == "blocklist",
        reads=lambda r: r.method == "GET" and "comp" not in r.query,
        lists=lambda r: r.query.get("comp") == "list",
    )


Make = Callable[[Path, pytest.MonkeyPatch, ExitStack], Case]
KINDS: dict[str, Make] = {"directory": directory, "s3": s3, "gcs": gcs, "azure": azure}
SERVICES = tuple(kind for kind in KINDS if kind != "directory")


class Cases:
    """The stores that tests share, because making a client takes longer than most tests."""

    def __init__(
        self, kinds: Mapping[str, Make], root: Path, monkeypatch: pytest.MonkeyPatch, stack: ExitStack
    ) -> None:
        self._made: dict[str, Case] = {}
        self._make: Callable[[str], Case] = lambda kind: kinds[kind](root, monkeypatch, stack)
        self._monkeypatch = monkeypatch

    def fresh(self, kind: str) -> Case:
        """The case of that name, empty and without faults."""
        case = self._made.get(kind)
        if case is None:
            case = self._made[kind] = self._make(kind)
        case.reset()
        for module in _PUTTING:
            self._monkeypatch.setattr(f"etcd_operator.storage.{module}.PART_BYTES", case.part)
        self._monkeypatch.setattr("etcd_operator.storage.service.BLOCK_BYTES", case.part // 2)
        if case.server is not None:
            case.server.faults, case.server.seen = [], []
        return case
