"""Handshakes of Python's `ssl` in memory: both sides of a connection without sockets."""

import ssl
from pathlib import Path
from tempfile import TemporaryDirectory

from etcd_operator.pki.authority import KeyPair


def context(side: ssl.Purpose, *, ca: bytes, leaf: KeyPair | None) -> ssl.SSLContext:
    """Of a client (SERVER_AUTH) or a server (CLIENT_AUTH) that verifies the other side by `ca`."""
    made = ssl.create_default_context(side, cadata=ca.decode())
    made.verify_mode = ssl.CERT_REQUIRED
    made.verify_flags |= ssl.VERIFY_X509_STRICT
    if leaf is not None:
        with TemporaryDirectory() as folder:
            chain, key = Path(folder, "chain"), Path(folder, "key")
            chain.write_bytes(leaf.certificate)
            key.write_bytes(leaf.key)
            made.load_cert_chain(chain, key)
    return made


def shake(server: ssl.SSLContext, client: ssl.SSLContext, name: str) -> None:
    """A handshake, and one byte each way. Raises `ssl.SSLError` of the side that refuses first."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    sides = [
        client.wrap_bio(to_client, to_server, server_hostname=name),
        server.wrap_bio(to_server, to_client, server_side=True),
    ]
    ready = [False, False]
    while not all(ready):
        for number, side in enumerate(sides):
            if not ready[number]:
                try:
                    side.do_handshake()
                    ready[number] = True
                except ssl.SSLWantReadError:
                    pass
    for writer, reader in (sides, sides[::-1]):
        writer.write(b"x")
        assert reader.read(1) == b"x"
