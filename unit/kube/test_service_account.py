"""The service account of a pod: address, CA and token from where the kubelet puts them."""

import subprocess
import sys
from pathlib import Path

import pytest

from etcd_operator.errors import OperatorError, Unavailable
from etcd_operator.kube import auth
from unit.fakes.clock import FakeClock


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The files and variables of a service account."""
    (tmp_path / "token").write_text("one\n")
    (tmp_path / "ca.crt").write_text("certificate")
    monkeypatch.setattr(auth, "FOLDER", tmp_path)
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")
    for name in ("http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    return tmp_path


def test_the_token_is_read_again_every_minute(folder: Path) -> None:
    clock = FakeClock()
    transport = auth.service_account(pool_size=1, clock=clock)
    assert transport._headers() == {"Authorization": "Bearer one"}
    (folder / "token").write_text("two")
    clock.advance(59.9)
    assert transport._headers() == {"Authorization": "Bearer one"}
    clock.advance(0.1)
    assert transport._headers() == {"Authorization": "Bearer two"}
    (folder / "token").unlink()
    clock.advance(60.0)
    with pytest.raises(Unavailable, match="cannot refresh the credentials"):
        transport._headers()


@pytest.mark.parametrize(
    ("host", "url"), [("10.0.0.1", "https://10.0.0.1:443"), ("fd00:10::1", "https://[fd00:10::1]:443")]
)
def test_the_address_is_that_of_the_environment(
    folder: Path, monkeypatch: pytest.MonkeyPatch, host: str, url: str
) -> None:
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", host)
    assert auth.load()._base_url == url


def test_the_api_servers_certificate_is_verified_with_the_ca_of_the_pod(folder: Path) -> None:
    options = auth.load(pool_size=7)._pool.connection_pool_kw
    assert options["cert_reqs"] == "CERT_REQUIRED"
    assert options["ca_certs"] == str(folder / "ca.crt")
    assert options["maxsize"] == 7


@pytest.mark.parametrize("name", ["token", "ca.crt"])
@pytest.mark.parametrize("is_there", [True, False], ids=["empty", "absent"])
def test_what_is_missing_is_one_clear_line(folder: Path, name: str, is_there: bool) -> None:
    (folder / name).unlink()
    if is_there:
        (folder / name).touch()
    with pytest.raises(
        OperatorError, match=rf"^cannot use the service account of the pod: .*{name}"
    ) as caught:
        auth.load()
    assert "\n" not in str(caught.value)


def test_the_big_package_is_not_imported(folder: Path) -> None:
    """It would double the time that a start takes."""
    code = (
        "import sys; from pathlib import Path; from etcd_operator.kube import auth;"
        f"auth.FOLDER = Path({str(folder)!r}); auth.load(); assert 'kubernetes' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=Path(__file__).resolve().parents[2])


def test_with_a_proxy_the_package_is_used(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from kubernetes.config import incluster_config

    monkeypatch.setattr(incluster_config, "SERVICE_TOKEN_FILENAME", str(folder / "token"))
    monkeypatch.setattr(incluster_config, "SERVICE_CERT_FILENAME", str(folder / "ca.crt"))
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:1")
    assert type(auth.load()._pool).__name__ == "ProxyManager"
