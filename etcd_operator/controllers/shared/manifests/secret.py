"""The one form of all Secrets that the operator writes."""

import base64
from collections.abc import Mapping

from etcd_operator.api.meta import RawObject


def secret(metadata: RawObject, files: Mapping[str, bytes | str]) -> RawObject:
    """A Secret with these files."""
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": metadata,
        "type": "Opaque",
        "data": encoded(files),
    }


def replacement(found: Mapping[str, str], body: RawObject) -> RawObject:
    """A merge patch that leaves the files of `body` in a Secret, and no others. found: its `data` before."""
    return {"data": {**dict.fromkeys(found), **body["data"]}}


def encoded(files: Mapping[str, bytes | str]) -> dict[str, str]:
    """Files as the field `data` of a Secret has them."""
    contents = {name: each.encode() if isinstance(each, str) else each for name, each in files.items()}
    return {name: base64.b64encode(content).decode() for name, content in contents.items()}
