"""LIST: a consistent view of one kind, in pages when asked.

Promises: all pages of one list show the same revision; a page whose revision was compacted away is refused
with 410; a revision that lies in the future with 504, as after a restore of the API server's own etcd.
"""

import base64
from typing import Any

import msgspec

from unit.fakes.apiserver.kinds import Json, Kind
from unit.fakes.apiserver.refusals import Refusal, bad_request
from unit.fakes.apiserver.selectors import check_selector, matches_labels
from unit.fakes.apiserver.store import Store


class _Position(msgspec.Struct, frozen=True):
    """Where the next page begins: after `last`, in the view of `revision`."""

    revision: int
    last: tuple[str, str]


def list_objects(store: Store, kind: Kind, namespace: str, query: dict[str, str], newest: int | None) -> Json:
    """The List object for a LIST request; `newest` is the revision of a stale view, None the present one."""
    check_selector(query.get("labelSelector", ""))
    with store.changed:
        revision, start = _where(store, query, newest)
        found = [
            obj
            for obj in store.view(kind, namespace, revision)
            if matches_labels(query.get("labelSelector", ""), obj)
            and matches_fields(query.get("fieldSelector", ""), obj)
        ]
    rest = [obj for obj in found if start is None or _order(obj) > start]
    limit = int(query.get("limit") or 0)
    page = rest[:limit] if limit else rest
    meta: Json = {"resourceVersion": str(revision)}
    if len(page) < len(rest):
        position = _Position(revision=revision, last=_order(page[-1]))
        meta["continue"] = base64.urlsafe_b64encode(msgspec.json.encode(position)).decode()
        meta["remainingItemCount"] = len(rest) - len(page)
    return {"kind": kind.kind + "List", "apiVersion": kind.api_version, "metadata": meta, "items": page}


def matches_fields(selector: str, obj: Json) -> bool:
    """Whether the fields of an object have these values."""
    pairs = (each.split("=", 1) for each in selector.split(",") if each)
    return all(_field(obj, path) == value for path, value in pairs)


def _field(obj: Json, path: str) -> str:
    found: Any = obj
    for name in path.split("."):
        found = found.get(name, {})
    return str(found)


def _where(store: Store, query: dict[str, str], newest: int | None) -> tuple[int, tuple[str, str] | None]:
    if token := query.get("continue"):
        try:
            position = msgspec.json.decode(base64.urlsafe_b64decode(token), type=_Position)
        except (ValueError, msgspec.MsgspecError) as error:
            raise bad_request(f"continue key is not valid: {error}") from error
        return position.revision, position.last
    asked = int(query.get("resourceVersion") or 0)
    if asked > store.revision:
        message = f"Too large resource version: {asked}, current: {store.revision}"
        raise Refusal(504, "Timeout", message, causes=[{"reason": "ResourceVersionTooLarge"}])
    return store.revision if newest is None else max(newest, asked), None


def _order(obj: Json) -> tuple[str, str]:
    return obj["metadata"].get("namespace", ""), obj["metadata"]["name"]
