"""What rpc.py needs to know of each method: when it is answered, and to whom."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from etcd_operator.etcd.methods import Method
from unit.fakes.etcd.auth import MayCall, root


def always(_request: Any) -> bool:
    return True


def never(_request: Any) -> bool:
    return False


@dataclass(frozen=True, slots=True)
class Call:
    """How a method is answered: `answer` runs under the cluster's lock, once its needs are met.

    may_call: refuses those who may not call it once authentication is enabled; None refuses nobody.
    is_logged: it goes through the log, so a member refuses it that has not applied most of its log.
    is_forwarded: a follower asks the leader, who learns nothing of a certificate: it tries for ever.
    """

    method: Method[Any, Any]
    answer: Callable[[Any, Any], Any]
    needs_quorum: Callable[[Any], bool] = never
    learner_may: Callable[[Any], bool] = never
    may_call: MayCall | None = root
    is_logged: bool = False
    is_forwarded: bool = False
