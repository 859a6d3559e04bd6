"""Runs kubectl against one Kubernetes: for `hack/cluster`, the workflows and the system tests.

Promises: the kubeconfig is explicit, so neither `$KUBECONFIG` nor `~/.kube/config` has any influence; every
call has a deadline.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

from .commands import DEADLINE, CommandError, clean_environment, completed


class KubectlError(CommandError, AssertionError):
    """kubectl ended with an error; `stderr` is what it printed there.

    An AssertionError as well, so that a test that waits takes it for "not yet".
    """

    def __init__(self, command: str, stderr: str) -> None:
        super().__init__(f"{command}: {' '.join(stderr.split())}")
        self.stderr = stderr


@dataclass(frozen=True, slots=True, kw_only=True)
class Kubectl:
    """kubectl for one Kubernetes, in one namespace (none: kubectl's own default).

    environment is evaluated for each call; `deadline` in seconds is that of a call without one of its own;
    `is_echoed` prints each command as a user would type it.
    """

    program: str | Path
    kubeconfig: Path
    namespace: str = ""
    options: tuple[str, ...] = ()
    environment: Callable[[], Mapping[str, str]] = clean_environment
    deadline: float = DEADLINE
    is_echoed: bool = False

    def within(self, namespace: str) -> Kubectl:
        """Return the same for another namespace."""
        return replace(self, namespace=namespace)

    def command(self, *arguments: str) -> list[str]:
        """Return the command line, for a process that the caller runs itself, in `environment()`."""
        where = [f"--kubeconfig={self.kubeconfig}", *self.options]
        return [str(self.program), *where, *self._namespace_option(), *arguments]

    def __call__(
        self, *arguments: str, stdin: str | None = None, check: bool = True, deadline: float | None = None
    ) -> str:
        """Return what a command printed; with `check` a failure is a KubectlError, else stderr is added."""
        done = self.completed(*arguments, stdin=stdin, deadline=deadline)
        if done.returncode == 0:
            return done.stdout
        if check:
            raise KubectlError(f"kubectl {' '.join(arguments)}", done.stderr.strip())
        return done.stdout + done.stderr

    def completed(
        self, *arguments: str, stdin: str | None = None, deadline: float | None = None
    ) -> CompletedProcess[str]:
        """Return a command that has ended, with its exit code, whatever that is, and both outputs."""
        if self.is_echoed:
            print("$ kubectl", *(["-n", self.namespace] if self.namespace else []), *arguments, flush=True)
        return completed(
            self.command(*arguments), stdin=stdin, env=self.environment(), deadline=deadline or self.deadline
        )

    def json(self, *arguments: str) -> Any:
        """Return the output as decoded JSON."""
        return json.loads(self(*arguments, "--output=json"))

    def find(self, *arguments: str) -> dict[str, Any]:
        """Return what `kubectl get` finds, decoded; empty if there is nothing."""
        text = self("get", *arguments, "--ignore-not-found", "--output=json")
        return dict(json.loads(text)) if text.strip() else {}

    def table(self, *arguments: str) -> list[dict[str, str]]:
        """Return the rows of a table, each by the names of its columns."""
        lines = self(*arguments).splitlines()
        if not lines:
            return []
        columns = lines[0].split()
        return [dict(zip(columns, line.split(), strict=False)) for line in lines[1:]]

    def apply(self, document: Any) -> str:
        """Run `kubectl apply -f -` with one document or a list of them."""
        return self("apply", "-f", "-", stdin=as_stream(document))

    def create(self, document: Any) -> str:
        """Run `kubectl create -f -` with one document or a list of them."""
        return self("create", "-f", "-", stdin=as_stream(document))

    def is_ready(self) -> bool:
        """Return whether the API server reports that it is ready."""
        try:
            return self("get", "--raw", "/readyz").strip() == "ok"
        except CommandError:
            return False

    def _namespace_option(self) -> list[str]:
        return [f"--namespace={self.namespace}"] if self.namespace else []


def as_stream(document: Any) -> str:
    """Return a document, or a list of them, as kubectl reads it (JSON is YAML)."""
    documents = document if isinstance(document, list) else [document]
    return "\n---\n".join(json.dumps(each) for each in documents)


def ready_nodes(kubectl: Kubectl) -> dict[str, bool]:
    """Return node name -> whether it is Ready."""
    return {each["metadata"]["name"]: is_ready(each) for each in kubectl.find("nodes").get("items", [])}


def is_ready(found: Mapping[str, Any]) -> bool:
    """Return whether a Node or Pod has the condition Ready."""
    conditions = found.get("status", {}).get("conditions", [])
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)


def is_rolled_out(deployment: Mapping[str, Any]) -> bool:
    """Return whether a Deployment's newest pods, and only those, serve."""
    if not deployment:
        return False
    status, wanted = deployment.get("status", {}), deployment["spec"]["replicas"]
    is_seen = status.get("observedGeneration") == deployment["metadata"]["generation"]
    return is_seen and all(
        status.get(key) == wanted for key in ("replicas", "updatedReplicas", "readyReplicas")
    )
