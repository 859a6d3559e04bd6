"""What can be wrong with a backup, or with the keys that it needs.

    BackupError (TerminalError)
      Damaged            bytes are missing, changed, moved or foreign
        DamagedManifest  the manifest is not one
      UnknownFormat      written by a newer operator
      WrongKey           encrypted with a key that was not given
      BadKey             a file of keys has no usable key

The message is a sentence that says what to do; it never contains a key.
"""

from etcd_operator.errors import TerminalError


class BackupError(TerminalError):
    """A backup cannot be made or read, and a repetition does not help."""


class Damaged(BackupError):
    """The bytes are not those that were stored: truncated, changed, moved, or of another object."""


class DamagedManifest(Damaged):
    """A manifest cannot be read, or contradicts itself."""


class UnknownFormat(BackupError):
    """A newer operator wrote this; the message says which version reads it."""


class WrongKey(BackupError):
    """The backup is encrypted with a key that is not among those given."""


class BadKey(BackupError):
    """A file or directory of keys cannot be used; the message says why, without the key."""
