"""What is read of the pod of a backup tool."""

from typing import Any

import msgspec
import pytest

from etcd_operator.controllers.backup_tool.observe import pod_state
from etcd_operator.kube.pod_views import Pod

ENDED = {"terminated": {"exitCode": 3}}
PULL = {"waiting": {"reason": "ErrImagePull", "message": "gone"}}
CRASHES = {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 10s"}}
UNSCHEDULED = {
    "type": "PodScheduled",
    "status": "False",
    "reason": "Unschedulable",
    "message": "no node fits",
}


def tool(**states: Any) -> dict[str, Any]:
    return {"containerStatuses": [{"name": "backup", **states}]}


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        pytest.param({}, "", id="nothing is known"),
        pytest.param({"conditions": [UNSCHEDULED]}, "Unschedulable: no node fits", id="it has no node"),
        pytest.param(tool(state=PULL), "ErrImagePull: gone", id="its container waits"),
        pytest.param(
            tool(state=CRASHES, lastState=ENDED), "CrashLoopBackOff: back-off 10s", id="it ended, and waits"
        ),
        pytest.param(
            tool(state={"running": {}}, lastState=ENDED),
            "it ended with exit code 3, see `kubectl logs p --previous`",
            id="it ended, and runs again",
        ),
        pytest.param(
            tool(state={"running": {}}, lastState={"terminated": {"exitCode": 137, "reason": "OOMKilled"}}),
            "OOMKilled: the container backup was killed: its node ran out of memory",
            id="it was killed, and runs again",
        ),
        pytest.param(
            {
                **tool(state={"waiting": {"reason": "PodInitializing"}}),
                "initContainerStatuses": [{"name": "added", "state": PULL}],
            },
            "ErrImagePull: gone",
            id="an init container waits that somebody has added",
        ),
    ],
)
def test_what_a_pod_waits_for(status: dict[str, Any], expected: str) -> None:
    pod = msgspec.convert({"metadata": {"name": "p"}, "status": status}, Pod)
    assert pod_state(pod).waits_for == expected
