"""Structural schemas, as a CustomResourceDefinition requires them, from the API types.

The types are the one source of what the operator reads and what the API server accepts. Pieces
that are the same as in a pod (affinity, resources, the spec of a claim) are raw in the types;
their schemas are in `schemas/core.json`, which `hack/refresh-schemas` reads from a running API
server. The description of a field is its comment `#:` in the source, at the end of its line or above it.

Schemas are plain dicts. Each call returns a new one, which the caller may change.
"""

import inspect
import re
from collections.abc import Iterator
from importlib import resources
from typing import Any

import msgspec
from msgspec import inspect as types

from etcd_operator.decoding import decoder

Schema = dict[str, Any]

KEPT = ("type", "enum", "minimum", "maximum", "required")
"""Keys that are copied from msgspec's schema.

Defaults are omitted on purpose: a default in
a CRD is stored with the object and outlives the operator's own (`crd` adds the few that are
wanted). `additionalProperties: false` is not allowed beside `properties`;
the API server reports and drops unknown fields by itself.
"""


def of_type(kind: type) -> Schema:
    """The structural schema of a struct, all references resolved; its docstring describes it."""
    (schema,), components = msgspec.json.schema_components((kind,), ref_template="{name}")
    result = _inline(schema, components)
    _describe_fields(result, types.type_info(kind))
    return result | {"description": described(kind)}


def described(kind: type) -> str:
    """The first paragraph of the docstring."""
    return " ".join((kind.__doc__ or "").partition("\n\n")[0].split())


def piece(name: str) -> Schema:
    """The schema of one of Kubernetes' own types, such as `Affinity`."""
    data = resources.files("etcd_operator.api").joinpath("schemas/core.json").read_bytes()
    return decoder(dict[str, Schema]).decode(data)[name]


def at(schema: Schema, path: str) -> Schema:
    """The part of `schema` that describes `path`: field names joined by dots, `[]` for the items.

    Raises KeyError when the schema has no such field.
    """
    for step in path.replace("[]", ".[]").strip(".").split(".") if path else ():
        schema = schema["items"] if step == "[]" else schema["properties"][step]
    return schema


def fields(schema: Schema, path: str = "") -> Iterator[str]:
    """Every path that `at` finds in `schema`, parents before their children."""
    for name, below in schema.get("properties", {}).items():
        field = f"{path}.{name}" if path else name
        yield field
        yield from fields(below, field)
    if "items" in schema:
        yield from fields(schema["items"], f"{path}[]")


def _inline(schema: Schema, components: dict[str, Schema]) -> Schema:
    if "$ref" in schema:
        return _inline(components[schema["$ref"]], components)
    if "anyOf" in schema:
        # A field that may be None is a field that may be absent: the API server drops an explicit
        # null of a field that is not nullable, so no rule ever sees one.
        (schema,) = (choice for choice in schema["anyOf"] if choice != {"type": "null"})
        return _inline(schema, components)
    result = {key: schema[key] for key in KEPT if schema.get(key) not in (None, [])}
    if "enum" in schema:
        result["type"] = "string"
    if "properties" in schema:
        result["properties"] = {k: _inline(v, components) for k, v in schema["properties"].items()}
    if isinstance(schema.get("additionalProperties"), dict):
        result["additionalProperties"] = _inline(schema["additionalProperties"], components)
    if "items" in schema:
        result["items"] = _inline(schema["items"], components)
    return result


def _describe_fields(schema: Schema, kind: types.Type) -> None:
    match kind:
        case types.UnionType(types=choices):
            for choice in choices:
                _describe_fields(schema, choice)
        case types.VarTupleType(item_type=item):
            _describe_fields(schema["items"], item)
        case types.StructType(cls=struct, fields=fields):
            texts = _comments(struct)
            for field in fields:
                part = schema["properties"][field.encode_name]
                _describe_fields(part, field.type)
                part["description"] = texts[field.name]
        case _:
            pass


def _comments(struct: type) -> dict[str, str]:
    """The comments `#:` of the fields of a struct and its bases, by field."""
    if struct is msgspec.Struct:
        return {}
    (base,) = struct.__bases__
    texts, above = _comments(base), list[str]()
    for line in inspect.getsource(struct).splitlines():
        code, mark, text = line.partition("#: ")
        if field := re.match(r" {4}(\w+): ", code):
            texts[field[1]] = " ".join([*above, text]).strip()
        above = [*above, text] if mark and not code.strip() else []
    return texts
