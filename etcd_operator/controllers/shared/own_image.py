"""The operator's own image, which the pods that it makes for itself run.

They are the Jobs of backups and restores, backup tools, the first step of seeds, and readers of survivors.
"""

from dataclasses import dataclass, field
from typing import Any

from etcd_operator.errors import NotFound, TerminalError
from etcd_operator.keys import Key
from etcd_operator.kube import resources
from etcd_operator.kube.client import Client
from etcd_operator.kube.own_pod import OwnPod

CONTAINER = "etcd-operator"
"""The name of the operator's container, as in the manifests, if its pod has several."""

HOW = "run the operator with --backup-image"


class ImageUnknown(TerminalError):
    """Nothing shows which image is the operator's own."""


@dataclass(kw_only=True)
class OwnImage:
    """`given`, or what the pod of this process runs. It is read once: a pod keeps its image."""

    client: Client
    pod: OwnPod | None
    given: str = ""
    _known: str = field(default="", init=False)

    def __call__(self) -> str:
        """The image. Raises `ImageUnknown`, and the errors of `Client`."""
        self._known = self._known or self.given or self._read()
        return self._known

    def _read(self) -> str:
        if self.pod is None:
            raise ImageUnknown(f"the operator does not run in a pod of its own, so it has no image: {HOW}")
        try:
            found = self.client.get(resources.PODS, Key(self.pod.namespace, self.pod.name), dict[str, Any])
        except NotFound as error:
            raise ImageUnknown(f"the operator's own pod {self.pod.name} does not exist: {HOW}") from error
        containers: dict[str, str] = {
            each["name"]: each.get("image", "") for each in found["spec"]["containers"]
        }
        if len(containers) == 1:
            return next(iter(containers.values()))
        if CONTAINER not in containers:
            raise ImageUnknown(f"no container of the pod {self.pod.name} is named {CONTAINER}: {HOW}")
        return containers[CONTAINER]
