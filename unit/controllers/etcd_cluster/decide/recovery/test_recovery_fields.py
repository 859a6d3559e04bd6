"""What a recovery means is asked of `Recovery`: few files read the fields that decide it."""

import ast
from collections.abc import Iterator
from pathlib import Path

import etcd_operator
from etcd_operator.api.recoveries import Recovery

PACKAGE = Path(etcd_operator.__file__).parent

VALUES = {"generation", "revision", "version", "seed", "token", "bump", "given_up"}
"""Fields that are only passed on. All others decide what is done: these are counted."""

MOST = 8


def _names(tree: ast.AST) -> Iterator[str]:
    """Names that stand for a recovery: by their annotation, or by what is assigned to them."""
    yield "recovery"
    for node in ast.walk(tree):
        if isinstance(node, ast.arg) and node.annotation is not None:
            if "Recovery" in ast.unparse(node.annotation).split(" | "):
                yield node.arg
        elif isinstance(node, ast.Assign):
            target, value = node.targets[0], node.value
            pairs = [(target, value)]
            if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
                pairs = list(zip(target.elts, value.elts, strict=True))
            for each, assigned in pairs:
                if isinstance(assigned, ast.Attribute) and assigned.attr.startswith("recovery"):
                    yield ast.unparse(each)


def _fields_read(path: Path) -> set[str]:
    """The fields that decide and that a module reads of a recovery."""
    tree = ast.parse(path.read_text())
    names, fields = set(_names(tree)), set(Recovery.__struct_fields__) - VALUES
    read = [node for node in ast.walk(tree) if isinstance(node, ast.Attribute) and node.attr in fields]
    return {node.attr for node in read if ast.unparse(node.value).rpartition(".")[2] in names}


def test_few_files_read_the_fields_of_a_recovery_that_decide() -> None:
    found = {path.relative_to(PACKAGE): _fields_read(path) for path in PACKAGE.rglob("*.py")}
    readers = {str(path): fields for path, fields in found.items() if fields}

    assert 0 < len(readers) <= MOST, readers
