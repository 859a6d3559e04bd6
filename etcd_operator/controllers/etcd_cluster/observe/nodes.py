"""Which nodes have been silent for too long.

When a node stops reporting, its controller sets Ready to false on the pods that were ready, which shows it
(see `members.pod_facts`). A pod that was not ready keeps its last condition, whatever happens to the node:
there only the Node itself shows it. It is read live, because that is seldom needed: for a member that is
silent and was made long before. An operator for one namespace may not read nodes; there, such a member is
lost when its pod is deleted, by default five minutes later.
"""

import threading

import structlog

from etcd_operator.api.meta import condition_of
from etcd_operator.clock import Clock
from etcd_operator.controllers.etcd_cluster.members.pod_facts import LOST_NODE_GRACE
from etcd_operator.errors import Forbidden, NotFound, OperatorError
from etcd_operator.formats import instant
from etcd_operator.keys import Key
from etcd_operator.kube.client import Client
from etcd_operator.kube.resources import NODES
from etcd_operator.kube.views import Node

RECHECK = 10.0
"""Seconds for which what was read is used: many members may run on one node."""

FORBIDDEN_RECHECK = 600.0
"""Seconds until a node that may not be read is requested again."""

log = structlog.get_logger()


class Nodes:
    """Reads nodes by name. Safe from any thread; raises nothing: what is not known is not lost."""

    def __init__(self, client: Client, clock: Clock) -> None:
        self._client = client
        self._clock = clock
        self._known: dict[str, tuple[float, Node | None]] = {}
        """Nodes as read, each with the time (monotonic) until which that is used."""
        self._lock = threading.Lock()

    def is_lost(self, name: str) -> bool:
        """Whether its kubelet has been silent for longer than members on it are waited for."""
        node = self._read(name)
        ready = condition_of(node.status.conditions, "Ready") if node else None
        if ready is None or ready.status != "Unknown" or not ready.last_transition_time:
            return False
        return self._clock.now() - instant(ready.last_transition_time) > LOST_NODE_GRACE

    def _read(self, name: str) -> Node | None:
        now = self._clock.monotonic()
        with self._lock:
            until, node = self._known.get(name, (now, None))
        if until <= now:
            node, seconds = self._fetch(name)
            with self._lock:
                self._known[name] = now + seconds, node
        return node

    def _fetch(self, name: str) -> tuple[Node | None, float]:
        try:
            return self._client.get(NODES, Key("", name), Node), RECHECK
        except Forbidden:
            return None, FORBIDDEN_RECHECK
        except NotFound:
            return None, RECHECK
        except OperatorError as error:
            log.info("node_not_read", node=name, error=str(error))
            return None, RECHECK
