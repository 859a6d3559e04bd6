"""Watches whether a cluster has a leader, by what each of its members says of itself.

Promises: every member is asked by a thread of its own, so that one that hangs does not blind the watch; a
member that does not answer within half a second counts as silent from the moment it was asked.
"""

import time
from collections.abc import Callable
from types import TracebackType

from e2e.support.intervals import Answer, Claim, Interval, leaderless, longest_gap
from e2e.support.members import Members
from e2e.support.pace import Paced
from etcd_operator.errors import OperatorError

ASK_EVERY = 0.02
"""Seconds between two questions to one member: the resolution of a window."""

ANSWER_WITHIN = 0.5
LOOK_EVERY = 0.2
"""Seconds between two looks for members that came or went."""


class LeaderWatch:
    """Asks each member for its Status all the time, in a `with`; `windows` are the times without a leader.

    addresses: the members' addresses now; asked again all the time. voters: how many members there are.
    """

    def __init__(self, addresses: Callable[[], list[str]], *, voters: int) -> None:
        self._addresses = addresses
        self._voters = voters
        self._members = Members(deadline=ANSWER_WITHIN)
        self._look = Paced(self._follow, interval=LOOK_EVERY, name="leader-watch")
        self._asking: dict[str, Paced] = {}
        self._answers: list[Answer] = []

    def __enter__(self) -> "LeaderWatch":
        self._look.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._look.stop()
        for asking in self._asking.values():
            asking.stop()
        self._members.close()

    def windows(self, within: Interval) -> list[Interval]:
        """The times without a leader that meet `within`, at their full length; see `leaderless`."""
        answers = [answer for answer in list(self._answers) if answer.moment <= within.end]
        return [
            window
            for window in leaderless(answers, voters=self._voters, end=within.end)
            if window.meets(within)
        ]

    def longest_silence(self, within: Interval) -> float:
        """The longest time without any answer: shorter windows cannot be told from this machine's pauses."""
        return longest_gap((answer.moment for answer in list(self._answers) if answer.claim), within)

    def _follow(self) -> None:
        try:
            now = set(self._addresses())
        except OperatorError:
            return  # the API server is away: the members known so far are asked on
        for address in now - self._asking.keys():
            self._asking[address] = Paced(
                lambda address=address: self._ask(address),  # type: ignore[misc]
                interval=ASK_EVERY,
                name=f"leader-watch {address}",
            )
            self._asking[address].start()
        for address in self._asking.keys() - now:
            self._asking.pop(address).stop()
            self._answers.append(Answer(time.monotonic(), address, None))

    def _ask(self, address: str) -> None:
        asked = time.monotonic()
        try:
            said = self._members.client(address).status()
        except OperatorError:
            self._answers.append(Answer(asked, address, None))
            return
        claim = Claim(member=said.member_id, leader=said.leader)
        self._answers.append(Answer(time.monotonic(), address, claim))
