"""How a command in a pod of ours reaches etcd over TLS: the folder with its certificate, and the flag for it.

The folder is a Secret, with the keys of one of the type kubernetes.io/tls (see `pods.contract`): made by the
operator for members of its own, or by a user for somebody else's etcd.
"""

import base64
from dataclasses import dataclass

from etcd_operator.api.meta import RawObject
from etcd_operator.controllers.shared.manifests import command
from etcd_operator.pki.authority import KeyPair
from etcd_operator.pods.contract import CA_FILE, CERTIFICATE_FILE, KEY_FILE

_FOLDER = f"{command.SECRETS}/etcd"
FLAG = f"--tls-dir={_FOLDER}"


@dataclass(frozen=True, slots=True, kw_only=True)
class EtcdCredentials:
    """The CAs of the servers, and a certificate for a client; None where they require none."""

    ca: bytes
    pair: KeyPair | None


def secret(metadata: RawObject, credentials: EtcdCredentials) -> RawObject:
    """The Secret."""
    data = {CA_FILE: credentials.ca}
    if credentials.pair is not None:
        data |= {CERTIFICATE_FILE: credentials.pair.certificate, KEY_FILE: credentials.pair.key}
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": metadata,
        "type": "Opaque",
        "data": {name: base64.b64encode(content).decode() for name, content in data.items()},
    }


def volume(secret_name: str) -> command.PodVolume:
    """The volume that `FLAG` names."""
    return "etcd", command.secret_volume(secret_name), {"mountPath": _FOLDER, "readOnly": True}
