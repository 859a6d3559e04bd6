"""When a pod is believed to have what its Secret has, although the leaf in it was there before."""

from dataclasses import replace
from datetime import timedelta

import pytest

from etcd_operator.controllers.etcd_cluster.decide.certificates.state import Files
from etcd_operator.controllers.etcd_cluster.decide.members import Member
from etcd_operator.controllers.etcd_cluster.tls.seen import VOLUME_LAG, may_lag
from unit.controllers.etcd_cluster.decide.builders import pod
from unit.controllers.etcd_cluster.decide.certificates.certs import NOW, A, leaf

SECOND = timedelta(seconds=1)
FILES = Files(leaf=leaf(A), bundle=(A,), written=NOW)


@pytest.mark.parametrize(
    ("created", "after", "offset", "is_old"),
    [
        (-timedelta(hours=1), SECOND, timedelta(), True),
        (-timedelta(hours=1), VOLUME_LAG, timedelta(), False),
        (timedelta(), SECOND, timedelta(), False),
        (-SECOND, SECOND, timedelta(), True),
        (-SECOND, SECOND, SECOND, False),  # the operator's clock is ahead
        (SECOND, SECOND, -2 * SECOND, True),
    ],
)
def test_volumes_of_pods_that_are_older_follow_in_time(
    created: timedelta, after: timedelta, offset: timedelta, is_old: bool
) -> None:
    member = Member(name="m0", pod=replace(pod("m0"), created=NOW + created))
    assert may_lag(member, FILES, NOW + after, offset) is is_old
    assert not may_lag(member, replace(FILES, written=None), NOW + after, offset)
    assert not may_lag(member, None, NOW + after, offset)


def test_a_pod_that_is_not_known_may_be_old() -> None:
    assert may_lag(Member(name="m0"), FILES, NOW, timedelta())
