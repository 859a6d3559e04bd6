"""The documents' way of writing: a whole object, by PUT, through `kubectl proxy`."""

import json
import subprocess
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager

from e2e.support.clusters import Document
from localcluster.kubectl import Kubectl


@contextmanager
def proxy(kubectl: Kubectl) -> Iterator[str]:
    """`kubectl proxy` on a free port; its address."""
    command = kubectl.command("proxy", "--port=0")
    print("$ kubectl proxy --port=0", flush=True)
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=kubectl.environment()) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()  # Starting to serve on 127.0.0.1:PORT
            yield f"http://{line.split()[-1]}"
        finally:
            process.terminate()


def put_whole(kubectl: Kubectl, namespace: str, body: Document) -> Document:
    """PUT a coreos.com cluster as the documents do, without resourceVersion; what is stored then."""
    path = f"/apis/{body['apiVersion']}/namespaces/{namespace}/etcdclusters/{body['metadata']['name']}"
    with proxy(kubectl) as address:
        request = urllib.request.Request(
            f"{address}{path}",
            data=json.dumps(body).encode(),
            method="PUT",
            headers={"Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=60) as answer:
            assert answer.status == 200, answer.status
            stored: Document = json.loads(answer.read())
            return stored
