"""The names of stored backups: `<etcd version>_<revision, 16 hex digits>_etcd.backup`.

A name is only a name: whether there is such a backup, its manifest shows.
"""

import re
from dataclasses import dataclass

_NAME = re.compile(r"([0-9]+\.[0-9]+\.[0-9]+[0-9A-Za-z.+-]*)_([0-9a-f]{16})_etcd\.backup")


@dataclass(frozen=True, slots=True)
class Name:
    """A name in its parts. revision: etcd's at the moment of the snapshot."""

    etcd_version: str
    revision: int

    def __str__(self) -> str:
        return f"{self.etcd_version}_{self.revision:016x}_etcd.backup"


def parse(text: str) -> Name | None:
    """The parts of a name; None if it is not one of these."""
    found = _NAME.fullmatch(text)
    return Name(found[1], int(found[2], 16)) if found is not None else None
