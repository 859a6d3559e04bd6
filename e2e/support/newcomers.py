"""A client in a pod that opens a new connection for each request, as short-lived programs do.

It puts through the Service for clients, by etcd's JSON gateway. Of several addresses it takes one by chance
and tries no other; nothing is tried again: what fails here is what a client without a library would notice.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from e2e.support.clusters import RESTRICTED_CONTAINER, RESTRICTED_POD, Document
from e2e.support.operators import DeployedOperator
from e2e.support.space import Space
from e2e.support.waiting import LONG, wait_until

SCRIPT = """
import http.client, random, socket, sys, time
host, done = sys.argv[1], 0
while True:
    began, step = time.monotonic(), "no connection"
    try:
        address = random.choice(socket.getaddrinfo(host, 2379, type=socket.SOCK_STREAM))[4][0]
        connection = http.client.HTTPConnection(address, 2379, timeout=3)
        connection.connect()
        step = "no reply"
        connection.request("POST", "/v3/kv/put", '{"key": "bmV3", "value": "bmV3"}')
        reply = connection.getresponse()
        problem = "" if reply.status == 200 else reply.read().decode()
        connection.close()
    except (OSError, http.client.HTTPException) as error:
        problem = f"{step}: {type(error).__name__}: {error}"
    done += 1
    if problem:
        print(f"failed {time.time():.3f} after {time.monotonic() - began:.3f}: {problem}", flush=True)
    if done % 10 == 0:
        print(f"done {done}", flush=True)
    time.sleep(max(0.0, 0.02 - (time.monotonic() - began)))
"""


@dataclass(frozen=True)
class Newcomers:
    """What the client printed: one line for each failure."""

    space: Space
    pod: str

    def lines(self) -> list[str]:
        """All of it so far."""
        return self.space.kubectl("logs", self.pod).splitlines()

    def done(self) -> int:
        """How many requests were made."""
        counts = [line for line in self.lines() if line.startswith("done ")]
        return int(counts[-1].split()[1]) if counts else 0

    def failures(self) -> list[str]:
        """Each that failed, with the reason; but not those whose reply came late: the machine stalled."""
        failed = [line for line in self.lines() if line.startswith("failed ")]
        print(f"{len(failed)} failed, replies that came late included")
        return [line for line in failed if not line.endswith("no reply: TimeoutError: timed out")]

    def go_on(self, more: int = 100) -> None:
        """Wait until so many more requests have ended."""
        before = self.done()
        wait_until(lambda: self.done() >= before + more, f"{more} more requests have ended")


@contextmanager
def newcomers(space: Space, document: Document) -> Iterator[Newcomers]:
    """Requests to a cluster that serves, 50 a second at most, until the end of the block."""
    name = document["metadata"]["name"]
    client = Newcomers(space, f"newcomers-{name}")
    space.kubectl.create(_pod(space, client.pod, name))
    try:
        wait_until(lambda: client.done() > 0, "the client has begun")
        yield client
    finally:
        space.kubectl("delete", "pod", client.pod, "--now", f"--timeout={LONG:g}s")


def _pod(space: Space, name: str, host: str) -> Document:
    container = {
        "name": "client",
        "image": _image(space),
        "command": ["python3", "-c", SCRIPT, host],
        "securityContext": RESTRICTED_CONTAINER,
    }
    spec = {"securityContext": RESTRICTED_POD, "terminationGracePeriodSeconds": 0, "containers": [container]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


def _image(space: Space) -> str:
    """The operator's: it has Python, and is on all nodes."""
    kubectl = space.kubectl.within(DeployedOperator.NAMESPACE)
    deployment = kubectl.json("get", "deployment", DeployedOperator.NAME)
    return str(deployment["spec"]["template"]["spec"]["containers"][0]["image"])
