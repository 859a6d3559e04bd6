"""What a member presents in a TLS handshake, and why one side refuses the other.

gRPC hides both: all refusals look alike. Python's `ssl` names the alert, and shows the certificate.

Promises:
- the whole takes no longer than its deadline, and receives at most `LARGEST` bytes;
- no key is written to a file system: OpenSSL reads it from memory of this process;
- a server that accepts the client's certificate gets at most one request, which changes nothing.

With TLS 1.3 the handshake of a client ends before the server has seen its certificate. Acceptance shows in a
session ticket, which Go sends right after that, or else in a reply.
"""

import os
import re
import socket
import ssl
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from etcd_operator.errors import Unavailable
from etcd_operator.etcd.channel import TlsCredentials
from etcd_operator.pki.description import Description, describe
from etcd_operator.pki.errors import BadCertificate

LARGEST = 256 * 1024
"""In bytes."""

NO_TLS = "no TLS"
"""The refusal of a port that answers without TLS."""

_QUIET = 0.5
"""Seconds without a sign of acceptance or refusal after which a request is sent."""

_REQUEST = b"GET /version HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
_ALERT = re.compile("(?:SSLV3|TLSV1|TLSV13)_ALERT_(.+)")
_OTHER_PROTOCOL = {"WRONG_VERSION_NUMBER", "UNKNOWN_PROTOCOL", "HTTP_REQUEST", "PACKET_LENGTH_TOO_LONG"}
_HEADER = 5
"""Bytes before each record of TLS; the last two are its length."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Handshake:
    """The outcome. Both sides accept each other if neither text has a reason."""

    leaf: Description | None  # what the server presents; None if that cannot be read
    refusal: str = ""  # the server's alert to this client, like "certificate required" or "unknown ca"
    distrust: str = ""  # why this client does not accept the server, in OpenSSL's words

    @property
    def is_accepted(self) -> bool:
        """Whether each side accepts the other."""
        return not self.refusal and not self.distrust


def shake(endpoint: str, credentials: TlsCredentials, *, deadline: float = 2.0) -> Handshake:
    """A handshake with the server at `endpoint` (`host:port`), which is verified by `credentials`.

    If it is not accepted, a second connection reads what it presents. Raises `Unavailable` if there is no
    server, or it does not answer within `deadline` seconds or closes the connection without an alert, and
    `BadCertificate` if the credentials cannot be used.
    """
    end = time.monotonic() + deadline
    try:
        return _shake(endpoint, credentials, end, verifies=True)
    except ssl.SSLCertVerificationError as error:
        found = _shake(endpoint, credentials, end, verifies=False)
        return Handshake(leaf=found.leaf, refusal=found.refusal, distrust=error.verify_message)


def _shake(endpoint: str, credentials: TlsCredentials, end: float, *, verifies: bool) -> Handshake:
    """Raises `SSLCertVerificationError` if the server is not accepted."""
    context = _context(credentials, verifies=verifies)
    host, _, port = endpoint.rpartition(":")
    host = host.strip("[]")
    try:
        with socket.create_connection((host, int(port)), _left(end, endpoint)) as connection:
            side = _Side(connection, context, credentials.server_name or host, end, endpoint)
            return side.outcome()
    except ssl.SSLError:
        raise
    except OSError as error:
        raise Unavailable(f"no TLS handshake with {endpoint}: {error.strerror or error}") from error


class _Side:
    """The client's side of one connection: TLS in memory, so that each byte and each wait is counted."""

    def __init__(
        self, connection: socket.socket, context: ssl.SSLContext, name: str, end: float, endpoint: str
    ) -> None:
        self._connection = connection
        self._end = end
        self._endpoint = endpoint
        self._received = 0
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_hostname=name)

    def outcome(self) -> Handshake:
        """Shake hands, and learn whether the server accepts the certificate."""
        leaf = None
        try:
            self._do_handshake()
            leaf = _described(self._tls.getpeercert(binary_form=True))
            if self._tls.version() == "TLSv1.3":
                self._await_acceptance()
        except ssl.SSLCertVerificationError:
            raise
        except ssl.SSLError as error:
            return Handshake(leaf=leaf, refusal=_reason(error))
        return Handshake(leaf=leaf)

    def _do_handshake(self) -> None:
        while True:
            try:
                self._tls.do_handshake()
            except ssl.SSLWantReadError:
                self._send()
                self._incoming.write(self._receive(self._end))
            else:
                return self._send()

    def _await_acceptance(self) -> None:
        """Return on the first record that is no alert; after a request the connection may also end."""
        pending, has_asked = self._incoming.read(), False
        while not _is_record(pending):
            try:
                pending += self._receive(self._end if has_asked else time.monotonic() + _QUIET)
            except TimeoutError:
                if has_asked:
                    raise
                has_asked = True
                self._tls.write(_REQUEST)
                self._send()
        self._incoming.write(pending)
        try:
            self._tls.read(1)
        except ssl.SSLWantReadError:
            return  # a session ticket
        except ssl.SSLZeroReturnError:
            if not has_asked:
                raise ConnectionResetError("the server closed the connection") from None

    def _send(self) -> None:
        self._connection.settimeout(_left(self._end, self._endpoint))
        self._connection.sendall(self._outgoing.read())

    def _receive(self, until: float) -> bytes:
        """Raises `TimeoutError`; Unavailable once nothing comes any more, or too much has come."""
        self._connection.settimeout(
            min(_left(self._end, self._endpoint), max(until - time.monotonic(), 0.001))
        )
        data = self._connection.recv(16 * 1024)
        self._received += len(data)
        if not data:
            raise Unavailable(f"no TLS handshake with {self._endpoint}: the server closed the connection")
        if self._received > LARGEST:
            raise Unavailable(f"no TLS handshake with {self._endpoint}: more than {LARGEST} bytes received")
        return data


def _is_record(data: bytes) -> bool:
    """Whether data begins with a whole record: OpenSSL waits for the rest of one like after a ticket."""
    return len(data) >= _HEADER and len(data) >= _HEADER + int.from_bytes(data[3:_HEADER])


def _left(end: float, endpoint: str) -> float:
    left = end - time.monotonic()
    if left <= 0:
        raise Unavailable(f"no TLS handshake with {endpoint} in time")
    return left


def _described(der: bytes | None) -> Description | None:
    if der is None:
        return None
    try:
        return describe(ssl.DER_cert_to_PEM_cert(der).encode())
    except BadCertificate:
        return None


def _reason(error: ssl.SSLError) -> str:
    """The alert in the words of the standard."""
    reason = error.reason or ""
    if reason in _OTHER_PROTOCOL:
        return NO_TLS
    alert = _ALERT.fullmatch(reason)
    return (alert.group(1) if alert else reason or "unknown").replace("_", " ").lower()


def _context(credentials: TlsCredentials, *, verifies: bool) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["h2", "http/1.1"])  # as clients do; servers of gRPC may require it
    try:
        if verifies:
            context.load_verify_locations(cadata=credentials.ca.decode())
        else:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        if credentials.certificate is not None and credentials.key is not None:
            with _in_memory(credentials.certificate + b"\n" + credentials.key) as path:
                context.load_cert_chain(path)
    except (ssl.SSLError, ValueError) as error:
        reason = error.reason if isinstance(error, ssl.SSLError) else "not PEM"
        raise BadCertificate(f"the credentials for a TLS handshake cannot be used: {reason}") from None
    return context


@contextmanager
def _in_memory(data: bytes) -> Iterator[str]:
    """A path that reads as `data` as long as the context lasts, for this process only."""
    number = os.memfd_create("credentials")
    try:
        with os.fdopen(os.dup(number), "wb") as file:
            file.write(data)
        yield f"/proc/self/fd/{number}"
    finally:
        os.close(number)
