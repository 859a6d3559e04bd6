"""A client inside of the cluster that has watched since before a loss, through the client Service."""

from dataclasses import dataclass

from e2e.support.clusters import RESTRICTED_CONTAINER, RESTRICTED_POD, Document
from e2e.support.load import PREFIX
from e2e.support.shell import etcdctl
from e2e.support.space import Space
from e2e.support.waiting import wait_until
from localcluster import images

NAME = "watcher"
COMPACTED = "required revision has been compacted"


@dataclass(frozen=True)
class Watcher:
    """A pod that runs `etcdctl watch`, which reconnects by itself.

    It is run again from the same revision when it ends for another reason than a compaction: members without
    a leader end it.
    """

    space: Space

    def log(self) -> str:
        """What it has printed."""
        return self.space.kubectl("logs", NAME)

    def await_event(self) -> None:
        """Wait until it has received a write."""
        wait_until(lambda: PREFIX in self.log(), lambda: f"the watcher receives a write: {self.log()}")

    def await_compacted(self) -> None:
        """Wait until it has learned that what it watches is compacted, and has ended for that reason."""
        wait_until(lambda: COMPACTED in self.log(), lambda: f"the watch is canceled: {self.log()[-500:]}")


def assert_compacted(space: Space, address: str, revision: int) -> None:
    """A watch that is resumed at this revision is canceled, so that its client reads everything again."""
    watch = (f"--endpoints=http://{address}:2379", "watch", f"--rev={revision}", "--prefix", PREFIX)
    done = etcdctl(space.testbed, *watch)
    assert COMPACTED in done.stdout + done.stderr


def watcher(space: Space, service: str) -> Watcher:
    """Watch the keys of `Load` through a Service; the pod complies with the standard `restricted`."""
    watch = f"etcdctl --endpoints=http://{service}:2379 watch --rev=1 --prefix {PREFIX}"
    space.kubectl.create(_pod(f"exec 3>&1; until {watch} 2>&1 >&3 | grep compacted; do sleep 1; done"))
    return Watcher(space)


def _pod(script: str) -> Document:
    container = {
        "name": "etcdctl",
        "image": images.ETCD_SHELL,
        "command": ["/bin/sh", "-c", script],
        "securityContext": RESTRICTED_CONTAINER,
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": NAME},
        "spec": {
            "restartPolicy": "Never",
            "automountServiceAccountToken": False,
            "securityContext": RESTRICTED_POD,
            "containers": [container],
        },
    }
