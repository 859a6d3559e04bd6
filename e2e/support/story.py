"""A cluster that is changed in many ways while clients write to it, and what these notice.

One client writes 100 keys a second over one gRPC channel, and tries nothing again. Another one is etcdctl,
which uses etcd's own client: each put is a process that reads the files of its Secret. What the machine
itself causes is known from a cluster that is not changed.
"""

import time
from collections.abc import Callable
from typing import Any

from e2e.support.checks import assert_consistent
from e2e.support.clusters import RESTRICTED_CONTAINER, RESTRICTED_POD, Document, ephemeral
from e2e.support.intervals import Interval, longest_beyond
from e2e.support.resizing import NOTICEABLE_SECONDS
from e2e.support.secured import credentials
from e2e.support.space import Space
from e2e.support.steady import SteadyWriter
from e2e.support.waiting import LONG, wait_until
from etcd_operator.etcd.channel import TlsCredentials
from localcluster.kubectl import is_ready

GAP_SECONDS = 0.5

PATIENCE = 10.0
"""Seconds for one put: a machine that stalls is no failure, it shows in the gaps of both clusters."""

BY_ETCD = (
    "raft proposal dropped",  # the leader's answer while leadership moves
    "etcdserver: leader changed",
    "etcdserver: request timed out",  # that of a follower, 7 s later
    "raft: stopped",  # that of a member that is removed: etcd ends it within a second
    "Connection reset by peer",  # the end of its connection
    "Socket closed",
    # What is under way at a member that stops, if clients use TLS: without TLS, etcd answers it first.
    "No status received",
    "Data frame with END_STREAM flag received",
    "revision of auth store is old",  # a user was changed between a request and its execution
)
"""What a put ends with that is under way while leadership moves, or a member ends."""

MOST_FAILED = 3
"""Of etcdctl."""

BACK_OFF = 4 * LONG
"""A container that was restarted often is restarted after five minutes."""

PUTS = """
n=0
while true; do
  n=$((n + 1))
  user=; if [ -e /tls/password ]; then user=$(cat /tls/username); fi
  if etcdctl --endpoints=https://$CLUSTER:2379 --cacert=/tls/ca.crt --cert=/tls/tls.crt --key=/tls/tls.key \\
    ${user:+--user=$user:$(cat /tls/password)} \\
    --dial-timeout=10s --command-timeout=30s put count $n > /dev/null 2> /tmp/error
  then echo $n $user; else echo "failed: $(tail -n 1 /tmp/error)"; fi
  sleep $PAUSE
done
"""
"""Each put is a process of its own: it reads the files of the Secret, and makes a handshake."""

WRITER = "etcd-writer"


def start_writer(space: Space, document: Document, secret: str = "", *, pause: float = 0.2) -> None:
    """A pod that writes with what the Secret has; by default the one for clients. pause: between two puts."""
    name = document["metadata"]["name"]
    container = {
        "name": "client",
        "image": "localhost/etcd-shell:dev",
        "command": ["/bin/sh", "-c", PUTS],
        "env": [{"name": "CLUSTER", "value": name}, {"name": "PAUSE", "value": str(pause)}],
        "securityContext": RESTRICTED_CONTAINER,
        "volumeMounts": [
            {"name": "tls", "mountPath": "/tls", "readOnly": True},
            {"name": "scratch", "mountPath": "/tmp"},
        ],
    }
    spec = {
        "containers": [container],
        "volumes": [
            {"name": "tls", "secret": {"secretName": secret or f"{name}-client-tls"}},
            {"name": "scratch", "emptyDir": {}},
        ],
        "restartPolicy": "Never",
        "securityContext": RESTRICTED_POD,
    }
    space.kubectl.create({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": WRITER}, "spec": spec})
    wait_until(lambda: "10" in space.kubectl("logs", WRITER).split(), "the writer writes")


class Story:
    """A cluster, the writer and what it noticed of each change."""

    def __init__(self, space: Space, document: Document, secret: str = "") -> None:
        self.space, self.document = space, document
        self.secret = secret  # that the writer uses; none: it writes without TLS
        self._given: TlsCredentials | None = None
        self._control = space.settled(ephemeral("untouched", size=1))
        self._taken: list[tuple[str, Interval]] = []
        self.writer = SteadyWriter(self._addresses, access=self._access, put_within=PATIENCE)
        self._other = SteadyWriter(lambda: space.addresses(self._control), put_within=PATIENCE)

    def _addresses(self) -> list[str]:
        """As the Service has them: a member that joins is not ready, and accepts no writes."""
        return [pod["status"]["podIP"] for pod in self.space.pods(self.document) if is_ready(pod)]

    def _access(self) -> TlsCredentials | None:
        """What the Secret has, or last had: a client that has read its files goes on without them."""
        if not self.secret:
            return None
        self._given = credentials(self.space, self.document, self.secret) or self._given
        return self._given

    def __enter__(self) -> "Story":
        self.writer.__enter__()
        self._other.__enter__()
        self.writer.go_on()
        return self

    def __exit__(self, *error: object) -> None:
        self.writer.__exit__(*error)
        self._other.__exit__(*error)
        print(*(self._told(*each) for each in self._taken), sep="\n")

    def take(self, what: str, change: Callable[[], object]) -> None:
        """Make a change; the time until all is settled and the writer goes on is that of its effects."""
        began = time.monotonic()
        change()
        self.writer.go_on()
        self._taken.append((what, Interval(began, time.monotonic())))
        print(self._told(*self._taken[-1]), flush=True)

    def use(self, secret: str) -> None:
        """Let the writer use this Secret, and wait until it does."""
        self.secret, self._given = secret, None
        assert (self._access() is None) == (not secret), f"there is no Secret {secret}"
        wait_until(lambda: self.writer.credentials == self._access(), "the writer uses its certificate")

    def apply(self, **spec: Any) -> None:
        """Edit the spec (None: remove), and wait until all is as declared."""
        self.document["spec"] = {key: value for key, value in (self.document["spec"] | spec).items() if value}
        self.space.kubectl.apply(self.document)
        self.space.wait_observed(self.document)
        self.space.wait_settled(self.document, within=BACK_OFF)

    def judge(self) -> None:
        """After the `with`: nothing is lost, and no more failed, or for longer, than may."""
        assert self.writer.lost() == []
        failures = self.writer.failures()
        assert all(any(each in text for each in BY_ETCD) for text in failures), failures
        assert max(self._gap(during) for _, during in self._taken) <= GAP_SECONDS
        assert_consistent(self.space, self.document)

    def _gap(self, during: Interval) -> float:
        own, others = (each.outages(during, least=NOTICEABLE_SECONDS) for each in (self.writer, self._other))
        return longest_beyond(own, others)

    def _told(self, what: str, during: Interval) -> str:
        own, other = (each.longest_gap(during) for each in (self.writer, self._other))
        failed = dict(self.writer.failures(during))
        return (
            f"{what}: {during.length:.0f} s, {self.writer.acknowledged(during)} puts, failed: {failed}, "
            f"longest gap {own:.2f} s, untouched cluster {other:.2f} s, beyond it {self._gap(during):.2f} s"
        )


def refusals(space: Space) -> list[str]:
    """Puts of etcdctl that failed for another reason than that leadership moved."""
    written = space.kubectl("logs", WRITER).splitlines()
    assert any(line[:1].isdigit() for line in written), written
    failed = [line for line in written if line.startswith("failed")]
    print(f"etcdctl: {len(written) - len(failed)} puts, failed: {failed}")
    assert len(failed) <= MOST_FAILED, failed
    return [line for line in failed if not any(each in line for each in BY_ETCD)]
