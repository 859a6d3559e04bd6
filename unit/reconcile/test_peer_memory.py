"""What is remembered of EtcdPeers between passes, while other threads read it."""

from typing import Any

from etcd_operator.core.members import PodProblem
from etcd_operator.keys import Key
from etcd_operator.reconcile.peers.memory import PeerMemory
from unit.fakes.clock import FakeClock

PEER = Key("default", "c-0")


class Lasting(dict[Key, PodProblem]):
    """Problems none of which may be taken out, not even for a moment."""

    def pop(self, *_args: Any) -> Any:
        """Raises AssertionError: another thread could read now."""
        raise AssertionError("a reader would find no problem")


def test_a_problem_that_persists_is_never_absent_in_between() -> None:
    memory = PeerMemory(clock=FakeClock(), _problems=Lasting())
    refused = PodProblem(reason="PeerRefused", message="changed by hand")

    assert memory.set_problem(PEER, refused)
    assert not memory.set_problem(PEER, refused)
    assert memory.set_problem(PEER, PodProblem(reason="ClaimLost", message="its claim was lost"))


def test_a_problem_ends_once() -> None:
    memory = PeerMemory(clock=FakeClock())
    memory.set_problem(PEER, PodProblem(reason="ClaimLost", message="its claim was lost"))

    assert memory.set_problem(PEER, None)
    assert memory.problem(PEER) is None
    assert not memory.set_problem(PEER, None)
