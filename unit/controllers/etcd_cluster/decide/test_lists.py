"""Which list of members is believed."""

import pytest

from etcd_operator.controllers.etcd_cluster.decide.observation import listed
from etcd_operator.controllers.etcd_cluster.decide.replies import Answer
from etcd_operator.etcd.values import EtcdMember
from unit.controllers.etcd_cluster.decide.builders import answer, entry

BEFORE = (entry("a"), entry("b"), entry("c"), entry("d", is_learner=True))
AFTER = (entry("a"), entry("b"), entry("c"), entry("d"))


def by(name: str, members: tuple[EtcdMember, ...], committed: int = 20, **changes: str) -> Answer:
    return answer(name, members, committed=committed, **changes)


@pytest.mark.parametrize(
    ("answers", "expected"),
    [
        pytest.param([], (), id="nobody answers"),
        pytest.param([by("d", ())], (), id="a learner reports no list"),
        pytest.param([by("a", AFTER)], AFTER, id="the only one that answers"),
        pytest.param([by("a", AFTER), by("b", BEFORE, 19)], BEFORE, id="one of two"),
        pytest.param([by("a", AFTER), by("b", BEFORE, 19), by("c", BEFORE, 19)], BEFORE, id="one of 3"),
        pytest.param([by("a", AFTER), by("b", BEFORE, 19), by("d", AFTER)], AFTER, id="two of three"),
        pytest.param([by("a", AFTER), by("d", ())], AFTER, id="beside a learner"),
        pytest.param(
            [by("a", AFTER), by("x", (entry("x"),), 9, cluster_id="feed")],
            AFTER,
            id="another cluster",
        ),
        pytest.param([by("a", AFTER[:3], 21), by("b", BEFORE, 20)], AFTER[:3], id="longest log"),
    ],
)
def test_a_voter_is_one_when_two_members_report_it_or_all(
    answers: list[Answer], expected: tuple[EtcdMember, ...]
) -> None:
    assert listed(answers) == expected
