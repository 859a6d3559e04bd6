"""What can be wrong with certificates and keys.

The message is one line that says what to do; it never contains a key, nor text of a file.
"""

from etcd_operator.errors import TerminalError


class BadCertificate(TerminalError):
    """A certificate or a key that is given, or asked for, cannot be used."""


class ClockSkew(TerminalError):
    """Our clock is off: what is issued now would not be valid for others, or not for as long as it should."""
