"""Runs every contract test against the fake, and against real processes of each supported version.

Where the programs are, and when they may be missing: see `programs` in unit/etcd/conftest.py.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from etcd_operator.etcd.channel import Channels
from unit.etcd.conftest import VERSIONS, programs
from unit.etcd.contract.authority import Authority
from unit.etcd.contract.harness import FakeSubject, RealSubject, Subject

PARAMS = ["fake", *(pytest.param(version, marks=pytest.mark.etcd) for version in VERSIONS)]


@pytest.fixture(params=PARAMS)
def subject(request: pytest.FixtureRequest, channels: Channels, tmp_path: Path) -> Iterator[Subject]:
    made: FakeSubject | RealSubject
    if request.param == "fake":
        made = FakeSubject(channels)
    else:
        made = RealSubject(channels, programs(request.param), tmp_path)
    yield made
    made.close()


@pytest.fixture
def authority(tmp_path: Path) -> Iterator[Authority]:
    made = Authority(tmp_path)
    yield made
    made.close()


@pytest.fixture(params=PARAMS)
def secured(request: pytest.FixtureRequest, authority: Authority, tmp_path: Path) -> Iterator[Subject]:
    """Members that require a certificate; the harness has that of root."""
    made: FakeSubject | RealSubject
    if request.param == "fake":
        made = FakeSubject(authority.of("root"), tls=authority.server_credentials)
    else:
        made = RealSubject(authority.of("root"), programs(request.param), tmp_path, tls=authority.flags)
    yield made
    made.close()
