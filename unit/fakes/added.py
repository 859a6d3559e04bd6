"""Ephemeral containers of pods: they start in a running pod, and nothing restarts them."""

from collections.abc import Collection

from unit.fakes.apiserver import Json


def started(pod: Json, unpullable: Collection[str], now: str) -> list[Json]:
    """The statuses of all of them, once those that can start have; those of images in `unpullable` wait."""
    before = {each["name"]: each for each in pod["status"].get("ephemeralContainerStatuses") or ()}
    found = []
    for container in pod["spec"].get("ephemeralContainers") or ():
        known = before.get(container["name"])
        if known is None or "waiting" in known["state"]:
            known = _begun(container, unpullable, now)
        found.append(known)
    return found


def _begun(container: Json, unpullable: Collection[str], now: str) -> Json:
    state: Json = {"running": {"startedAt": now}}
    if container["image"] in unpullable:
        state = {"waiting": {"reason": "ErrImagePull", "message": f"no such image: {container['image']}"}}
    return {"name": container["name"], "restartCount": 0, "state": state}


def ended(pod: Json, now: str, code: int) -> list[Json]:
    """The statuses of all of them, when their processes have ended with that exit code."""
    state = {"terminated": {"exitCode": code, "reason": "Error" if code else "Completed", "finishedAt": now}}
    statuses = pod["status"].get("ephemeralContainerStatuses") or ()
    return [{**each, "state": state} if "running" in each["state"] else each for each in statuses]
