"""What several tests of the acts need. Assertions outside of test modules explain themselves too."""

from collections.abc import Iterator

import pytest

from etcd_operator.etcd.channel import Channels

pytest.register_assert_rewrite("unit.reconcile.expected", "unit.reconcile.bench", "unit.reconcile.harness")


@pytest.fixture
def channels() -> Iterator[Channels]:
    """Channels to members, closed at the end."""
    channels = Channels()
    yield channels
    channels.close()
