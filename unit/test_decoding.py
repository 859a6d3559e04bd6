"""msgspec is not safe when two threads decode a type for the first time: nothing here does that."""

import ast
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_origin

import msgspec
import pytest

import etcd_operator
from etcd_operator.api import coreos, improbable
from etcd_operator.api.backup_schedules import EtcdBackupSchedule
from etcd_operator.api.backups import EtcdBackup
from etcd_operator.api.restores import EtcdRestore
from etcd_operator.api.users import EtcdRole, EtcdUser
from etcd_operator.decoding import read
from etcd_operator.kube import pod_views, views

PACKAGE = Path(etcd_operator.__file__).parent
SOURCES = sorted(PACKAGE.rglob("*.py"))
RUNS = 40

NOBODY_LISTENS = """
apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "http://127.0.0.1:1"}}]
users: [{name: u, user: {}}]
contexts: [{name: x, context: {cluster: c, user: u}}]
current-context: x
"""

RACE = '''
"""Nine threads decode all structs of the operator, each in its own order, at a tiny switch interval."""

import os, sys, threading
import msgspec
from etcd_operator import app, decoding

OBJECT = (
    b'{"metadata":{"name":"a","namespace":"b","uid":"u","resourceVersion":"1","labels":{},"annotations":{},'
    b'"ownerReferences":[{"kind":"x","name":"n","uid":"u","controller":true}]},'
    b'"spec":{"replicas":3,"version":"3.6.16"},"status":{"phase":"x","conditions":[{"type":"x"}]}}'
)


def first_use(decoder_of):
    kinds = sorted(decoding._structs(msgspec.Struct), key=lambda kind: f"{kind.__module__}.{kind.__name__}")
    gate = threading.Barrier(9)

    def work(number):
        gate.wait()
        for kind in kinds[number * 5:] + kinds[:number * 5]:
            try:
                decoder_of(kind).decode(OBJECT)
            except msgspec.ValidationError:
                pass

    threads = [threading.Thread(target=work, args=(number,)) for number in range(9)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def prepared():
    decoding.build_all()
    first_use(decoding.decoder)
    assert not decoding.built_late()


def locked():
    first_use(decoding.decoder)


def lazily():
    first_use(msgspec.json.Decoder)


way = {"prepared": prepared, "locked": locked, "lazily": lazily}[sys.argv[1]]
sys.setswitchinterval(50e-6)
for _ in range(int(sys.argv[2])):
    child = os.fork()  # the parent has one thread and has built nothing
    if not child:
        code = 1
        try:
            way()
            code = 0
        finally:
            os._exit(code)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
'''


def ends(way: str, runs: int) -> Iterator[int]:
    """How processes end that decode everything for the first time in nine threads."""
    words = [sys.executable, "-c", RACE, way, str(runs)]
    environment = {**os.environ, "PYTHONPATH": str(PACKAGE.parent)}
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stdout is not None
        try:
            yield from (int(line) for line in process.stdout)
        finally:
            process.kill()


@pytest.mark.parametrize("way", ["prepared", "locked"])
def test_no_process_crashes_however_its_threads_meet_at_the_first_decoding(way: str) -> None:
    assert list(ends(way, RUNS)) == [0] * RUNS


def test_that_check_can_fail_types_built_by_msgspec_alone_do_crash() -> None:
    """If this fails for a new version of msgspec, ask whether `decoding` is still needed."""
    assert any(end == -signal.SIGSEGV for end in ends("lazily", 10 * RUNS))


def test_all_types_are_built_before_the_first_thread(tmp_path: Path) -> None:
    """At any depth of inheritance; and what is built later is counted."""
    program = """
import sys, threading
import msgspec
from etcd_operator import app, decoding
from etcd_operator.kube.lease_record import Lease
from etcd_operator.settings import Settings
app.Operator(Settings(kubeconfig=sys.argv[1], listen="127.0.0.1:0"))
assert threading.active_count() == 1
kinds = set(decoding._structs(msgspec.Struct))
assert Lease in kinds and kinds <= set(decoding._decoders)
decoding.decoder(Lease)
assert not decoding.built_late()
decoding.decoder(list[int])
assert decoding.built_late() == ("list[int]",)
"""
    kubeconfig = tmp_path / "config"
    kubeconfig.write_text(NOBODY_LISTENS)
    done = subprocess.run(
        [sys.executable, "-W", "ignore::ResourceWarning", "-c", program, str(kubeconfig)],
        capture_output=True, text=True, check=False, cwd=PACKAGE.parent,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


FORBIDDEN = {"Decoder", "decode", "convert", "from_builtins", "msgpack", "yaml", "toml"}


def misuses(source: str) -> list[str]:
    """What a module does that makes msgspec build a type behind the back of `decoding`."""
    found = []
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Attribute(attr=name) if name in FORBIDDEN and _root(node) == "msgspec":
                found.append(f"{node.lineno}: {ast.unparse(node)}")
            case ast.ImportFrom(module=str(module)) if module.partition(".")[0] == "msgspec":
                found.append(f"{node.lineno}: {ast.unparse(node)}")
            case ast.Import(names=names) if any(n.name.startswith("msgspec.") or n.asname for n in names):
                found += [f"{node.lineno}: {ast.unparse(node)}" for n in names if "msgspec" in n.name]
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                found += [f"{c.lineno}: class {c.name}" for c in ast.walk(node) if _is_struct(c)]  # type: ignore[attr-defined]
            case _:
                pass
    return found


def _root(node: ast.expr) -> str:
    while isinstance(node, ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def _is_struct(node: ast.AST) -> bool:
    return isinstance(node, ast.ClassDef) and any(ast.unparse(base).endswith("Struct") for base in node.bases)


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_only_one_module_decodes_with_msgspec(path: Path) -> None:
    expected = path.name == "decoding.py"
    assert bool(misuses(path.read_text(encoding="utf-8"))) is expected


@pytest.mark.parametrize(
    "source",
    [
        "msgspec.json.Decoder(int)",
        "msgspec.json.decode(text, type=int)",
        "msgspec.convert(value, int)",
        "from msgspec.json import decode",
        "from msgspec import convert",
        "import msgspec.json",
        "import msgspec as m",
        "def f():\n    class Late(msgspec.Struct): ...",
    ],
)
def test_that_check_sees_each_way_to_decode(source: str) -> None:
    assert misuses(source)


READ = [
    *(
        kind
        for module in (views, pod_views)
        for kind in vars(module).values()
        if isinstance(kind, type) and issubclass(kind, msgspec.Struct)
    ),
    *(coreos.EtcdCluster, improbable.EtcdCluster, improbable.EtcdPeer),
    *(EtcdBackup, EtcdBackupSchedule, EtcdRestore, EtcdRole, EtcdUser),
]


def least(kind: Any) -> Any:
    """The least JSON that a type takes."""
    if get_origin(kind) is Annotated:
        kind = get_args(kind)[0]
    if get_origin(kind) is Literal:
        return get_args(kind)[0]
    if get_origin(kind) in (tuple, dict):
        return get_origin(kind)()
    if not isinstance(kind, type) or not issubclass(kind, msgspec.Struct):
        return "x"
    fields = msgspec.structs.fields(kind)
    return {field.encode_name: least(field.type) for field in fields if field.required}


@pytest.mark.parametrize("kind", READ)
def test_a_field_that_go_wrote_as_null_is_read_as_one_that_is_not_there(kind: type[msgspec.Struct]) -> None:
    known = least(kind)
    absent = read(json.dumps(known).encode(), kind)
    for field in msgspec.structs.fields(kind):
        if not field.required:
            written = json.dumps({**known, field.encode_name: None}).encode()
            assert read(written, kind) == absent, field.name


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(b'{"metadata":{},"status":{"conditions":[{"type":"a"}]}}', id="a field is missing"),
        pytest.param(b'{"metadata":{},"status":{"conditions":[{"type":"a","status":null}]}}', id="or null"),
        pytest.param(b'{"metadata":{},"status":{"conditions":[null]}}', id="null in a list"),
        pytest.param(b'{"metadata":5,"status":null}', id="of another type"),
        pytest.param(b"[]", id="no object"),
    ],
)
def test_what_does_not_fit_a_type_remains_an_error(text: bytes) -> None:
    with pytest.raises(msgspec.ValidationError):
        read(text, pod_views.Pod)


DEEP = """
import sys, threading
from typing import Any
import msgspec
from etcd_operator import app, decoding
from etcd_operator.api.improbable import EtcdCluster
from etcd_operator.kube.pod_views import Pod
decoding.build_all()
def nested(depth, begin, end):
    return b'{"metadata":{"name":"a"},"spec":{"x":%s,"labels":null}}' % (begin * depth + b"1" + end * depth)
def run():
    for way in ((b'{"a":', b"}"), (b"[", b"]")):
        for kind in (EtcdCluster, Pod, dict[str, Any]):
            decoding.read(nested(9_990, *way), kind)
            try:
                decoding.read(nested(200_000, *way), kind)
            except msgspec.ValidationError as error:
                print(error)
thread = threading.Thread(target=run)
thread.start()
thread.join()
"""


def test_an_object_that_is_nested_as_deeply_as_the_api_server_allows_is_read_by_any_thread() -> None:
    """And a deeper one is an object that does not fit its type: no thread crashes."""
    done = subprocess.run(
        [sys.executable, "-c", DEEP], capture_output=True, text=True, check=False, cwd=PACKAGE.parent
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == ["it is nested too deeply"] * 6
