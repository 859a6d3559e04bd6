"""Pods with a stock etcdctl, which mount a Secret for clients as an application does."""

from e2e.support.clusters import RESTRICTED_CONTAINER, RESTRICTED_POD, Document
from e2e.support.shell import PATIENT, SLEEP
from e2e.support.space import Space
from e2e.support.waiting import LONG, answered

FOLDER = "/tls"


class Application:
    """A pod with the certificate in `secret`. login: `user:password`, for a user with a password."""

    def __init__(self, space: Space, cluster: Document, name: str, secret: str, *, login: str = "") -> None:
        self._space, self._name = space, name
        own = (f"--cert={FOLDER}/tls.crt", f"--key={FOLDER}/tls.key", f"--cacert={FOLDER}/ca.crt")
        at = f"--endpoints=https://{cluster['metadata']['name']}:2379"
        user = (f"--user={login}",) if login else ()
        self._command = ("exec", name, "--", "etcdctl", *PATIENT, at, *own, *user)
        container = {
            "name": "client",
            "image": "localhost/etcd-shell:dev",
            "command": ["/bin/sh", "-c", SLEEP],
            "securityContext": RESTRICTED_CONTAINER,
            "volumeMounts": [{"name": "tls", "mountPath": FOLDER, "readOnly": True}],
        }
        pod = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name},
            "spec": {
                "containers": [container],
                "volumes": [{"name": "tls", "secret": {"secretName": secret}}],
                "restartPolicy": "Never",
                "securityContext": RESTRICTED_POD,
            },
        }
        space.kubectl.create(pod)
        ready = (f"pod/{name}", "--for=condition=Ready", f"--timeout={LONG:g}s")
        space.kubectl("wait", *ready, deadline=LONG + 30)

    def run(self, *arguments: str) -> str:
        """What etcdctl prints; it is run again until it succeeds."""
        what = f"etcdctl {' '.join(arguments)} succeeds in {self._name}"
        return answered(lambda: self._space.kubectl(*self._command, *arguments), what)

    def attempt(self, *arguments: str) -> str:
        """What etcdctl prints, run once, whether it succeeds or not."""
        return self._space.kubectl(*self._command, *arguments, check=False)
