"""The pod with a shell and etcdctl that the documents use to reach a cluster from inside."""

from e2e.support.space import Space

SLEEP = "while true; do sleep 30; done;"
NAME = "etcd-shell"


def start_shell(space: Space) -> None:
    """Run the pod and wait until commands can be run in it."""
    image = f"--image=localhost/{NAME}:dev"
    space.kubectl("run", NAME, image, "--restart=Never", "--", "/bin/sh", "-c", SLEEP)
    space.kubectl("wait", f"pod/{NAME}", "--for=condition=Ready", "--timeout=60s")


def etcdctl_in_shell(space: Space, *arguments: str) -> str:
    """Run etcdctl in it; what it printed."""
    return space.kubectl("exec", NAME, "--", "etcdctl", *arguments)
