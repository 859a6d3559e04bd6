"""No secret of a backup in any output: values are planted, and everything that can be read is searched.

Searched are stdout, stderr, reports, logs of all levels, what is stored, and every object and write of
Kubernetes but the Secrets themselves, so also status, Events, arguments and environments of pods.
"""

import base64
import logging
import traceback
from collections.abc import Iterator
from contextlib import suppress
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
import structlog

from etcd_operator import cli
from etcd_operator.archive.keys import EncryptionKey
from etcd_operator.observability.logs import configure
from unit.commands.conftest import Run, endpoint, etcd, run
from unit.fakes.apiserver.faults import Answer, Fault, Request, no_fault
from unit.fakes.apiserver.kinds import SECRETS
from unit.fakes.etcd.cluster import FakeEtcdCluster
from unit.passes.bench import Bench, bench
from unit.passes.bodies import BACKUPS, COREOS, ephemeral, persistent
from unit.passes.jobs import Jobs, backup, ended
from unit.passes.users import secret as connection
from unit.passes.users import user
from unit.programs.backup_tool.support import TOKEN, request, tool
from unit.storage import moto_s3
from unit.storage.server import Server, answers_with, closes
from unit.waiting import eventually

__all__ = ["endpoint", "etcd", "run"]

ACCESS_KEY = "PLANTEDACCESSKEY"
SECRET_KEY = "planted-secret-key"
SESSION = "planted-session-token"
PASSWORD = "planted-password"
AES = "planted-aes-key-"
AES_FILE = AES.encode() + bytes([255] * 16)
CREDENTIALS = (SECRET_KEY, SESSION, PASSWORD, AES, "token-of-root")
"""The ID of an access key is no secret: S3 itself shows it in signatures and errors."""


def forms(secret: str) -> tuple[str, ...]:
    """How it could be written."""
    data = secret.encode()
    return secret, base64.b64encode(data).decode(), data.hex(), base64.urlsafe_b64encode(data).decode()


def found(text: str, *secrets: str) -> list[str]:
    """Those of them that are in the text."""
    return [secret for secret in secrets if any(form in text for form in forms(secret))]


@pytest.fixture
def logs() -> Iterator[StringIO]:
    """Of this process, of all levels and all libraries."""
    root, stream = logging.getLogger(), StringIO()
    handlers, level = root.handlers[:], root.level
    configure(level="DEBUG", form="console", stream=stream)
    yield stream
    structlog.reset_defaults()
    root.handlers = handlers
    root.setLevel(level)


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    """A bucket; the environment has the credentials."""
    monkeypatch.setenv("AWS_SESSION_TOKEN", SESSION)
    with moto_s3.served(monkeypatch, ACCESS_KEY, SECRET_KEY) as server:
        yield server


def url(server: Server, name: str = "") -> str:
    return f"s3://bucket/{name}?{moto_s3.query(server)}"


def test_commands_print_log_and_store_no_secret(
    run: Run,
    etcd: FakeEtcdCluster,
    endpoint: str,
    bucket: Server,
    logs: StringIO,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    etcd.auth.require_root(PASSWORD)
    for name, content in {"aes": AES_FILE, "other": bytes(32), "password": PASSWORD.encode()}.items():
        (tmp_path / name).write_bytes(content)
    keys, user = ("--encryption-keys", tmp_path / "aes"), ("--user", "root", "--password-file")
    login = ("--endpoints", endpoint, *user, tmp_path / "password")
    to = ("--to", url(bucket, "one.backup"), "--report", tmp_path / "report", "--json")
    printed = [run("backup", *login, *to, *keys)]
    assert printed[0].code == 0
    stored = b"".join(each.body for each in bucket.seen if each.method in ("PUT", "POST"))
    wrong = ("--endpoints", endpoint, *user, tmp_path / "aes")  # the key instead of the password
    for fault in ([], [answers_with(403)], [answers_with(400, b"bad")]):
        bucket.faults = fault
        printed += [
            run("backup", *login, *to, *keys),
            run("backup", *wrong, *to, *keys),
            run("list", url(bucket), "--json"),
            run("verify", url(bucket, "one.backup"), *keys),
            run("verify", url(bucket, "one.backup"), "--encryption-keys", tmp_path / "other"),
            run("fetch", url(bucket, "one.backup"), tmp_path / "fetched", *keys),
        ]
        assert not found((tmp_path / "report").read_text(), *CREDENTIALS)
    monkeypatch.setattr("etcd_operator.commands.flags.STALL_SECONDS", 0.5)
    bucket.faults = [closes()]
    printed.append(run("backup", *login, *to, *keys))
    assert {each.code for each in printed} == {0, 1}
    assert not found("".join(each.out + each.err for each in printed) + logs.getvalue(), *CREDENTIALS)
    assert not found(stored.decode("latin-1"), *CREDENTIALS)
    assert not found(" ".join(each.target for each in bucket.seen), *CREDENTIALS), "URLs are logged by stores"


def test_no_flag_takes_a_secret() -> None:
    """Everybody on a machine reads the arguments of all processes: secrets come from files."""
    parser = cli._parser(list(cli.COMMANDS))
    (commands,) = (each for each in parser._actions if hasattr(each, "choices") and each.choices)
    flags = {
        action.option_strings[0]: action
        for command in dict(commands.choices or {}).values()
        for action in command._actions
        if action.option_strings
    }
    secret = {
        name for name in flags if any(word in name for word in ("password", "token", "key", "secret", "cred"))
    }
    secret.remove("--initial-cluster-token")  # etcd's: a name, which every member has in its arguments
    assert secret == {"--password-file", "--token-file", "--encryption-keys", "--key"}
    assert all(flags[name].type is Path for name in secret)


def test_the_backup_tool_answers_and_logs_no_secret(
    etcd: FakeEtcdCluster,
    endpoint: str,
    bucket: Server,
    logs: StringIO,
    tmp_path: Path,
) -> None:
    secrets = (*CREDENTIALS, TOKEN)
    to = url(bucket, "etcd/")
    answers = []
    name = f"3.6.16_0000000000000006_{EncryptionKey(AES_FILE).id}_etcd.backup"
    (tmp_path / "key").write_bytes(AES_FILE)
    with tool(tmp_path / "unused", endpoint, interval=0.2, to=to, encryption_keys=tmp_path / "key") as (
        worker,
        server,
    ):
        for fault in ([], [answers_with(403)]):
            bucket.faults = fault
            etcd.revision = 7 if fault else 6
            eventually(lambda: worker.report().count == 1)
            eventually(lambda fault=fault: bool(worker.report().failure) is bool(fault))  # type: ignore[misc]
            for path in ("/v1/status", f"/v1/backup?name={name}", "/nothing", f"/v1/backup?token={TOKEN}x"):
                for token in (TOKEN, "wrong"):
                    with suppress(OSError):
                        answers.append(request(server.port, path, token=token))
    assert {200, 401, 404, 502} <= {answer.status for answer in answers}
    assert not found(str([(answer.headers, answer.body) for answer in answers]), *secrets)
    assert not found(logs.getvalue(), *secrets)


def everything(made: Bench) -> str:
    """All objects and all that was written, but for the content of Secrets."""
    objects = [obj for place, obj in made.api.objects.store.everything() if SECRETS.plural not in place]
    writes = [each.request for each in made.writes() if each.request.plural != SECRETS.plural]
    return str(objects) + str(writes)


def planted(made: Bench, name: str) -> None:
    data = {"AWS_ACCESS_KEY_ID": ACCESS_KEY, "AWS_SECRET_ACCESS_KEY": SECRET_KEY, "key-1": AES}
    encoded = {key: base64.b64encode(value.encode()).decode() for key, value in data.items()}
    made.create(SECRETS, {"metadata": {"name": name}, "data": encoded})


@pytest.mark.parametrize("code", [0, 1])
def test_an_etcd_backup_shows_no_secret(logs: StringIO, code: int) -> None:
    with bench() as made:
        made.start()
        jobs = Jobs(made)
        planted(made, "all")
        spec: dict[str, Any] = {
            "destination": {
                "objectURLTemplate": "s3://b/{{ .Name }}",
                "credentials": {
                    "aws": {"secretKeyRef": {"name": "all", "key": "AWS_SECRET_ACCESS_KEY"}},
                    "environment": {"secretName": "all"},
                },
            },
            "encryption": {"secretName": "all"},
        }
        made.create(*backup(**spec))
        made.run_until(lambda: bool(jobs.all()))
        pod = jobs.start(jobs.one())
        document = {"error": "No right to use s3://b", "reason": "AccessDenied"}
        jobs.report(pod, **ended(document, code))
        made.run_until(lambda: made.status(BACKUPS, "one").get("phase") in ("Completed", "Failed"))
        made.drain()
        (container,) = jobs.one()["spec"]["template"]["spec"]["containers"]
        assert "all" in str(container) + str(jobs.one()), "it refers to the Secret"
        assert not found(everything(made) + logs.getvalue(), *CREDENTIALS)


def test_a_cluster_with_regular_backups_shows_no_secret(logs: StringIO) -> None:
    with bench() as made:
        made.start()
        planted(made, "s3")
        target = {"s3Bucket": "bucket", "prefix": "p", "awsSecret": "s3", "endpoint": "http://s3.example:80"}
        made.create(*ephemeral(size=1, backup={"maxBackups": 2, "storageType": "S3", "s3": target}))
        made.run_until(lambda: made.condition(COREOS, "BackupHealthy").get("status") == "True")
        made.settle()
        token = base64.b64decode(made.get(SECRETS, "c-backup-tool")["data"]["token"]).decode()
        made.tools.refused_token = token
        made.api.before = _refuses_replica_sets
        made.edit(COREOS, "c", {"spec": {"backup": {"maxBackups": 5}}})
        made.wait(120.0)
        made.api.before = no_fault
        made.drain()
        assert "c-backup-tool" in everything(made)
        assert not found(everything(made) + logs.getvalue(), *CREDENTIALS, token)


def test_a_user_with_a_password_shows_it_in_the_secret_only(logs: StringIO) -> None:
    with bench() as made:
        made.start()
        made.create(*persistent(size=1))
        made.create(*user(rotateAfter="1h"))
        made.settle()
        made.run_until(lambda: bool(made.names(SECRETS)))
        first = connection(made)["password"]
        made.clock.advance(3600.0)
        made.run_until(lambda: connection(made)["password"] != first)
        made.etcd.etcd.freeze("c-0")
        made.wait(60.0)
        made.events()
        shown = everything(made) + logs.getvalue()
        assert "app-etcd-connection" in shown
        assert not found(shown, first, connection(made)["password"])


def _refuses_replica_sets(request: Request) -> Fault | None:
    """So that errors are logged and reported, too."""
    is_refused = request.is_write and request.plural == "replicasets"
    return Answer(code=403, reason="Forbidden") if is_refused else None


def test_a_secret_that_were_shown_would_be_found() -> None:
    for form in forms(SECRET_KEY):
        assert found(f"a line with {form} in it", SECRET_KEY) == [SECRET_KEY]
    error = traceback.format_exception(ValueError(PASSWORD))
    assert found("".join(error), SECRET_KEY, PASSWORD) == [PASSWORD]
