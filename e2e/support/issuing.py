"""A stand-in of cert-manager for one namespace: the definition of Certificates, and a controller."""

import base64
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

from e2e.support.space import Space
from etcd_operator.kube.resources import CERTIFICATES
from etcd_operator.pki.authority import new_ca
from localcluster.kubectl import KubectlError
from unit.pki.certificates import issued, source

EVERY = 0.5
_ANY = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
DEFINITION: dict[str, Any] = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "certificates.cert-manager.io"},
    "spec": {
        "group": CERTIFICATES.group,
        "scope": "Namespaced",
        "names": {"plural": CERTIFICATES.plural, "singular": "certificate", "kind": CERTIFICATES.kind},
        "versions": [
            {
                "name": CERTIFICATES.version,
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "schema": {
                    "openAPIV3Schema": {"type": "object", "properties": {"spec": _ANY, "status": _ANY}}
                },
            }
        ],
    },
}


class CertManager:
    """It issues each Certificate once, and again after `change_ca`."""

    def __init__(self, space: Space) -> None:
        self._space = space
        self._lock = threading.Lock()
        self._issued: dict[str, str] = {}
        self.change_ca()

    def change_ca(self) -> None:
        """Another key, with which all is issued again."""
        with self._lock:
            self.ca = new_ca("the issuer", now=datetime.now(UTC), duration=timedelta(days=365))
            self._issued.clear()

    def step(self) -> None:
        """Issue what is asked for."""
        for found in self._space.api.all_of(CERTIFICATES, self._space.namespace):
            name, asked = found["metadata"]["name"], json.dumps(found["spec"])
            with self._lock:
                if self._issued.get(name) == asked:
                    continue
                self._issue(found)
                self._issued[name] = asked

    def _issue(self, found: dict[str, Any]) -> None:
        name, spec = found["metadata"]["name"], found["spec"]
        files = issued(spec, self.ca, datetime.now(UTC))
        data = {file: base64.b64encode(content).decode() for file, content in files.items()}
        labels = spec["secretTemplate"]["labels"]
        metadata = {"name": spec["secretName"], "labels": labels, "annotations": source(found)}
        kubectl = self._space.kubectl
        kubectl.apply({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": data})
        ready = {"type": "Ready", "status": "True", "reason": "Ready", "message": "is up to date"}
        told = {**ready, "observedGeneration": found["metadata"]["generation"]}
        status = json.dumps({"status": {"conditions": [told]}})
        kubectl("patch", str(CERTIFICATES), name, "--subresource=status", "--type=merge", f"--patch={status}")


@contextmanager
def cert_manager(space: Space) -> Iterator[CertManager]:
    """It runs until the end. The definition stays: another test may need it at the same time."""
    try:
        space.kubectl.create(DEFINITION)
    except KubectlError as error:
        if "AlreadyExists" not in str(error):
            raise
    space.kubectl("wait", "crd/certificates.cert-manager.io", "--for=condition=Established", "--timeout=60s")
    made, over, failures = CertManager(space), threading.Event(), list[BaseException]()

    def run() -> None:
        while not over.wait(EVERY):
            try:
                made.step()
            except Exception as error:  # noqa: BLE001 -- told at the end, if it is not over by then
                failures[:] = [error]
            else:
                failures.clear()

    thread = threading.Thread(target=run, name="cert-manager", daemon=True)
    thread.start()
    try:
        yield made
    finally:
        over.set()
        thread.join()
    assert not failures, failures
