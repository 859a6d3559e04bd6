"""Reads what a program connects to etcd with from a folder."""

from pathlib import Path

from etcd_operator.errors import TerminalError
from etcd_operator.etcd.channel import TlsCredentials
from etcd_operator.pods.contract import CA_FILE, CERTIFICATE_FILE, KEY_FILE, PASSWORD_FILE, USER_FILE

_CERTIFICATE, _KEY = "CERTIFICATE", "PRIVATE KEY"


class BadCredentials(TerminalError):
    """A file cannot be used; the text names it."""


def read_folder(folder: Path) -> TlsCredentials:
    """The credentials in a folder as `pods.contract` describes it. Raises `BadCredentials`.

    The kubelet replaces all files of a mounted Secret at once, but not between two reads of this: whoever
    reads while that happens reads a certificate without its key, and the next time both.
    """
    has_certificate = any((folder / name).exists() for name in (CERTIFICATE_FILE, KEY_FILE))
    return TlsCredentials(
        ca=read_pem(folder / CA_FILE, _CERTIFICATE),
        certificate=read_pem(folder / CERTIFICATE_FILE, _CERTIFICATE) if has_certificate else None,
        key=read_pem(folder / KEY_FILE, _KEY) if has_certificate else None,
    )


def read_user(folder: Path) -> tuple[str, str]:
    """Name and password of a user in a folder as `pods.contract` describes it. Raises `BadCredentials`."""
    user, password = (_read(folder / name).decode(errors="replace") for name in (USER_FILE, PASSWORD_FILE))
    return user.rstrip("\r\n"), password.rstrip("\r\n")


def read_pem(path: Path, kind: str) -> bytes:
    """A file with an entry of this kind. Raises `BadCredentials`."""
    data = _read(path)
    if f"{kind}-----".encode() not in data:
        raise BadCredentials(f"{path} has no {kind.lower()} in PEM format")
    return data


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise BadCredentials(f"cannot read {path}: {error.strerror}") from error
