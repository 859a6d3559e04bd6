"""Watches whether a cluster has a leader, by the status that each of its members reports.

Promises: each member is polled by a thread of its own, so that one that hangs does not blind the watch; a
member that does not answer within half a second counts as silent from the moment of the request.
"""

import time
from collections.abc import Callable

from e2e.support.intervals import Answer, Claim, Interval, leaderless, longest_gap
from e2e.support.members import Members
from e2e.support.pace import Paced
from etcd_operator.errors import OperatorError

POLL_SECONDS = 0.02
"""Seconds between two requests to one member: the resolution of a window."""

ANSWER_WITHIN = 0.5
DISCOVERY_SECONDS = 0.2
"""Seconds between two reads of the members' addresses."""


class LeaderWatch:
    """Polls the Status of each member, in a `with`; `windows` are the times without a leader.

    addresses: the members' addresses now; read again and again. voters: how many members there are.
    """

    def __init__(self, addresses: Callable[[], list[str]], *, voters: int) -> None:
        self._addresses = addresses
        self._voters = voters
        self._members = Members(deadline=ANSWER_WITHIN)
        self._discovery = Paced(self._follow, interval=DISCOVERY_SECONDS, name="leader-watch")
        self._polls: dict[str, Paced] = {}
        self._answers: list[Answer] = []

    def __enter__(self) -> "LeaderWatch":
        self._discovery.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._discovery.stop()
        for poll in self._polls.values():
            poll.stop()
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
        """The longest time without any answer: shorter windows may be pauses of this machine."""
        return longest_gap((answer.moment for answer in list(self._answers) if answer.claim), within)

    def _follow(self) -> None:
        try:
            now = set(self._addresses())
        except OperatorError:
            return  # the API server is away: the members known so far are polled further
        for address in now - self._polls.keys():
            self._polls[address] = Paced(
                lambda address=address: self._poll(address),  # type: ignore[misc]
                interval=POLL_SECONDS,
                name=f"leader-watch {address}",
            )
            self._polls[address].start()
        for address in self._polls.keys() - now:
            self._polls.pop(address).stop()
            self._answers.append(Answer(time.monotonic(), address, None))

    def _poll(self, address: str) -> None:
        began = time.monotonic()
        try:
            status = self._members.client(address).status()
        except OperatorError:
            self._answers.append(Answer(began, address, None))
            return
        claim = Claim(member=int(status.member_id, 16), leader=int(status.leader or "0", 16))
        self._answers.append(Answer(time.monotonic(), address, claim))
