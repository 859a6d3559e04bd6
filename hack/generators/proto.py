"""`hack/generate-proto`: the messages of etcd's API, as the pinned grpcio-tools makes them of rpc.proto."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from grpc_tools import protoc

from generators import tree

PROTO = "etcd_operator/etcd/rpc.proto"
GENERATED = ("etcd_operator/etcd/rpc_pb2.py", "etcd_operator/etcd/rpc_pb2.pyi")


def main() -> int:
    """Generate, or check; the exit code."""
    return tree.run("generate-proto", f"Write {' and '.join(GENERATED)} from rpc.proto.", generated)


def generated() -> dict[str, str]:
    """The generated files; exits with protoc's code if it fails."""
    with tempfile.TemporaryDirectory() as folder:
        code = protoc.main(
            ["protoc", f"-I{tree.ROOT}", f"--python_out={folder}", f"--pyi_out={folder}", PROTO]
        )
        if code:
            sys.exit(code)
        return {name: (Path(folder) / name).read_text() for name in GENERATED}
