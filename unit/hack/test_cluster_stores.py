"""The stores for backups in `hack/cluster`: built and loaded only on request."""

from collections.abc import Iterable
from pathlib import Path
from types import SimpleNamespace

import pytest

from localcluster import archive, cli, images, instance, requirements, tools
from localcluster.instance import Instance
from localcluster.paths import Cache


@pytest.fixture(autouse=True)
def _own_folders(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("ETCD_OPERATOR_CLUSTER", raising=False)


def built_tools(cache: Cache, wanted: tuple[tools.Tool, ...]) -> None:
    for tool in wanted:
        folder = cache.tools / tool.folder
        folder.mkdir(parents=True)
        (folder / ".built-from").write_text(tool.stamp())
        for program in tool.programs:
            (folder / program).write_text(program)


def test_the_stores_are_images_with_their_program_as_entry_point(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    built_tools(cache, tools.STORES)
    made = instance.build_stores(cache)
    assert set(made) == {images.VERSITYGW, images.FAKE_GCS_SERVER}
    assert [list(archive.read_names(file)) for file in made.values()] == [[name] for name in made]
    for image in images.stores(cache):
        (path,) = image.files
        assert image.config["Entrypoint"] == [f"/{path}"]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [(["build"], ["all"]), (["build", "--with", "stores"], ["all", "stores"])],
)
def test_the_stores_are_built_on_request_only(
    arguments: list[str], expected: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    built: list[str] = []

    def build(name: str) -> dict[str, Path]:
        built.append(name)
        return {name: Path(name)}

    monkeypatch.setattr(requirements, "check_programs", lambda _: None)
    monkeypatch.setattr(instance, "build", lambda _: build("all"))
    monkeypatch.setattr(instance, "build_stores", lambda _: build("stores"))
    assert cli.main(arguments) == 0
    assert built == expected


class Loading:
    """Stands in for the images of one node."""

    def __init__(self) -> None:
        self.loaded: list[Path] = []

    def is_reachable(self) -> bool:
        return True

    def ensure(self, archives: Iterable[Path]) -> int:
        self.loaded += archives
        return len(self.loaded)

    def digests(self) -> dict[str, str]:
        return {file.name: "sha256:1" for file in self.loaded}


def test_the_images_of_the_stores_are_loaded_into_all_nodes(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    nodes = [SimpleNamespace(name="node-1"), SimpleNamespace(name="node-2")]
    stores = {node.name: Loading() for node in nodes}
    monkeypatch.setattr(instance, "build_stores", lambda _: {"a": Path("/images/a.tar")})
    monkeypatch.setattr(Instance, "require_up", lambda _: None)
    monkeypatch.setattr(Instance, "nodes", lambda _: nodes)
    monkeypatch.setattr(Instance, "store", lambda _, node: stores[node.name])
    monkeypatch.setattr(Instance, "_await_daemon", lambda _, __, is_ready: is_ready())
    assert cli.main(["images"]) == 0
    assert capsys.readouterr().out == ""
    assert cli.main(["images", "--with", "stores"]) == 0
    assert capsys.readouterr().out == "node-1  sha256:1  a.tar\nnode-2  sha256:1  a.tar\n"
