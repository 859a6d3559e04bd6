"""kubectl as users type it: every command is printed, and so is what it answered when it fails."""

import json
import os
import subprocess
from dataclasses import dataclass, replace
from typing import Any

from e2e.support.testbed import Testbed


class KubectlError(AssertionError):
    """kubectl ended with an error; `stderr` is what it said."""

    def __init__(self, command: str, stderr: str) -> None:
        super().__init__(f"{command}: {stderr}")
        self.stderr = stderr


@dataclass(frozen=True)
class Kubectl:
    """Runs kubectl in one namespace (none: kubectl's own default); `is_quiet` prints no commands."""

    testbed: Testbed
    namespace: str = ""
    is_quiet: bool = False

    def within(self, namespace: str) -> "Kubectl":
        """The same for another namespace."""
        return replace(self, namespace=namespace)

    def __call__(self, *words: str, stdin: str | None = None, check: bool = True, timeout: float = 90) -> str:
        """What the command printed; with `check` a failure is a KubectlError, else its stderr is added."""
        if not self.is_quiet:
            print("$ kubectl", *(["-n", self.namespace] if self.namespace else []), *words, flush=True)
        done = subprocess.run(
            self.command(*words),
            input=stdin,
            capture_output=True,
            text=True,
            check=False,
            timeout=timeout,
            env=self.environment(),
        )
        if done.returncode == 0:
            return done.stdout
        if check:
            raise KubectlError(f"kubectl {' '.join(words)}", done.stderr.strip())
        return done.stdout + done.stderr

    def command(self, *words: str) -> list[str]:
        """The command line, for a process that the caller runs itself."""
        where = [f"--kubeconfig={self.testbed.kubeconfig}"]
        return ["kubectl", *where, *([f"--namespace={self.namespace}"] if self.namespace else []), *words]

    def environment(self) -> dict[str, str]:
        """The environment in which `command` finds kubectl."""
        return {**os.environ, "PATH": self.testbed.path}

    def json(self, *words: str) -> Any:
        """The answer as JSON."""
        return json.loads(self(*words, "-o", "json"))

    def table(self, *words: str) -> list[dict[str, str]]:
        """The rows of a table, each by the names of its columns."""
        lines = self(*words).splitlines()
        if not lines:
            return []
        columns = lines[0].split()
        return [dict(zip(columns, line.split(), strict=False)) for line in lines[1:]]

    def apply(self, document: Any) -> str:
        """`kubectl apply -f -` of one document or several."""
        return self("apply", "-f", "-", stdin=as_stream(document))

    def create(self, document: Any) -> str:
        """`kubectl create -f -` of one document or several."""
        return self("create", "-f", "-", stdin=as_stream(document))


def as_stream(document: Any) -> str:
    """A document, or a list of them, as kubectl reads it (JSON is YAML)."""
    documents = document if isinstance(document, list) else [document]
    return "\n---\n".join(json.dumps(each) for each in documents)
