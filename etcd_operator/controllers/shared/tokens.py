"""Tokens that servers in pods require, each in a Secret of its cluster that the operator creates.

A Secret is read when it is needed, not watched: a watch would be sent all Secrets of all namespaces.
"""

import base64
import binascii
import secrets
from collections.abc import Callable
from dataclasses import dataclass, field

from etcd_operator.clock import Clock
from etcd_operator.controllers.shared.manifests.token import TOKEN_KEY
from etcd_operator.controllers.shared.objects import Objects
from etcd_operator.controllers.shared.secret_reads import KEPT_SECONDS
from etcd_operator.errors import TerminalError
from etcd_operator.keys import Key
from etcd_operator.kube import resources
from etcd_operator.kube.views import Secret


class TokenMissing(TerminalError):
    """The Secret has no token."""


def new_token() -> str:
    """A token that nobody can guess."""
    return secrets.token_urlsafe(32)


@dataclass(frozen=True, slots=True)
class _Known:
    owner: str
    token: str
    at: float


@dataclass(eq=False, kw_only=True)
class Tokens:
    """The tokens that were read, by cluster."""

    clock: Clock
    name_of: Callable[[str], str]  # the name of the Secret of a cluster
    _known: dict[Key, _Known] = field(default_factory=dict)

    def get(self, key: Key, owner: str, objects: Objects) -> str:
        """The token of the cluster with the UID `owner`; empty if it has no Secret yet.

        Raises `TokenMissing`, and the errors of `Client`.
        """
        known = self._known.get(key)
        now = self.clock.monotonic()
        if known is not None and known.owner == owner and now - known.at < KEPT_SECONDS:
            return known.token
        self.forget(key)
        found = objects.find(resources.SECRETS, self.name_of(key.name), Secret)
        if found is None or found.metadata.controller_uid != owner:
            return ""
        token = _token(found)
        self._known[key] = _Known(owner, token, now)
        return token

    def forget(self, key: Key) -> None:
        """Read it anew the next time."""
        self._known.pop(key, None)


def _token(secret: Secret) -> str:
    try:
        token = base64.b64decode(secret.data.get(TOKEN_KEY, ""), validate=True).decode().strip()
    except (binascii.Error, UnicodeDecodeError):
        token = ""
    if not token:
        raise TokenMissing(f"Secret {secret.metadata.name} has no key {TOKEN_KEY}: delete the Secret")
    return token
