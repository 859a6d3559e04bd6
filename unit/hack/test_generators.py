"""Generated files are brought up to date, or found stale."""

import json
from pathlib import Path

import pytest

from generators import manifests, schemas, tree

FILES = {"made/a.yaml": "a\n", "made/b.yaml": "b\n", "single.md": "text\n"}


def run(root: Path, *arguments: str) -> int:
    return tree.run(
        "generate-it", "Write it.", lambda: FILES, folders=("made",), root=root, arguments=arguments
    )


def content(root: Path) -> dict[str, str]:
    files = [path for path in root.rglob("*") if path.is_file()]
    return {path.relative_to(root).as_posix(): path.read_text() for path in files}


def test_the_tree_has_exactly_what_is_generated_afterwards(tmp_path: Path) -> None:
    (tmp_path / "made").mkdir()
    (tmp_path / "made/old.yaml").write_text("nothing generates it")
    (tmp_path / "made/a.yaml").write_text("older")
    (tmp_path / "other.md").write_text("not ours")
    assert run(tmp_path) == 0
    assert content(tmp_path) == {**FILES, "other.md": "not ours"}
    assert run(tmp_path, "--check") == 0


@pytest.mark.parametrize(
    ("path", "text"), [("made/a.yaml", "edited"), ("made/old.yaml", "extra"), ("single.md", None)]
)
def test_a_check_names_each_stale_file_and_changes_nothing(
    tmp_path: Path, path: str, text: str | None, capsys: pytest.CaptureFixture[str]
) -> None:
    run(tmp_path)
    (tmp_path / path).unlink(missing_ok=True)
    if text is not None:
        (tmp_path / path).write_text(text)
    before = content(tmp_path)
    assert run(tmp_path, "--check") == 1
    assert capsys.readouterr().err == f"{path} is not as generated: run hack/generate-it\n"
    assert content(tmp_path) == before


def test_the_bare_deployment_may_not_install_definitions_and_does_not_try() -> None:
    text = manifests.generated()[manifests.BARE_DEPLOYMENT]
    assert "--no-install-crds" in text
    assert not any(group in text for group in manifests.DEFINITIONS)


def test_repeated_objects_are_written_out() -> None:
    shared = {"key": "value"}
    text = manifests.rendered([{"one": shared, "two": shared}], header="")
    assert text == "one:\n  key: value\ntwo:\n  key: value\n"


def test_schemas_are_read_from_the_server_of_a_kubeconfig(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    known = {schemas.PACKAGE + name: {"type": "object", "title": "dropped"} for name in schemas.TYPES}
    answer, program, target = tmp_path / "answer", tmp_path / "kubectl", tmp_path / "core.json"
    answer.write_text(json.dumps({"components": {"schemas": known}}))
    program.write_text(
        f'#!/bin/sh\n[ "$1" = --kubeconfig=/of/it ] && exec cat {answer}\necho no >&2; exit 1\n'
    )
    program.chmod(0o755)
    monkeypatch.setattr(schemas, "kubectl_program", lambda _: program)
    monkeypatch.setattr(schemas, "TARGET", target)
    monkeypatch.setattr("sys.argv", ["refresh-schemas", "--kubeconfig", "/of/it"])
    assert schemas.main() == 0
    assert json.loads(target.read_text()) == {
        name.rpartition(".")[2]: {"type": "object"} for name in schemas.TYPES
    }
    monkeypatch.setattr("sys.argv", ["refresh-schemas", "--kubeconfig", "/of/another"])
    assert schemas.main() == 1
    assert capsys.readouterr().err == "hack/refresh-schemas: kubectl get --raw /openapi/v3/api/v1: no\n"


def test_a_schema_is_reduced_to_what_a_definition_takes() -> None:
    known: dict[str, schemas.Schema] = {
        "Pod": {
            "type": "object",
            "description": "dropped",
            "required": ["size"],
            "properties": {
                "size": {"allOf": [{"$ref": "#/components/schemas/api.Quantity"}], "default": {}},
                "names": {"type": "array", "items": {"type": "string", "default": ""}},
                "labels": {"additionalProperties": {"$ref": "#/components/schemas/Name"}},
            },
        },
        "Name": {"type": "string", "description": "dropped"},
    }
    assert schemas.structural(known["Pod"], known) == {
        "type": "object",
        "required": ["size"],
        "properties": {
            "size": schemas.QUANTITY,
            "names": {"type": "array", "items": {"type": "string"}},
            "labels": {"additionalProperties": {"type": "string"}},
        },
    }
