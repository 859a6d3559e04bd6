"""The stores of this package's tests."""

from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from unit.storage.cases import KINDS, Cases
from unit.storage.real import REAL

_PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave the tests on real stores out unless -m names them: their programs are built on request only."""
    if "stores" in config.option.markexpr:
        return
    left_out = [item for item in items if item.get_closest_marker("stores") is not None]
    items[:] = [item for item in items if item not in left_out]
    config.hook.pytest_deselected(items=left_out)


@pytest.fixture(scope="package")
def cases(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cases]:
    root = tmp_path_factory.mktemp("stores")
    with pytest.MonkeyPatch.context() as monkeypatch, ExitStack() as stack:
        for name in _PROXIES:
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setenv("HOME", str(root / "home"))
        yield Cases(KINDS | REAL, root, monkeypatch, stack)
