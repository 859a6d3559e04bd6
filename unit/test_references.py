"""What texts in the code refer to (`package.module`, `module.Name`, see `name`) is there."""

import ast
import importlib
import re
from collections.abc import Iterator
from functools import reduce
from pathlib import Path
from typing import Any

import etcd_operator
from etcd_operator import commands
from etcd_operator.api import coreos, improbable

ROOT = Path(etcd_operator.__file__).parent
FILES = sorted(path for path in ROOT.rglob("*.py") if "_pb2" not in path.name)
MODULES = {
    path.relative_to(ROOT.parent).with_suffix("").parts[: -1 if path.stem == "__init__" else None]
    for path in FILES
}
STEMS = {parts[-1] for parts in MODULES}

FIELDS = {"metadata", "spec", "state", "status"}
"""Modules, too, but in texts the field of an object follows."""

DOTTED = re.compile(r"`([a-z_]\w*(?:\.\w+)+)`")
SEEN = re.compile(r"[Ss]ee\s+`([a-z_]\w*)`")


def _is_there(reference: str) -> bool:
    """Whether it is a module, named from any package on, or something in one."""
    parts = tuple(reference.split("."))
    return any(
        module[-length:] == parts[:length] and _has(module, parts[length:])
        for length in range(len(parts), 0, -1)
        for module in MODULES
    )


def _has(module: tuple[str, ...], names: tuple[str, ...]) -> bool:
    missing = object()

    def member(value: Any, name: str) -> Any:
        return getattr(value, name, missing)

    return reduce(member, names, importlib.import_module(".".join(module))) is not missing


def _identifiers(text: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(text)):
        names = (getattr(node, field, None) for field in ("id", "name", "arg", "attr"))
        yield from (name for name in names if isinstance(name, str))


def _of_modules(text: str) -> set[str]:
    found = set(DOTTED.findall(text)) - {coreos.GROUP, improbable.GROUP}
    return {each for each in found if each.partition(".")[0] in STEMS - FIELDS}


def _missing(text: str) -> list[str]:
    modules = [each for each in sorted(_of_modules(text)) if not _is_there(each)]
    names = set(SEEN.findall(text)) - STEMS
    return modules + (sorted(names - set(_identifiers(text))) if names else [])


def test_what_a_text_refers_to_is_there() -> None:
    found = {str(path.relative_to(ROOT)): _missing(path.read_text()) for path in FILES}
    assert {path: missing for path, missing in found.items() if missing} == {}


def test_references_are_found() -> None:
    """So that the test above does not pass because it looks at nothing."""
    text = (
        "see `nothing`, `decide.nowhere`, `decide.plan`, `plan.RULES`, `plan.NONE`, `spec.size`, `coreos.com`"
    )
    assert _missing(f'"""{text}, see\n    `plan`"""') == ["decide.nowhere", "plan.NONE", "nothing"]


def test_the_heading_of_the_commands_names_each_module() -> None:
    stems = {path.stem for path in (ROOT / "commands").glob("*.py")} - {"__init__"}
    assert stems - set(re.findall(r"\w+", commands.__doc__ or "")) == set()
