"""The canonical text of values: JSON with names of classes and fields; fields at their default are left out.

An object has the name of its class under "!"; a tuple is an array, a dictionary with string keys an object.
"""

import dataclasses
import json
from collections.abc import Mapping
from enum import Enum, EnumType
from functools import cache
from typing import Any, get_args, get_type_hints

import msgspec

from etcd_operator.controllers.etcd_cluster.decide.kinds.ephemeral import EPHEMERAL
from etcd_operator.controllers.etcd_cluster.decide.kinds.persistent import PERSISTENT
from etcd_operator.controllers.etcd_cluster.decide.kinds.protocol import Kind

Node = Any
"""A value as JSON has it."""

Object = dict[str, Node]

SCALARS = (str, bool, int, float)
KINDS: dict[str, Kind] = {"Ephemeral": EPHEMERAL, "Persistent": PERSISTENT}


def line_of(state: Any, plan: Any) -> str:
    """The line of a pair."""
    return compact({"state": node_of(state), "plan": node_of(plan)})


def compact(node: Node) -> str:
    """One line with sorted keys and exact floats."""
    return json.dumps(node, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def node_of(value: Any) -> Node:
    """A value as a node. Raises TypeError for what has no text."""
    match value:
        case tuple():
            return [node_of(each) for each in value]
        case list():
            return {"!": "list", "items": [node_of(each) for each in value]}
        case set() | frozenset():
            return {"!": "set", "items": sorted(map(node_of, value), key=compact)}
        case Mapping():
            if not all(isinstance(key, str) and key != "!" for key in value):
                raise TypeError(f"keys that are no names: {value!r}")
            return {key: node_of(each) for key, each in value.items()}
        case _:
            return value if value is None or type(value) in SCALARS else _object(value)


def _object(value: Any) -> Object:
    match value:
        case Enum():
            return {"!": type(value).__name__, "name": value.name}
        case Kind():
            return {"!": "Kind", "name": next(name for name, kind in KINDS.items() if kind is value)}
        case _:
            made: Object = {"!": type(value).__name__}
            for name, default in _fields(value.__class__):
                found = getattr(value, name)
                if found is not default and (type(found) is not type(default) or found != default):
                    made[name] = node_of(found)
            return made


@cache
def _fields(cls: Any) -> tuple[tuple[str, Any], ...]:
    """The fields of a class, each with its default; `...` for one that is required."""
    fields: tuple[Any, ...]
    if dataclasses.is_dataclass(cls):
        fields = dataclasses.fields(cls)
    elif issubclass(cls, msgspec.Struct):
        fields = msgspec.structs.fields(cls)
    elif cls.__init__ is object.__init__:
        fields = ()
    else:
        raise TypeError(f"{cls} is no value")
    return tuple((each.name, _default(each)) for each in fields)


def _default(field: Any) -> Any:
    none = (dataclasses.MISSING, msgspec.NODEFAULT)
    if field.default not in none:
        return field.default
    return field.default_factory() if field.default_factory not in none else ...


def classes_of(root: type) -> dict[str, type]:
    """By name, the classes of all that a `root` may have in it. Raises TypeError if two have one name."""
    found: dict[str, type] = {}
    hints: list[Any] = [root]
    while hints:
        hint = hints.pop()
        hints += get_args(hint)
        is_value = dataclasses.is_dataclass(hint) or hasattr(hint, "__struct_fields__")
        if not (is_value or isinstance(hint, EnumType)) or found.get(hint.__name__) is hint:
            continue
        if hint.__name__ in found:
            raise TypeError(f"two classes of one name: {hint} and {found[hint.__name__]}")
        found[hint.__name__] = hint
        hints += get_type_hints(hint).values() if is_value else ()
    return found


def value_of(node: Node, classes: Mapping[str, type]) -> Any:
    """The value of a node. Raises KeyError for an unknown class, TypeError for unknown or missing fields."""
    match node:
        case list():
            return tuple(value_of(each, classes) for each in node)
        case dict():
            values = {key: value_of(each, classes) for key, each in node.items() if key != "!"}
            return _made(node["!"], values, classes) if "!" in node else values
        case _:
            return node


def _made(name: str, values: dict[str, Any], classes: Mapping[str, type]) -> Any:
    match name:
        case "list":
            return list(values["items"])
        case "set":
            return frozenset(values["items"])
        case "Kind":
            return KINDS[values["name"]]
        case _:
            cls = classes[name]
            return cls[values["name"]] if issubclass(cls, Enum) else cls(**values)
