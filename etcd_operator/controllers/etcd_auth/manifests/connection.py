"""The connection Secret of an EtcdUser: all that an application mounts to connect to the cluster.

It belongs to the EtcdUser and is deleted with it. Keys: host, port, endpoints, uri, username; password for
users with one; ca.crt, tls.crt and tls.key for clusters with client TLS.
"""

import re
from dataclasses import dataclass, field
from datetime import datetime

from etcd_operator.api.meta import ObjectMeta, RawObject
from etcd_operator.api.users import API_VERSION, ROTATED_ANNOTATION, USER_ANNOTATION, USER_KIND
from etcd_operator.controllers.shared.manifests.owner import owned_by
from etcd_operator.controllers.shared.manifests.secret import encoded
from etcd_operator.controllers.shared.manifests.secret import secret as secret_of
from etcd_operator.controllers.shared.manifests.urls import CLIENT_PORT, endpoint
from etcd_operator.formats import timestamp

USERNAME, PASSWORD = "username", "password"
CA, CERTIFICATE, KEY = "ca.crt", "tls.crt", "tls.key"
NEXT_USERNAME, NEXT_PASSWORD = "next-username", "next-password"
"""Only while a password is being replaced; see `decide.rotation`."""

PASSWORD_BYTES = 32
PASSWORD_FORM = re.compile(r"[A-Za-z0-9_-]{43}")
"""Of each generated password. Another one is somebody's edit: etcd refuses those of more than 72 bytes."""

OPTIONAL = (PASSWORD, CA, CERTIFICATE, KEY)
"""Keys that not each Secret has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientTls:
    """What clients of a cluster with client TLS need, as PEM."""

    ca: str
    certificate: str
    key: str = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Connection:
    """How an application connects. password: empty for a user with a certificate."""

    cluster: str
    namespace: str
    username: str
    password: str = field(default="", repr=False)
    tls: ClientTls | None = None


def secret_name(user: str) -> str:
    """The name of the connection Secret of an EtcdUser."""
    return f"{user}-etcd-connection"


def secret(owner: ObjectMeta, connection: Connection, rotated_at: datetime) -> RawObject:
    """The connection Secret of the EtcdUser `owner`."""
    metadata = {
        "name": secret_name(owner.name),
        "namespace": owner.namespace,
        "annotations": _annotations(connection, rotated_at),
        "ownerReferences": owned_by(API_VERSION, USER_KIND, name=owner.name, uid=owner.uid),
    }
    return secret_of(metadata, values(connection))


def publication(connection: Connection, rotated_at: datetime) -> RawObject:
    """A merge patch: what the Secret has from now on, without the next user and password."""
    gone = dict.fromkeys((*OPTIONAL, NEXT_USERNAME, NEXT_PASSWORD))
    return {
        "metadata": {"annotations": _annotations(connection, rotated_at)},
        "data": {**gone, **encoded(values(connection))},
    }


def preparation(username: str, password: str) -> RawObject:
    """A merge patch: the next user and password."""
    return {"data": encoded({NEXT_USERNAME: username, NEXT_PASSWORD: password})}


def values(connection: Connection) -> dict[str, str]:
    """The content of the Secret by key."""
    host = f"{connection.cluster}.{connection.namespace}.svc"
    address, scheme = endpoint(host, CLIENT_PORT), "https" if connection.tls is not None else "http"
    # A generated password contains only characters that a URL may have.
    login = f"{connection.username}:{connection.password}@" if connection.password else ""
    found = {
        "host": host,
        "port": str(CLIENT_PORT),
        "endpoints": f"{scheme}://{address}",
        "uri": f"{scheme}://{login}{address}",
        USERNAME: connection.username,
    }
    if connection.password:
        found[PASSWORD] = connection.password
    if connection.tls is not None:
        found |= {CA: connection.tls.ca, CERTIFICATE: connection.tls.certificate, KEY: connection.tls.key}
    return found


def _annotations(connection: Connection, rotated_at: datetime) -> dict[str, str]:
    return {USER_ANNOTATION: connection.username, ROTATED_ANNOTATION: timestamp(rotated_at)}
