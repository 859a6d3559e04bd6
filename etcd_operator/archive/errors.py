"""What can be wrong with a backup, with the keys that it needs, or with its source.

The message is a sentence that says what to do; it never contains a key.
"""

from etcd_operator.errors import OperatorError, TerminalError


class BackupError(TerminalError):
    """A backup cannot be made or read, and a repetition does not help."""


class Damaged(BackupError):
    """The bytes are not those that were stored: truncated, changed, moved, or of another object."""


class DamagedManifest(Damaged):
    """A manifest cannot be read, or contradicts itself."""


class NotRestorable(Damaged):
    """The backup is what its manifest describes, but etcd does not serve the same data after a restore."""


class UnknownFormat(BackupError):
    """A newer operator wrote this; the message says which version reads it."""


class WrongKey(BackupError):
    """The backup is encrypted with a key that is not among those given."""


class NotEncrypted(BackupError):
    """Keys are given, but what is stored was not encrypted with any."""


class BadKey(BackupError):
    """A file or directory of keys cannot be used; the message says why, without the key."""


class ManifestMissing(BackupError):
    """The object is stored, but its manifest is not: it does not count as a backup."""


class NotABackup(BackupError):
    """There is no backup of that name; the message says what is there."""


class FetchError(BackupError):
    """The file cannot be written; the message says why."""


class RestoreError(BackupError):
    """The data directory cannot be written, or something is in its place; the message says why."""


class ProgramMissing(BackupError):
    """etcd or etcdutl is missing or too old; the message says which version is needed."""


class ProgramFailed(BackupError):
    """A program ended with an error or exceeded its time limit; the message has its last line."""


class SourceError(OperatorError):
    """No snapshot can be read; the message says why and what to do."""


class NotReachable(SourceError):
    """No endpoint answers."""


class NoQuorum(SourceError):
    """No endpoint can confirm a read with a quorum."""


class AccessRefused(SourceError):
    """etcd requires a user, or another one."""


class SnapshotDamaged(SourceError):
    """The snapshot is not what etcd sent, or no database: nothing was stored."""


class SnapshotOld(SourceError):
    """The snapshot lacks writes that its source had: another member sent it. Nothing was stored."""
