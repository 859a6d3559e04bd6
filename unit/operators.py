"""Whole operators in this process, against a fake API server."""

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch
from urllib.error import HTTPError
from urllib.request import urlopen

from etcd_operator import app, decoding
from etcd_operator.keys import Key
from etcd_operator.kube.client import Client
from etcd_operator.kube.lease import Elector, Timing
from etcd_operator.kube.lease_lock import Candidate
from etcd_operator.settings import Settings
from unit.passes.bench import Bench

DEADLINE = 60.0


class QuickOperator(app.Operator):
    """Takes over from a lost leader within seconds, and keeps leading on a machine that stalls for two."""

    def _new_elector(self, on_started: Callable[[], None], on_stopped: Callable[[], None]) -> Elector:
        return Elector(
            Client(self._transport),
            Key("default", app.LEASE_NAME),
            Candidate(self._identity),
            clock=self._clock,
            on_started_leading=on_started,
            on_stopped_leading=on_stopped,
            timing=Timing(lease_duration=4.0, renew_deadline=3.0, retry_period=0.3, early=1.0),
        )


class Running:
    """An operator in a thread; `stop` does what its SIGTERM handler does."""

    def __init__(
        self, made: Bench, home: Path, *, leader_elect: bool = False, install_crds: bool = False
    ) -> None:
        settings = Settings(
            kubeconfig=str(made.api.write_kubeconfig(home / "config")),
            leader_elect=leader_elect,
            lease_namespace="default",
            install_crds=install_crds,
            listen="127.0.0.1:0",
            probe_deadline=0.5,
        )
        self.operator = QuickOperator(settings)
        self._codes: list[int] = []
        self._thread = threading.Thread(target=lambda: self._codes.append(self.operator.run()), name="run")
        self._thread.start()

    def stop(self) -> int:
        """Ask to stop; the exit code."""
        self.operator._ended.set()
        return self.join()

    def join(self) -> int:
        """Wait for the end; the exit code."""
        self._thread.join(DEADLINE)
        assert not self._thread.is_alive()
        return self._codes[0]

    @property
    def leads(self) -> bool:
        """Whether its metrics report that it leads."""
        return 'leader_election_master_status{name="etcd-operator"} 1.0' in self.page("/metrics")[1]

    def page(self, path: str) -> tuple[int, str]:
        """A page of its status server."""
        try:
            with urlopen(f"http://127.0.0.1:{self.operator._page.port}{path}", timeout=30) as answer:
                return answer.status, answer.read().decode()
        except HTTPError as error:
            return error.code, error.read().decode()


def until(made: Bench, claim: Callable[[], bool], seconds: float = DEADLINE) -> float:
    """Let the world go on until `claim` holds; how long that took."""
    began = time.monotonic()
    store = made.api.objects.store
    while not claim():
        assert time.monotonic() - began < seconds, made.story()
        if not made.step():
            with store.changed:
                store.changed.wait(0.05)
    return time.monotonic() - began


@contextmanager
def running(made: Bench, home: Path, count: int = 1, **how: Any) -> Iterator[list[Running]]:
    """Operators that are ended with the test, whatever happens; they leave no thread behind."""
    before, late = set(threading.enumerate()), set(decoding.built_late())
    with patch.object(signal, "signal"):  # it works in a main thread only
        operators = [Running(made, home, **how) for _ in range(count)]
        try:
            yield operators
        finally:
            for operator in operators:
                operator.operator._ended.set()
            for operator in operators:
                operator.join()
    ours = [t.name for t in set(threading.enumerate()) - before if "worker" in t.name or "informer" in t.name]
    assert not ours
    assert not [kind for kind in decoding.built_late() if kind not in late and "unit." not in kind]
