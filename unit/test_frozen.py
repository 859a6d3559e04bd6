"""A frozen class is a value: mutable state belongs in classes that are not frozen."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from inspect import getsource
from pathlib import Path
from threading import Lock

import etcd_operator

ROOT = Path(etcd_operator.__file__).parent


def _state(text: str) -> list[str]:
    """Private fields of frozen classes: nobody else gives or reads them, so they are state."""
    classes = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.ClassDef)]
    return [f"{each.name}.{name}" for each in classes if _is_frozen(each) for name in _private(each)]


def _is_frozen(found: ast.ClassDef) -> bool:
    """Of a dataclass an argument of the decorator, of a struct one of the class."""
    calls = [each for each in found.decorator_list if isinstance(each, ast.Call)]
    keywords = [*found.keywords, *(keyword for call in calls for keyword in call.keywords)]
    return any(each.arg == "frozen" and ast.unparse(each.value) == "True" for each in keywords)


def _private(found: ast.ClassDef) -> Iterator[str]:
    for each in found.body:
        if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name):
            name, kind = each.target.id, ast.unparse(each.annotation)
            if name.startswith("_") and kind != "KW_ONLY" and not kind.startswith("ClassVar"):
                yield name


def test_no_frozen_class_has_mutable_state() -> None:
    files = sorted(ROOT.rglob("*.py"))
    found = {str(path.relative_to(ROOT)): _state(path.read_text()) for path in files}
    assert {path: names for path, names in found.items() if names} == {}


@dataclass(frozen=True, kw_only=True)
class _Frozen:
    """For the test below."""

    size: int
    _known: dict[str, int] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)


@dataclass(eq=False, kw_only=True)
class _Ordinary:
    """For the test below."""

    _known: dict[str, int] = field(default_factory=dict)


def test_mutable_state_is_found() -> None:
    """So that the test above does not pass because it looks at nothing."""
    assert _state(getsource(_Frozen)) == ["_Frozen._known", "_Frozen._lock"]
    assert _state(getsource(_Ordinary)) == []
