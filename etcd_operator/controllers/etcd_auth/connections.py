"""The connection Secrets of EtcdUsers: read live, and written as `decide.rotation` says.

Nothing but these Secrets has passwords; two operators that write one at once do not overwrite each other.
"""

import base64
import binascii
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from etcd_operator.api.meta import ObjectMeta
from etcd_operator.api.users import ROTATED_ANNOTATION, EtcdUser
from etcd_operator.controllers.etcd_auth.decide.rotation import Credentials, Rotation, Step, rotation
from etcd_operator.controllers.etcd_auth.manifests import connection as render
from etcd_operator.controllers.etcd_auth.manifests.connection import Connection
from etcd_operator.controllers.shared.objects import Objects
from etcd_operator.errors import Conflict
from etcd_operator.formats import moment
from etcd_operator.keys import Key
from etcd_operator.kube import resources
from etcd_operator.kube.views import Secret


@dataclass(frozen=True, kw_only=True)
class UserConnection:
    """The Secret of one EtcdUser with a password, and what follows for it."""

    owner: ObjectMeta
    cluster: Key
    rotation: Rotation
    found: Secret = field(repr=False)
    is_new: bool  # whether it got a password just now, which etcd cannot have
    passwords: Mapping[str, str] = field(repr=False)  # by name of the user in etcd

    def publish(self, objects: Objects, now: datetime) -> str:
        """Once etcd is as planned: the user that the Secret is for, from now on. Raises Conflict.

        Also puts back what somebody has changed in the Secret.
        """
        username = self.rotation.current
        since = moment(self.found.metadata.annotations.get(ROTATED_ANNOTATION, "")) or now
        is_replaced = self.rotation.step is Step.PUBLISH
        if is_replaced:
            username, since = self.rotation.following, now
        made = _connection(self.cluster, username, self.passwords[username])
        wanted = render.encoded(render.values(made))
        if is_replaced or any(self.found.data.get(key) != value for key, value in wanted.items()):
            version = self.found.metadata.resource_version
            change = render.publication(made, since)
            objects.merge(resources.SECRETS, self.found.metadata, change, version=version)
        return username


def connect(
    user: EtcdUser, cluster: Key, after: timedelta | None, now: datetime, objects: Objects
) -> UserConnection:
    """The Secret of an EtcdUser with a password, after what is written to it before etcd is changed.

    Raises NameConflict, Conflict, and the errors of `Client`.
    """
    owner = user.metadata
    found = _own(owner, objects)
    made, is_new = rotation(owner.name, _credentials(found), after, now), False
    while made.step in (Step.CREATE, Step.REPAIR, Step.PREPARE):
        _write(owner, cluster, found, made, now, objects)
        found = _own(owner, objects)
        again = rotation(owner.name, _credentials(found), after, now)
        if found is None or again.step is made.step:
            raise Conflict(f"Secret {render.secret_name(owner.name)} was changed meanwhile")
        made, is_new = again, True
    if found is None:
        raise Conflict(f"Secret {render.secret_name(owner.name)} was deleted meanwhile")
    return UserConnection(
        owner=owner,
        cluster=cluster,
        rotation=made,
        found=found,
        is_new=is_new,
        passwords=_passwords(found),
    )


def _write(
    owner: ObjectMeta, cluster: Key, found: Secret | None, made: Rotation, now: datetime, objects: Objects
) -> None:
    password = secrets.token_urlsafe(32)
    if found is None:
        body = render.secret(owner, _connection(cluster, made.current, password), now)
        objects.create(resources.SECRETS, body)
        return
    if made.step is Step.PREPARE:
        change = render.preparation(made.following, password)
    else:
        change = render.publication(_connection(cluster, made.current, password), now)
    objects.merge(resources.SECRETS, found.metadata, change, version=found.metadata.resource_version)


def _own(owner: ObjectMeta, objects: Objects) -> Secret | None:
    """The Secret, if it is there; not another one of that name, which no creation replaces."""
    found = objects.find(resources.SECRETS, render.secret_name(owner.name), Secret)
    if found is None or found.metadata.is_deleting or found.metadata.controller_uid != owner.uid:
        return None
    return found


def _connection(cluster: Key, username: str, password: str) -> Connection:
    return Connection(cluster=cluster.name, namespace=cluster.namespace, username=username, password=password)


def _credentials(found: Secret | None) -> Credentials | None:
    if found is None:
        return None
    return Credentials(
        username=_value(found, render.USERNAME),
        has_password=bool(_value(found, render.PASSWORD)),
        rotated_at=moment(found.metadata.annotations.get(ROTATED_ANNOTATION, "")),
        next_username=_value(found, render.NEXT_USERNAME),
        has_next_password=bool(_value(found, render.NEXT_PASSWORD)),
    )


def _passwords(found: Secret) -> dict[str, str]:
    pairs = ((render.USERNAME, render.PASSWORD), (render.NEXT_USERNAME, render.NEXT_PASSWORD))
    values = {_value(found, user): _value(found, password) for user, password in pairs}
    return {user: password for user, password in values.items() if user and password}


def _value(found: Secret, key: str) -> str:
    """Empty for what is not text, as what anybody may have written there."""
    try:
        return base64.b64decode(found.data.get(key, ""), validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        return ""
