"""What is remembered of EtcdPeers between their passes. It is in memory: a restart costs some waiting.

So does a lost Lease: another process may have made what was missing, and members are replaced because of a
problem. Where it persists, the next pass over the peer finds it again.
"""

from dataclasses import dataclass, field

from etcd_operator.clock import Clock
from etcd_operator.controllers.etcd_cluster.decide.members import PodProblem
from etcd_operator.controllers.etcd_peer.decide.state import Awaited
from etcd_operator.controllers.shared.waits import Epoch
from etcd_operator.keys import Key


@dataclass(kw_only=True)
class PeerMemory:
    """Problems that were reported, and waits under way, by peer.

    Only a peer's own pass writes about it, and no two passes over one key run at once; `problem` may be read
    from any thread.
    """

    clock: Clock
    epoch: Epoch
    _problems: dict[Key, tuple[int, PodProblem]] = field(default_factory=dict)
    _waits: dict[Key, tuple[int, Awaited, float]] = field(default_factory=dict)

    def problem(self, peer: Key) -> PodProblem | None:
        """Why the last pass over a peer could not make its objects; None if it could."""
        epoch, problem = self._problems.get(peer, (0, None))
        return problem if epoch == self.epoch() else None

    def set_problem(self, peer: Key, problem: PodProblem | None) -> bool:
        """Remember a problem, or None for none; whether it is another one than before.

        A problem that persists is never absent in between: nothing would wake a reader who missed it.
        """
        before = self.problem(peer)
        if problem is None:
            self._problems.pop(peer, None)
        else:
            self._problems[peer] = self.epoch(), problem
        return problem != before

    def waited(self, peer: Key) -> tuple[Awaited | None, float]:
        """What the last pass waited for, and for how many seconds passes have waited for that."""
        epoch, awaited, since = self._waits.get(peer, (0, None, 0.0))
        if awaited is None or epoch != self.epoch():
            return None, 0.0
        return awaited, self.clock.monotonic() - since

    def waits(self, peer: Key, what: Awaited | None) -> None:
        """This pass waits for something, or for nothing."""
        if what is None:
            self._waits.pop(peer, None)
        elif self.waited(peer)[0] is not what:
            self._waits[peer] = self.epoch(), what, self.clock.monotonic()

    def forget(self, peer: Key) -> None:
        """The peer is deleted."""
        self._problems.pop(peer, None)
        self._waits.pop(peer, None)
