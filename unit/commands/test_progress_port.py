"""How far a command is, asked over HTTP as the operator does."""

import io
import socket
import time

import pytest

from etcd_operator.commands.progress import ProgressBar, ProgressHandler, served
from etcd_operator.pods import client
from etcd_operator.pods.client import NoReport, progress
from etcd_operator.pods.reports import Progress


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def shown(total: int = 100) -> ProgressBar:
    return ProgressBar("fetching", total, is_quiet=True, output=io.StringIO())


def test_the_operator_reads_how_far_a_restore_is() -> None:
    port = free_port()
    with served(port, shown()) as running:
        running(40)
        assert progress(("127.0.0.1", port)) == Progress(step="fetching", bytes=40, total_bytes=100)
        running.restart("restoring")
        assert progress(("127.0.0.1", port)) == Progress(step="restoring", bytes=0, total_bytes=100)
    with pytest.raises(NoReport):
        progress(("127.0.0.1", port))


def test_a_client_that_sends_nothing_delays_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ProgressHandler, "timeout", 4 * client.DEADLINE)
    port = free_port()
    with served(port, shown()), socket.create_connection(("127.0.0.1", port)):
        assert progress(("127.0.0.1", port)).total_bytes == 100


def test_a_command_does_not_wait_for_the_end_of_its_server() -> None:
    """By default a server notices after half a second that it is stopped."""
    seconds = []
    for _ in range(5):
        began = time.monotonic()
        with served(free_port(), shown()):
            pass
        seconds.append(time.monotonic() - began)
    assert min(seconds) < 0.25, seconds


def test_a_port_that_is_taken_does_not_stop_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("", 0), family=socket.AF_INET6, dualstack_ipv6=True) as taken:
        with served(taken.getsockname()[1], shown()) as running:
            running(40)
        assert running.done == 40
    assert "progress is not served at port" in capsys.readouterr().err


@pytest.mark.parametrize("total", [0, -1])
def test_a_report_that_makes_no_sense_is_none(total: int) -> None:
    port = free_port()
    with served(port, shown(total)), pytest.raises(NoReport):
        progress(("127.0.0.1", port))
