"""The four patch formats, as pure functions from a document to a new document.

JSON patch and merge patch follow RFC 6902 and RFC 7386. A strategic merge is a merge patch that also merges
the lists Kubernetes merges by key (conditions, containers, env, ports, volumes, owner references) and unites
finalizers. An apply is a merge that also takes away what the same manager applied before and leaves out now;
conflicts between managers are not modelled.
"""

from typing import Any

import msgspec

from unit.fakes.apiserver.kinds import Json
from unit.fakes.apiserver.refusals import Refusal, bad_request

_MERGE_KEYS = {
    "conditions": "type",
    "containers": "name",
    "initContainers": "name",
    "env": "name",
    "ports": "containerPort",
    "volumes": "name",
    "volumeMounts": "mountPath",
    "ownerReferences": "uid",
    "hostAliases": "ip",
}


def json_patch(document: Json, operations: list[Json]) -> Json:
    """Apply RFC 6902 operations in order; a failed test or path is refused with 422."""
    box: Json = {"": _copy(document)}
    for operation in operations:
        try:
            _operate(box, operation)
        except (KeyError, IndexError, ValueError, TypeError) as error:
            raise _unprocessable(f"{operation.get('op')} {operation.get('path')}: {error!r}") from error
    result: Json = box[""]
    return result


def _operate(box: Json, operation: Json) -> None:
    name, path = operation["op"], operation["path"]
    match name:
        case "add":
            _add(box, path, _copy(operation["value"]))
        case "remove":
            _take(box, path)
        case "replace":
            _set(box, path, _copy(operation["value"]))
        case "test":
            if _value_at(box, path) != operation["value"]:
                raise ValueError("test failed")
        case _:
            raise ValueError(f"unknown operation {name}")


def _walk(box: Json, path: str) -> tuple[Any, str]:
    """The container and the last step of a JSON pointer."""
    parent: Any = box
    steps = [step.replace("~1", "/").replace("~0", "~") for step in path.split("/")]
    for step in steps[:-1]:
        parent = parent[int(step)] if isinstance(parent, list) else parent[step]
    return parent, steps[-1]


def _value_at(box: Json, path: str) -> Any:
    parent, step = _walk(box, path)
    # an absent member compares as null: the reference implementation's "test" does the same
    return parent[int(step)] if isinstance(parent, list) else parent.get(step)


def _add(box: Json, path: str, value: Any) -> None:
    parent, step = _walk(box, path)
    if not isinstance(parent, list):
        parent[step] = value
    elif step == "-":
        parent.append(value)
    elif int(step) <= len(parent):
        parent.insert(int(step), value)
    else:
        raise IndexError(step)


def _set(box: Json, path: str, value: Any) -> None:
    """Replace; an absent member of an object is added, as the API server does against the RFC."""
    parent, step = _walk(box, path)
    if isinstance(parent, list):
        parent[int(step)] = value
    else:
        parent[step] = value


def _take(box: Json, path: str) -> Any:
    parent, step = _walk(box, path)
    return parent.pop(int(step)) if isinstance(parent, list) else parent.pop(step)


def merge_patch(document: Any, patch: Any) -> Any:
    """RFC 7386: null removes, objects merge, everything else replaces."""
    return _merged(document, patch, lists=False)


def strategic_patch(document: Any, patch: Any) -> Any:
    """A merge patch that merges well-known lists by their keys; `$patch: delete` removes an element."""
    return _merged(document, patch, lists=True)


def apply_patch(document: Json | None, before: Json | None, body: Json) -> Json:
    """Server-side apply by one manager: `before` is what it applied last time."""
    base = _copy(document) if document is not None else {}
    if before is not None:
        _drop_unapplied(base, before, body)
    merged: Json = _merged(base, body, lists=True)
    return merged


def _merged(document: Any, patch: Any, *, lists: bool, field: str = "") -> Any:
    if isinstance(patch, dict):
        result = dict(document) if isinstance(document, dict) else {}
        for name, value in patch.items():
            if value is None:
                result.pop(name, None)
            else:
                result[name] = _merged(result.get(name), value, lists=lists, field=name)
        return result
    if lists and isinstance(patch, list) and isinstance(document, list):
        return _merged_list(document, patch, field)
    return _copy(patch)


def _merged_list(document: list[Any], patch: list[Any], field: str) -> list[Any]:
    if field == "finalizers":
        return document + [item for item in patch if item not in document]
    key = _MERGE_KEYS.get(field)
    if key is None or not all(isinstance(item, dict) and key in item for item in (*document, *patch)):
        return list(_copy(patch))
    result = {item[key]: item for item in document}
    for item in patch:
        if item.get("$patch") == "delete":
            result.pop(item[key], None)
        else:
            result[item[key]] = _merged(result.get(item[key]), item, lists=True)
    return list(result.values())


def _drop_unapplied(document: Json, before: Json, body: Json) -> None:
    for name, value in before.items():
        if name not in body:
            document.pop(name, None)
        elif all(isinstance(side.get(name), dict) for side in (document, before, body)):
            _drop_unapplied(document[name], value, body[name])


def _copy(value: Any) -> Any:
    return msgspec.json.decode(msgspec.json.encode(value))


def _unprocessable(why: str) -> Refusal:
    message = f"the server rejected our request due to an error in our request ({why})"
    return Refusal(422, "Invalid", message)


def decode(raw: bytes) -> Any:
    """A request body as JSON; refused with 400 when it is none."""
    try:
        return msgspec.json.decode(raw) if raw else None
    except msgspec.DecodeError as error:
        raise bad_request(f"couldn't decode the body: {error}") from error
