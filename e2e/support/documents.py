"""Runs the commands of a document as they are printed.

Indented blocks are for bash, fenced ones (yaml) are files.
"""

import os
import re
import subprocess
from dataclasses import dataclass, replace
from pathlib import Path

from e2e.support.space import Space
from e2e.support.testbed import ROOT

SECONDS = 900.0


@dataclass(frozen=True)
class Shell:
    """bash in a folder, with kubectl for the namespace of a test."""

    space: Space
    folder: Path

    def __call__(self, command: str) -> str:
        """Run a block; what it printed. Raises AssertionError where one of its commands fails."""
        print(f"$ {command}")
        done = subprocess.run(
            ["bash", "-e", "-o", "pipefail", "-c", command],
            cwd=self.folder,
            env={**os.environ, "PATH": self.space.testbed.path, "KUBECONFIG": str(self._kubeconfig())},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        print(done.stdout, done.stderr)
        assert done.returncode == 0, f"{command}: {done.stderr}"
        return done.stdout

    def _kubeconfig(self) -> Path:
        """The kubeconfig of the test bed, with the namespace of the test as its default."""
        made = self.folder / "kubeconfig"
        if not made.exists():
            made.write_bytes(self.space.testbed.kubeconfig.read_bytes())
            kubectl = replace(self.space.kubectl, kubeconfig=made, is_echoed=False)
            kubectl("config", "set-context", "--current")  # with the namespace of the test
        return made


def section(document: str, heading: str) -> str:
    """The text under a heading, up to the next one of any level."""
    text = (ROOT / "docs" / document).read_text()
    found = re.search(rf"^#+ {re.escape(heading)}\n(.*?)(?=^#+ |\Z)", text, re.MULTILINE | re.DOTALL)
    assert found is not None, f"{document} has no section {heading!r}"
    return found[1]


def commands(text: str) -> list[str]:
    """Its indented blocks, outside of fenced ones."""
    unfenced = re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
    blocks = re.findall(r"(?:^    .*\n)+", unfenced, re.MULTILINE)
    return [re.sub(r"^    ", "", block, flags=re.MULTILINE) for block in blocks]


def manifest(text: str) -> str:
    """Its YAML block."""
    found = re.search(r"^```yaml\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    assert found is not None, "no YAML"
    return found[1]
