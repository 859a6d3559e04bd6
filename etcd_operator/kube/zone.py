"""The domain of the names of Services, like cluster.local: as the resolver of this pod completes names."""

from contextlib import suppress
from pathlib import Path

DEFAULT = "cluster.local"
RESOLVER = Path("/etc/resolv.conf")


def own_zone() -> str:
    """The domain; the usual one where this process runs outside of Kubernetes."""
    with suppress(OSError, UnicodeDecodeError):
        return zone_in(RESOLVER.read_text()) or DEFAULT
    return DEFAULT


def zone_in(resolver: str) -> str:
    """The domain in such a file, as the kubelet writes it: `search NS.svc.ZONE svc.ZONE`; empty without."""
    lines = (line.split() for line in resolver.splitlines())
    searched = (word for words in lines if words[:1] == ["search"] for word in words[1:])
    return next(
        (word.removeprefix("svc.").strip(".").lower() for word in searched if word.startswith("svc.")), ""
    )
