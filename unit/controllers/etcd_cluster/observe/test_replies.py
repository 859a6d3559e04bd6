"""What etcd replies, as values that rules read."""

from typing import Any

import pytest

from etcd_operator.controllers.etcd_cluster.decide.replies import Answer, Reply, Silence
from etcd_operator.controllers.etcd_cluster.observe.observer import reply_of
from etcd_operator.etcd.values import Answered, NoAnswer, Refused, Status


def _status(**changes: Any) -> Status:
    empty: dict[str, Any] = {**dict.fromkeys(Status.__dataclass_fields__, 0), "leader": ""}
    return Status(**{**empty, "version": "3.6.16", "errors": (), "is_learner": False, **changes})


@pytest.mark.parametrize(
    ("errors", "corrupt"),
    [
        ((), set()),
        (("etcdserver: no leader", "memberID:171 alarm:NOSPACE "), set()),
        (("memberID:171 alarm:CORRUPT ",), {"ab"}),  # 3.5, 3.6
        (("memberID:171  alarm:CORRUPT", "memberID:172 alarm:CORRUPT"), {"ab", "ac"}),  # 3.7
        (("alarm:CORRUPT ",), {"0"}),
    ],
)
def test_an_alarm_names_the_members_whose_data_differs(errors: tuple[str, ...], corrupt: set[str]) -> None:
    found = reply_of(Answered(status=_status(errors=errors), members=None), 0.0)

    assert isinstance(found, Answer)
    assert found.corrupt == corrupt


NO_LEADER = "etcdserver: no leader"


@pytest.mark.parametrize(
    ("errors", "is_out_of_space", "has_other_errors"),
    [
        ((), False, False),
        (("memberID:171 alarm:NOSPACE ",), True, False),  # 3.5, 3.6
        (("memberID:171  alarm:NOSPACE",), True, False),  # 3.7
        (("memberID:171 alarm:NOSPACE",), True, False),
        (("alarm:NOSPACE ",), True, False),
        (("alarm:NOSPACE",), True, False),
        (("memberID:171 alarm:CORRUPT ",), False, False),
        (("memberID:171  alarm:CORRUPT", "memberID:172  alarm:NOSPACE"), True, False),
        ((NO_LEADER,), False, True),
        ((NO_LEADER, "memberID:171 alarm:NOSPACE "), True, True),
        ((NO_LEADER, "memberID:171 alarm:CORRUPT "), False, True),
        (("memberID:171 ",), False, True),  # an alarm of no kind
        (("memberID:171 alarm:3 ",), False, True),  # one that is not known yet
        (("etcdserver: NOSPACE is near",), False, True),
        (("etcdserver: mvcc: CORRUPT page",), False, True),
    ],
)
def test_alarms_are_distinguished_from_other_errors(
    errors: tuple[str, ...], is_out_of_space: bool, has_other_errors: bool
) -> None:
    """All that etcd 3.5 to 3.7 put there: that there is no leader, and one text for each alarm."""
    found = reply_of(Answered(status=_status(member_id="1", leader="2", errors=errors), members=None), 0.0)

    assert isinstance(found, Answer)
    assert (found.errors, found.is_out_of_space) == (errors, is_out_of_space)
    assert (found.has_other_errors, found.is_unhealthy) == (has_other_errors, has_other_errors)


def test_an_answer_without_leader_and_list() -> None:
    found = reply_of(Answered(status=_status(member_id="1"), members=None), 0.0)

    assert isinstance(found, Answer)
    assert (found.leader, found.members) == ("", ())


@pytest.mark.parametrize(
    ("reply", "fact"),
    [
        (Refused(is_serving=True), Refused(is_serving=True)),
        (NoAnswer(reason="silence"), Silence(seconds=7.0)),
    ],
)
def test_silence_and_refusal_are_no_answer(reply: Answered | Refused | NoAnswer, fact: Reply) -> None:
    assert reply_of(reply, 7.0) == fact
