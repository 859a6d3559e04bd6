"""What is remembered of EtcdPeers between passes, while other threads read it."""

from typing import Any

from etcd_operator.controllers.etcd_cluster.decide.members import PodProblem
from etcd_operator.controllers.etcd_peer.decide.state import Awaited
from etcd_operator.controllers.etcd_peer.memory import PeerMemory
from etcd_operator.keys import Key
from unit.fakes.clock import FakeClock

PEER = Key("default", "c-0")


class Lasting(dict[Key, tuple[int, PodProblem]]):
    """Problems none of which may be taken out, not even for a moment."""

    def pop(self, *_args: Any) -> Any:
        """Raises AssertionError: another thread could read now."""
        raise AssertionError("a reader would find no problem")


def test_a_problem_that_persists_is_never_absent_in_between() -> None:
    memory = PeerMemory(clock=FakeClock(), epoch=lambda: 0, _problems=Lasting())
    refused = PodProblem(reason="PeerRefused", message="changed by hand")

    assert memory.set_problem(PEER, refused)
    assert not memory.set_problem(PEER, refused)
    assert memory.set_problem(PEER, PodProblem(reason="ClaimLost", message="its claim was lost"))


def test_a_problem_ends_once() -> None:
    memory = PeerMemory(clock=FakeClock(), epoch=lambda: 0)
    memory.set_problem(PEER, PodProblem(reason="ClaimLost", message="its claim was lost"))

    assert memory.set_problem(PEER, None)
    assert memory.problem(PEER) is None
    assert not memory.set_problem(PEER, None)


def test_nothing_is_remembered_after_leadership_was_lost() -> None:
    """Another process may have made the claim that was lost; if not, the next pass reports it again."""
    clock, epochs = FakeClock(), [0]
    memory = PeerMemory(clock=clock, epoch=lambda: epochs[-1])
    lost = PodProblem(reason="ClaimLost", message="its claim was lost")
    memory.set_problem(PEER, lost)
    memory.waits(PEER, Awaited.CLUSTER)
    clock.advance(5.0)
    assert memory.problem(PEER) == lost
    assert memory.waited(PEER) == (Awaited.CLUSTER, 5.0)

    epochs.append(1)
    assert memory.problem(PEER) is None
    assert memory.waited(PEER) == (None, 0.0)

    memory.waits(PEER, Awaited.CLUSTER)
    clock.advance(3.0)
    assert memory.waited(PEER) == (Awaited.CLUSTER, 3.0)
    assert memory.set_problem(PEER, lost), "who read in between has missed it"
