"""Compares the reason and the message of each plan that these tests make with `messages.txt`.

The file lists by test module what users may read, so that single tests need not repeat it. Write it anew
after a message has changed on purpose, in one process, and read the difference:

    ETCD_OPERATOR_MESSAGES=write pytest unit/controllers/etcd_cluster/decide
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from etcd_operator.controllers.etcd_cluster.decide.actions import Plan

HERE = Path(__file__).parent
CATALOGUE = HERE / "messages.txt"
WRITES = os.environ.get("ETCD_OPERATOR_MESSAGES") == "write"
HINT = "; if that is intended, see unit/controllers/etcd_cluster/decide/conftest.py"
NOT_LISTED = {
    # They make hundreds of variants of the same few messages.
    "adoption/test_adopt_model.py",
    "test_unseen_bootstraps.py",
    # They invent plans.
    "test_status.py",
}

Messages = dict[str, set[str]]


@pytest.fixture(scope="session")
def catalogue() -> Messages:
    """The messages by test module."""
    listed: Messages = {}
    module = ""
    for line in CATALOGUE.read_text().splitlines():
        if line.startswith(" "):
            listed[module].add(line.strip())
        else:
            module = line
            listed[module] = set()
    missing = [each for each in listed if not (HERE / each).exists()]
    assert WRITES or not missing, f"{CATALOGUE.name} lists messages of {missing}, which do not exist{HINT}"
    return {module: lines for module, lines in listed.items() if module not in missing}


@pytest.fixture(scope="module", autouse=True)
def made_by_test(request: pytest.FixtureRequest, catalogue: Messages) -> Iterator[Messages]:
    """The messages by test. Fails if all tests of the module ran and did not make all that are listed."""
    module = str(request.path.relative_to(HERE))
    made: Messages = {}
    yield made
    listed, found = catalogue.get(module, set()), set().union(*made.values())
    is_complete = len(made) == len(request.node.collect())  # other tests are deselected, or run elsewhere
    if WRITES and listed | found:
        catalogue[module] = found if is_complete else listed | found
        parts = [[each, *(f"  {line}" for line in sorted(catalogue[each]))] for each in sorted(catalogue)]
        CATALOGUE.write_text("".join(f"{line}\n" for part in parts for line in part))
    elif is_complete and listed - found:
        pytest.fail(
            f"{CATALOGUE.name} lists what {module} does not make: {listed - found}{HINT}", pytrace=False
        )


@pytest.fixture(autouse=True)
def messages(
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
    catalogue: Messages,
    made_by_test: Messages,
) -> Iterator[None]:
    """Fails if this test makes a plan with a message that is not listed."""
    module = str(request.path.relative_to(HERE))
    made = made_by_test[request.node.nodeid] = set()
    make = Plan.__init__

    def recorded(self: Plan, **fields: Any) -> None:
        make(self, **fields)
        if module not in NOT_LISTED and self.message:
            made.add(f"{self.reason}: {self.message}".strip())

    monkeypatch.setattr(Plan, "__init__", recorded)
    yield
    unknown = made - catalogue.get(module, set())
    if unknown and not WRITES:
        pytest.fail(f"{CATALOGUE.name} does not list for {module}: {unknown}{HINT}", pytrace=False)
