"""The connection Secrets of EtcdUsers: read live, and written as `decide.rotation` says.

Nothing else has passwords and keys of users. Two operators that write one at once overwrite nothing.
"""

import base64
import binascii
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from etcd_operator.api.meta import ObjectMeta
from etcd_operator.api.users import ROTATED_ANNOTATION, EtcdUser
from etcd_operator.controllers.etcd_auth.access import ClientAuthority, client_tls
from etcd_operator.controllers.etcd_auth.decide.rotation import Credentials, Rotation, Step, rotation
from etcd_operator.controllers.etcd_auth.manifests import connection as render
from etcd_operator.controllers.etcd_auth.manifests.connection import ClientTls, Connection
from etcd_operator.controllers.shared.objects import Objects
from etcd_operator.errors import Conflict
from etcd_operator.formats import moment
from etcd_operator.keys import Key
from etcd_operator.kube import resources
from etcd_operator.kube.views import Secret


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What an EtcdUser asks for in one pass. after: how long a password is used; None: for ever."""

    user: EtcdUser
    cluster: Key
    has_password: bool
    after: timedelta | None
    authority: ClientAuthority | None
    now: datetime

    @property
    def owner(self) -> ObjectMeta:
        """The metadata of the EtcdUser."""
        return self.user.metadata

    def rotation(self, found: Secret | None) -> Rotation:
        """What follows. A certificate is renewed for the same user."""
        if self.has_password:
            return rotation(self.owner.name, _credentials(found), self.after, self.now)
        step = Step.CREATE if found is None else Step.NOTHING
        return Rotation(step=step, current=self.owner.name)

    def connection(self, username: str, password: str, found: Secret | None) -> Connection:
        """The content of the Secret, with the certificate that it has as long as it is current."""
        tls = None
        if self.authority is not None:
            tls = client_tls(_client_tls(found), username, self.authority, self.after, self.now)
        return Connection(
            cluster=self.cluster.name,
            namespace=self.cluster.namespace,
            username=username,
            password=password,
            tls=tls,
        )


@dataclass(frozen=True, kw_only=True)
class UserConnection:
    """The Secret of one EtcdUser, and what follows for it."""

    asked: Asked
    rotation: Rotation
    found: Secret = field(repr=False)
    is_new: bool  # whether it got a password just now, which etcd cannot have
    passwords: Mapping[str, str] = field(repr=False)  # by name of the user in etcd

    def publish(self, objects: Objects) -> str:
        """Write the Secret, once etcd is as planned; the user in etcd that it is for from now on.

        Also puts back what somebody has changed in the Secret, and renews its certificate. Raises Conflict,
        BadCertificate, and the errors of `Client`.
        """
        username, now = self.rotation.current, self.asked.now
        since = moment(self.found.metadata.annotations.get(ROTATED_ANNOTATION, "")) or now
        if self.rotation.step is Step.PUBLISH:
            username, since = self.rotation.following, now
        made = self.asked.connection(username, self.passwords.get(username, ""), self.found)
        wanted = render.publication(made, since)
        if any(self.found.data.get(key) != value for key, value in wanted["data"].items()):
            version = self.found.metadata.resource_version
            objects.merge(resources.SECRETS, self.found.metadata, wanted, version=version)
        return username


def connect(asked: Asked, objects: Objects) -> UserConnection:
    """The Secret of an EtcdUser, after what is written to it before etcd is changed.

    Raises NameConflict, Conflict, BadCertificate, and the errors of `Client`.
    """
    name = render.secret_name(asked.owner.name)
    found = _own(asked.owner, objects)
    made, is_new = asked.rotation(found), False
    while made.step in (Step.CREATE, Step.REPAIR, Step.PREPARE):
        _write(asked, found, made, objects)
        found = _own(asked.owner, objects)
        again = asked.rotation(found)
        if found is None or again.step is made.step:
            raise Conflict(f"Secret {name} was changed meanwhile")
        made, is_new = again, True
    if found is None:
        raise Conflict(f"Secret {name} was deleted meanwhile")
    passwords = _passwords(found) if asked.has_password else {}
    return UserConnection(asked=asked, rotation=made, found=found, is_new=is_new, passwords=passwords)


def _write(asked: Asked, found: Secret | None, made: Rotation, objects: Objects) -> None:
    password = secrets.token_urlsafe(render.PASSWORD_BYTES) if asked.has_password else ""
    if found is not None and made.step is Step.PREPARE:
        change = render.preparation(made.following, password)
    else:
        connection = asked.connection(made.current, password, found)
        if found is None:
            objects.create(resources.SECRETS, render.secret(asked.owner, connection, asked.now))
            return
        change = render.publication(connection, asked.now)
    objects.merge(resources.SECRETS, found.metadata, change, version=found.metadata.resource_version)


def _own(owner: ObjectMeta, objects: Objects) -> Secret | None:
    """The Secret, if it is there; not another one of that name, which no creation replaces."""
    found = objects.find(resources.SECRETS, render.secret_name(owner.name), Secret)
    if found is None or found.metadata.is_deleting or found.metadata.controller_uid != owner.uid:
        return None
    return found


def _client_tls(found: Secret | None) -> ClientTls:
    if found is None:
        return ClientTls(ca="", certificate="", key="")
    ca, certificate, key = (_value(found, each) for each in (render.CA, render.CERTIFICATE, render.KEY))
    return ClientTls(ca=ca, certificate=certificate, key=key)


def _credentials(found: Secret | None) -> Credentials | None:
    if found is None:
        return None
    return Credentials(
        username=_value(found, render.USERNAME),
        has_password=render.PASSWORD_FORM.fullmatch(_value(found, render.PASSWORD)) is not None,
        rotated_at=moment(found.metadata.annotations.get(ROTATED_ANNOTATION, "")),
        next_username=_value(found, render.NEXT_USERNAME),
        has_next_password=render.PASSWORD_FORM.fullmatch(_value(found, render.NEXT_PASSWORD)) is not None,
    )


def _passwords(found: Secret) -> dict[str, str]:
    pairs = ((render.USERNAME, render.PASSWORD), (render.NEXT_USERNAME, render.NEXT_PASSWORD))
    values = {_value(found, user): _value(found, password) for user, password in pairs}
    form = render.PASSWORD_FORM
    return {user: password for user, password in values.items() if user and form.fullmatch(password)}


def _value(found: Secret, key: str) -> str:
    """Empty for what is not text, as what anybody may have written there."""
    try:
        return base64.b64decode(found.data.get(key, ""), validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        return ""
