"""The system tests that `hack/test` runs without --all show each capability, and each walkthrough."""

import configparser
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from e2e.support.subjects import CAPABILITIES, WALKTHROUGHS

ROOT = Path(__file__).resolve().parents[2]


class Collected:
    """A pytest plugin that keeps what is collected."""

    def __init__(self) -> None:
        self.items: list[pytest.Item] = []

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        self.items += session.items


@pytest.fixture(scope="module")
def quick() -> list[pytest.Item]:
    """What tox -e quick runs: no test that is `long`."""
    tox = configparser.ConfigParser(interpolation=None)
    tox.read(ROOT / "tox.ini")
    selection, collected = ["-m", tox["tests"]["quick"]], Collected()
    where = [f"--config-file={ROOT / 'setup.cfg'}", f"--rootdir={ROOT}", str(ROOT / "e2e")]
    pytest.main(["--collect-only", "--quiet", "-p", "no:cacheprovider", *selection, *where], [collected])
    return collected.items


def test_each_capability_has_one_test(quick: list[pytest.Item]) -> None:
    named = Counter(mark.args[0] for item in quick for mark in item.iter_markers("capability"))
    assert named == Counter(CAPABILITIES)


def sections(items: list[pytest.Item]) -> Iterator[tuple[str, str]]:
    """What the markers of tests name: documents, and sections of these."""
    for item in items:
        for mark in item.iter_markers("walkthrough"):
            document, *named = mark.args
            yield from ((document, section) for section in named)


def test_each_walkthrough_has_a_test(quick: list[pytest.Item]) -> None:
    known = {(document, section) for document in WALKTHROUGHS for section in WALKTHROUGHS[document]}
    assert set(sections(quick)) == known
