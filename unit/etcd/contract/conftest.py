"""Runs every contract test against the fake, and against real processes of each supported version.

Where the programs are, and when they may be missing: see `programs` in unit/etcd/conftest.py.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from etcd_operator.etcd.channel import Channels
from unit.etcd.conftest import VERSIONS, programs
from unit.etcd.contract.harness import FakeSubject, RealSubject, Subject


@pytest.fixture(
    params=["fake", *(pytest.param(version, marks=pytest.mark.etcd) for version in VERSIONS)],
)
def subject(request: pytest.FixtureRequest, channels: Channels, tmp_path: Path) -> Iterator[Subject]:
    made: FakeSubject | RealSubject
    if request.param == "fake":
        made = FakeSubject(channels)
    else:
        made = RealSubject(channels, programs(request.param), tmp_path)
    yield made
    made.close()
