"""The Secret with the token that a server in a pod of ours requires: who may only read pods does not see it.

Pods that use it start without it, too. Otherwise a seed whose Secret somebody has deleted could not start
again after a restart of its node, long after it has fetched its data.
"""

from etcd_operator.api.meta import RawObject
from etcd_operator.controllers.shared.manifests import command
from etcd_operator.controllers.shared.manifests.secret import secret as secret_of

TOKEN_KEY = "token"  # noqa: S105 -- the key in the Secret
_FOLDER = f"{command.SECRETS}/token"
FILE = f"{_FOLDER}/{TOKEN_KEY}"


def secret(metadata: RawObject, token: str) -> RawObject:
    """The Secret."""
    return secret_of(metadata, {TOKEN_KEY: token})


def volume(secret_name: str) -> command.PodVolume:
    """The volume with `FILE`."""
    source = command.secret_volume(secret_name)
    source["secret"]["optional"] = True
    return "token", source, {"mountPath": _FOLDER, "readOnly": True}


def variable(name: str, secret_name: str) -> RawObject:
    """The token as a variable: an ephemeral container can only mount volumes that its pod already has."""
    key = {"name": secret_name, "key": TOKEN_KEY}
    return {"name": name, "valueFrom": {"secretKeyRef": key}}
