"""etcdctl: on this machine, and in the pod with a shell that the documents use inside of the cluster."""

import subprocess

from e2e.support.space import Space
from e2e.support.testbed import Testbed
from e2e.support.waiting import LONG, answered

SLEEP = "while true; do sleep 30; done;"
NAME = "etcd-shell"

PATIENT = ("--dial-timeout=10s", "--command-timeout=30s")
"""Options of etcdctl, whose defaults of 2 and 5 s a machine that stalls exceeds."""


def etcdctl(testbed: Testbed, *arguments: str) -> "subprocess.CompletedProcess[str]":
    """Run etcdctl on this machine."""
    print("$ etcdctl", *arguments, flush=True)
    return subprocess.run(
        ["etcdctl", *PATIENT, *arguments],
        env=testbed.environment(),
        capture_output=True,
        text=True,
        timeout=LONG,
        check=False,
    )


def start_shell(space: Space) -> None:
    """Run the pod and wait until commands can be run in it."""
    image = f"--image=localhost/{NAME}:dev"
    space.kubectl("run", NAME, image, "--restart=Never", "--", "/bin/sh", "-c", SLEEP)
    ready = (f"pod/{NAME}", "--for=condition=Ready", f"--timeout={LONG:g}s")
    space.kubectl("wait", *ready, deadline=LONG + 30)


def etcdctl_in_shell(space: Space, *arguments: str) -> str:
    """Run etcdctl in it; what it printed.

    It is run again until it succeeds: names and addresses of Services are published with a delay.
    """
    command = ("exec", NAME, "--", "etcdctl", *PATIENT, *arguments)
    return answered(lambda: space.kubectl(*command), f"etcdctl {' '.join(arguments)} succeeds")


def etcdctl_in_member(space: Space, pod: str, *arguments: str) -> str:
    """Run the etcdctl of a member's own image, beside it; what it printed."""
    return space.kubectl("exec", pod, "--", "etcdctl", *PATIENT, *arguments)
