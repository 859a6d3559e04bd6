"""The stores of this package's tests."""

from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from unit.storage.cases import Cases

_PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy")


@pytest.fixture(scope="package")
def cases(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cases]:
    root = tmp_path_factory.mktemp("stores")
    with pytest.MonkeyPatch.context() as monkeypatch, ExitStack() as stack:
        for name in _PROXIES:
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setenv("HOME", str(root / "home"))
        yield Cases(root, monkeypatch, stack)
