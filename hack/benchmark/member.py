"""One etcd process on this machine, without Kubernetes, with a database of a chosen size."""

import os
import random
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import grpc

from e2e.support.testbed import TestbedError
from e2e.support.waiting import wait_until
from etcd_operator.controllers.shared.manifests.urls import CLIENT_PORT, endpoint
from etcd_operator.etcd import rpc_pb2 as pb
from etcd_operator.etcd.channel import Channels
from etcd_operator.etcd.client import EtcdClient
from localcluster.paths import Cache

VERSION = "3.6.16"
QUOTA = 8 << 30

PUTS = 500
"""In one transaction, which has to be smaller than etcd's limit of 1.5 MiB."""

VALUE_SIZE = 1024


class Member:
    """A running etcd; `address` is a loopback address of its own, so that its ports are the usual ones."""

    def __init__(self, folder: Path, process: "subprocess.Popen[bytes]", address: str) -> None:
        self.folder = folder
        self.process = process
        self.address = address
        self._channels = Channels()
        self._client = EtcdClient(self._channels, self.endpoint)

    @property
    def endpoint(self) -> str:
        """`host:port` for clients."""
        return endpoint(self.address, CLIENT_PORT)

    def until_ready(self) -> None:
        """Wait until it serves."""
        wait_until(lambda: self._client.has_quorum(deadline=1.0), "etcd serves", within=30)

    def fill(self, size: int, progress: Callable[[str], None]) -> None:
        """Write until the database has `size` bytes: values of 1 KiB that a compressor can halve."""
        numbers = random.Random(1)  # noqa: S311
        with grpc.insecure_channel(self.endpoint) as channel:
            call: Callable[..., bytes] = channel.unary_unary("/etcdserverpb.KV/Txn")
            written = 0
            while self._client.status().db_size < size:
                call(_transaction(written, numbers), timeout=60)
                written += PUTS
                if written % (400 * PUTS) == 0:
                    progress(f"  {written} keys written")

    def close(self) -> None:
        """Release the connections."""
        self._channels.close()


@contextmanager
def member(folder: Path) -> Iterator[Member]:
    """A new member with its data in `folder`, for as long as the `with` lasts."""
    address = f"127.78.{os.getpid() >> 8 & 255}.{os.getpid() & 255}"
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(_command(folder, address), stdout=log, stderr=log)
        running = Member(folder, process, address)
        try:
            running.until_ready()
            yield running
        finally:
            running.close()
            process.kill()
            process.wait(30)


def tool(name: str) -> Path:
    """A program of etcd's release; `ETCD_BIN` may name the folder of the versions. Raises `TestbedError`."""
    tools = Path(os.environ.get("ETCD_BIN") or Cache.of_user().tools)
    program = tools / f"etcd-{VERSION}" / name
    if not os.access(program, os.X_OK):
        raise TestbedError(f"{program} is missing: run hack/cluster build, or set ETCD_BIN")
    return program


def _command(folder: Path, address: str) -> list[str]:
    client, peer = f"http://{address}:{CLIENT_PORT}", f"http://{address}:2380"
    flags = {
        "name": "bench",
        "data-dir": str(folder / "data"),
        "listen-client-urls": client,
        "advertise-client-urls": client,
        "listen-peer-urls": peer,
        "initial-advertise-peer-urls": peer,
        "initial-cluster": f"bench={peer}",
        "quota-backend-bytes": str(QUOTA),
        "max-txn-ops": str(PUTS),
        "log-level": "warn",
    }
    return [str(tool("etcd")), *(f"--{name}={value}" for name, value in flags.items())]


def _transaction(first: int, numbers: random.Random) -> bytes:
    """A TxnRequest of puts, in the wire format: the operator itself has no use for that message."""
    return b"".join(_field(2, _field(2, _put(first + index, numbers))) for index in range(PUTS))


def _put(number: int, numbers: random.Random) -> bytes:
    value = numbers.randbytes(VALUE_SIZE // 2).hex().encode()
    return pb.PutRequest(key=b"bench/%012d" % number, value=value).SerializeToString()


def _field(number: int, content: bytes) -> bytes:
    """A field of bytes: its number and type, the size as a varint, the bytes."""
    size, length = len(content), b""
    while size >= 0x80:
        length += bytes([size & 0x7F | 0x80])
        size >>= 7
    return bytes([number << 3 | 2]) + length + bytes([size]) + content
