"""Pods as the API server returns them."""

from datetime import UTC, datetime
from typing import Any

import msgspec

from etcd_operator.decoding import read
from etcd_operator.kube.pod_views import Pod

OLD, YOUNG = "2026-01-01T00:00:00Z", "2026-01-01T00:09:56Z"
NOW = datetime(2026, 1, 1, 0, 10, tzinfo=UTC)


def pod(
    container: dict[str, Any] | None = None, *, created: str = OLD, deleted: str | None = None, **status: Any
) -> Pod:
    """A pod with one etcd container in this state."""
    statuses = [{"name": "sidecar", "restartCount": 9}]
    if container is not None:
        statuses.append({"name": "etcd", **container})
    body = {
        "metadata": {"name": "db-0", "uid": "u", "creationTimestamp": created, "deletionTimestamp": deleted},
        "status": {"podIP": "10.0.0.1", "containerStatuses": statuses, **status},
    }
    return read(msgspec.json.encode(body), Pod)


RUNNING: dict[str, Any] = {"state": {"running": {}}}
BACK_OFF = {"state": {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off"}}, "restartCount": 4}


def ended(message: str, code: int = 1) -> dict[str, Any]:
    return {"terminated": {"exitCode": code, "reason": "Error", "message": message}}


def annotated(group: str, *, members: str, state: str, serves: str = "") -> Pod:
    """A gated pod with these annotations, and this status of its gate's condition."""
    conditions = [{"type": "Ready", "status": "True"}]
    conditions += [{"type": f"{group}/member-serves", "status": serves}] if serves else []
    annotations = {f"{group}/initial-cluster": members, f"{group}/initial-cluster-state": state}
    body = msgspec.to_builtins(pod(RUNNING, conditions=conditions))
    body["metadata"]["annotations"] = annotations
    body["spec"] = {"readinessGates": [{"conditionType": f"{group}/member-serves"}]}
    return msgspec.convert(body, Pod)
