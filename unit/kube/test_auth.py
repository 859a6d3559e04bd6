"""Configuration from files, pods and nowhere."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from etcd_operator.errors import OperatorError
from etcd_operator.keys import Key
from etcd_operator.kube import auth
from etcd_operator.kube.client import Client
from etcd_operator.kube.resources import PODS
from etcd_operator.kube.transport import Transport
from unit.kube.server import BRISK, Server, pod, serving


@pytest.fixture(autouse=True)
def nowhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Neither in a pod nor with a kubeconfig."""
    for name in ("KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT", "KUBECONFIG"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))


def kubeconfig(path: Path, server: str, **user: Any) -> str:
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "here",
        "contexts": [{"name": "here", "context": {"cluster": "it", "user": "me"}}],
        "clusters": [{"name": "it", "cluster": {"server": server}}],
        "users": [{"name": "me", "user": user}],
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(yaml.safe_dump(config))
    return str(path)


def get(transport: Transport) -> None:
    Client(transport, timeouts=BRISK).get(PODS, Key("default", "a"), dict[str, Any])
    transport._pool.clear()


def greeting() -> Any:
    return serving(lambda _, line: line.answer(200, pod("a", 1)))


def sent_token(server: Server) -> str | None:
    return server.asked[-1].headers.get("authorization")


def test_an_explicit_kubeconfig_gives_address_and_token(tmp_path: Path) -> None:
    with greeting() as server:
        get(auth.load(kubeconfig(tmp_path / "config", server.url, token="secret")))
        assert sent_token(server) == "Bearer secret"


def test_a_kubeconfig_without_credentials_sends_none(tmp_path: Path) -> None:
    with greeting() as server:
        get(auth.load(kubeconfig(tmp_path / "config", server.url)))
        assert sent_token(server) is None


def test_the_default_is_kubeconfig_or_the_home_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with greeting() as server:
        kubeconfig(tmp_path / "home/.kube/config", server.url, token="home")
        get(auth.load())
        assert sent_token(server) == "Bearer home"
        monkeypatch.setenv("KUBECONFIG", kubeconfig(tmp_path / "other", server.url, token="other"))
        get(auth.load())
        assert sent_token(server) == "Bearer other"


def test_a_token_that_an_exec_plugin_renews_is_used(tmp_path: Path) -> None:
    plugin = tmp_path / "plugin"
    plugin.write_text(
        "#!/bin/sh\n"
        f"echo x >> {tmp_path}/runs\n"
        'echo \'{"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": {\'\n'
        f"echo '\"token\": \"'$(wc -l < {tmp_path}/runs)'\",'\n"
        'echo \'"expirationTimestamp": "2020-01-01T00:00:00Z"}}\'\n'
    )
    plugin.chmod(0o755)
    user = {
        "apiVersion": "client.authentication.k8s.io/v1",
        "command": str(plugin),
        "interactiveMode": "Never",
    }
    with greeting() as server:
        transport = auth.load(kubeconfig(tmp_path / "config", server.url, exec=user))
        get(transport)
        first = sent_token(server)
        get(transport)
        assert first is not None
        assert first != sent_token(server)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        pytest.param(None, "does not exist", id="a file that is not there"),
        pytest.param("", "Invalid kube-config", id="an empty file"),
        pytest.param("{{{", "expected", id="no YAML"),
        pytest.param("current-context: nowhere\ncontexts: []\nclusters: []\n", "nowhere", id="no context"),
    ],
)
def test_an_unusable_kubeconfig_is_one_clear_line(tmp_path: Path, text: str | None, complaint: str) -> None:
    path = tmp_path / ("absent" if text is None else "config")
    if text is not None:
        path.write_text(text)
    with pytest.raises(OperatorError, match=complaint) as caught:
        auth.load(str(path))
    assert str(caught.value).startswith(f"cannot use {path}: ")
    assert "\n" not in str(caught.value)


def test_without_any_configuration_the_error_names_what_to_do() -> None:
    with pytest.raises(OperatorError, match=r"not in a pod and .*KUBECONFIG"):
        auth.load()
