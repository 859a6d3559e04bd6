"""How a command in a pod of ours reaches etcd: folders with its certificate and its user, and their flags.

The folders are Secrets, with the keys of those of the types kubernetes.io/tls and kubernetes.io/basic-auth
(see `pods.contract`). The first is made by the operator for members of its own. Those of somebody else's etcd
are the user's, and the operator never reads them.
"""

from dataclasses import dataclass

from etcd_operator.api.meta import RawObject
from etcd_operator.controllers.shared.manifests import command
from etcd_operator.controllers.shared.manifests.secret import secret as secret_of
from etcd_operator.pki.authority import KeyPair
from etcd_operator.pods.contract import CA_FILE, CERTIFICATE_FILE, ETCD_FOLDER, ETCD_USER_FOLDER, KEY_FILE

FLAG = f"--tls-dir={ETCD_FOLDER}"
USER_FLAG = f"--user-dir={ETCD_USER_FOLDER}"


@dataclass(frozen=True, slots=True, kw_only=True)
class EtcdCredentials:
    """The CAs of the servers, and a certificate for a client; None where they require none."""

    ca: bytes
    pair: KeyPair | None


def secret(metadata: RawObject, credentials: EtcdCredentials) -> RawObject:
    """The Secret."""
    files = {CA_FILE: credentials.ca}
    if credentials.pair is not None:
        files |= {CERTIFICATE_FILE: credentials.pair.certificate, KEY_FILE: credentials.pair.key}
    return secret_of(metadata, files)


def volume(secret_name: str) -> command.PodVolume:
    """The volume that `FLAG` names."""
    return "etcd", command.secret_volume(secret_name), {"mountPath": ETCD_FOLDER, "readOnly": True}


def user_volume(secret_name: str) -> command.PodVolume:
    """The volume that `USER_FLAG` names."""
    return "etcd-user", command.secret_volume(secret_name), {"mountPath": ETCD_USER_FOLDER, "readOnly": True}
