"""Structural schemas, as a CustomResourceDefinition requires them, from the API types.

The types are the one source of what the operator reads and what the API server accepts. Pieces
that are the same as in a pod (affinity, resources, the spec of a claim) are raw in the types;
their schemas are in `schemas/core.json`, which `hack/refresh-schemas` reads from a running API
server. The description of a field is its comment `#:` in the source, which is installed with the package, at
the end of its line or above it.

Schemas are plain dicts. Each call returns a new one, which the caller may change.
"""

import inspect
import re
import sys
from collections.abc import Iterator
from functools import cache
from importlib import resources
from typing import Any

import msgspec

from etcd_operator.api.backups import BackupSpec
from etcd_operator.api.definitions.limits import LONGEST_QUANTITY, LONGEST_TEXT, MOST_ENTRIES, MOST_ITEMS
from etcd_operator.decoding import decoder

Schema = dict[str, Any]

_SCALARS = {
    msgspec.inspect.StrType: "string",
    msgspec.inspect.BoolType: "boolean",
    msgspec.inspect.FloatType: "number",
}


def of_type(kind: type) -> Schema:
    """The structural schema of a struct; its docstring describes it."""
    return _schema(msgspec.inspect.type_info(kind)) | {"description": described(kind)}


def described(kind: type) -> str:
    """The first paragraph of the docstring."""
    return " ".join((kind.__doc__ or "").partition("\n\n")[0].split())


def piece(name: str) -> Schema:
    """The schema of one of Kubernetes' own types, such as `Affinity`, or of `BackupSpec`."""
    if name == BackupSpec.__name__:
        return of_type(BackupSpec)
    data = resources.files("etcd_operator.api").joinpath("schemas/core.json").read_bytes()
    schema = decoder(dict[str, Schema]).decode(data)[name]
    if name == "PersistentVolumeClaimSpec":
        schema["required"] = ["resources"]
        schema["properties"]["accessModes"]["default"] = ["ReadWriteOnce"]
        # etcd needs a file system: refuse a raw block device here, not with a pod that never starts.
        schema["properties"]["volumeMode"] |= {"default": "Filesystem", "enum": ["Filesystem"]}
        at(schema, "resources")["required"] = ["requests"]
        at(schema, "resources.requests")["required"] = ["storage"]
    return schema


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


def limit(schema: Schema) -> None:
    """Give every part of `schema` that has no limit of its own the one of its type."""
    if "x-kubernetes-int-or-string" in schema:
        schema.setdefault("maxLength", LONGEST_QUANTITY)
    elif schema["type"] == "string" and "enum" not in schema:
        schema.setdefault("maxLength", LONGEST_TEXT)
    below = list(schema.get("properties", {}).values())
    if "items" in schema:
        schema.setdefault("maxItems", MOST_ITEMS)
        below.append(schema["items"])
    if "additionalProperties" in schema:
        schema.setdefault("maxProperties", MOST_ENTRIES)
        below.append(schema["additionalProperties"])
    for each in below:
        limit(each)


def _schema(kind: msgspec.inspect.Type) -> Schema:
    """Without the defaults of the types: the API server would store them, and so outlive the operator's own.

    Unknown fields need no `additionalProperties: false`: the API server reports and drops them by itself.
    """
    found: Schema
    match kind:
        case msgspec.inspect.StructType(cls=struct, fields=members, tag=tag):
            texts = _comments(struct)
            properties = {f.encode_name: _schema(f.type) | {"description": texts[f.name]} for f in members}
            required = [field.encode_name for field in members if field.required]
            if isinstance(tag, str):
                properties["type"], required = {"enum": [tag], "type": "string"}, ["type", *required]
            found = {"type": "object", "required": required or None, "properties": properties}
        case msgspec.inspect.Metadata(extra={"schema": name}):
            found = of_type(name) if isinstance(name, type) else piece(name)
        case msgspec.inspect.UnionType(types=choices):
            # A field that may be None is a field that may be absent: the API server drops an explicit
            # null of a field that is not nullable, so no rule ever sees one.
            found = _union([each for each in choices if not isinstance(each, msgspec.inspect.NoneType)])
        case msgspec.inspect.VarTupleType(item_type=item):
            found = {"type": "array", "items": _schema(item)}
        case msgspec.inspect.DictType(value_type=value):
            found = {"type": "object", "additionalProperties": _schema(value) or None}
        case msgspec.inspect.LiteralType(values=values):
            found = {"enum": sorted(map(str, values)), "type": "string"}
        case msgspec.inspect.IntType(ge=least, le=most):
            found = {"type": "integer", "minimum": least, "maximum": most}
        case msgspec.inspect.AnyType():
            found = {}
        case _:
            found = {"type": _SCALARS[type(kind)]}
    return {key: value for key, value in found.items() if value is not None}


def _union(choices: list[msgspec.inspect.Type]) -> Schema:
    """One schema for a tagged union: structural schemas have no discriminator."""
    found, *others = map(_schema, choices)
    for other in others:
        found["required"] = [name for name in found["required"] if name in other["required"]]
        found["properties"] = {**other["properties"], **found["properties"]}
    structs = [choice for choice in choices if isinstance(choice, msgspec.inspect.StructType)]
    if others:
        texts = [f"{struct.tag}: {described(struct.cls)}" for struct in structs]
        tags = [struct.tag for struct in structs]
        found["properties"]["type"] = {"type": "string", "enum": tags, "description": " ".join(texts)}
    return found


def _comments(struct: type) -> dict[str, str]:
    """The comments `#:` of the fields of a struct and its bases, by field."""
    if struct is msgspec.Struct:
        return {}
    (base,) = struct.__bases__
    return _comments(base) | _comments_in(struct.__module__).get(struct.__name__, {})


@cache
def _comments_in(module: str) -> dict[str, dict[str, str]]:
    """The same for all classes of a module: `inspect` would parse the module again for each class."""
    found, texts, above = dict[str, dict[str, str]](), dict[str, str](), list[str]()
    for line in inspect.getsource(sys.modules[module]).splitlines():
        if begin := re.match(r"(?:class|def) (\w+)", line):
            texts = found.setdefault(begin[1], {})
        code, mark, text = line.partition("#: ")
        if field := re.match(r" {4}(\w+): ", code):
            texts[field[1]] = " ".join([*above, text]).strip()
        above = [*above, text] if mark and not code.strip() else []
    return found
