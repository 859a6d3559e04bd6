"""What the HTTP API of the backup tool serves, and to whom."""

import hmac
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from etcd_operator.programs.backup_tool.inventory import ToolBackup
from etcd_operator.programs.backup_tool.restorable_backups import BackupChecker
from etcd_operator.programs.backup_tool.worker import Worker
from etcd_operator.storage.protocol import Store

_BEARER = re.compile(r"[Bb]earer +(\S+) *")


@dataclass(frozen=True, kw_only=True)
class Api:
    """What the server serves; find and open_store are safe from any thread."""

    worker: Worker
    checker: BackupChecker
    find: Callable[[str], ToolBackup | None]
    """The complete backup of a name, looked up in the store."""
    open_store: Callable[[], Store]
    token_file: Path
    is_alive: Callable[[], bool]

    def allows(self, authorization: str) -> bool:
        """Whether a request has the token; nobody has it while the file cannot be read, or is empty."""
        found = _BEARER.fullmatch(authorization)
        try:
            token = self.token_file.read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError):
            return False
        return found is not None and bool(token) and hmac.compare_digest(found[1].encode(), token.encode())
