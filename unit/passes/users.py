"""EtcdRoles and EtcdUsers of a bench, and what its etcd and its Secrets have of them."""

import base64
from typing import Any

from unit.fakes.apiserver import Json, Kind
from unit.fakes.apiserver.kinds import SECRETS
from unit.fakes.etcd.auth import FakeAuth
from unit.passes.bench import Bench
from unit.passes.bodies import ROLES, USERS

MARK = "etcd.improbable.io/managed/"
SECRET = "app-etcd-connection"


def role(name: str = "reader", cluster: str = "c", **spec: Any) -> tuple[Kind, Json]:
    """An EtcdRole; by default to read what begins with /app/."""
    wanted = {"permissions": [{"prefix": "/app/", "access": "Read"}], **spec}
    return ROLES, {"metadata": {"name": name}, "spec": {"clusterRef": {"name": cluster}, **wanted}}


def user(name: str = "app", cluster: str = "c", **spec: Any) -> tuple[Kind, Json]:
    """An EtcdUser; by default with the role reader and a password."""
    wanted = {"roles": ["reader"], "authentication": "password", **spec}
    return USERS, {"metadata": {"name": name}, "spec": {"clusterRef": {"name": cluster}, **wanted}}


def auth(made: Bench) -> FakeAuth:
    """The users and roles in etcd."""
    return made.etcd.etcd.auth


def roles_of(made: Bench, name: str = "app") -> set[str]:
    """The roles of a user in etcd, without the operator's mark."""
    return {each for each in auth(made).users[name].roles if not each.startswith(MARK)}


def permissions_of(made: Bench, name: str = "reader") -> dict[bytes, str]:
    """What a role in etcd allows, by first key, without the operator's mark."""
    found = auth(made).roles[name].items()
    return {key: access for (key, _), access in found if not key.startswith(MARK.encode())}


def secret(made: Bench, name: str = SECRET) -> dict[str, str]:
    """The content of a connection Secret."""
    return {key: base64.b64decode(value).decode() for key, value in made.get(SECRETS, name)["data"].items()}


def ready(made: Bench, kind: Kind = USERS, name: str = "app") -> tuple[str, str]:
    """Status and reason of the condition Ready."""
    found = made.condition(kind, "Ready", name)
    return found.get("status", ""), found.get("reason", "")


def messages(made: Bench, reason: str) -> list[str]:
    """Of the Events with this reason."""
    return [event["message"] for event in made.events() if event["reason"] == reason]
