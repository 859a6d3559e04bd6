"""The address of the API server and the operator's credentials.

Uses only the configuration loader of the `kubernetes` package (kubeconfig, exec plugins, TLS, proxies), never
its typed APIs (decision 018). The import itself takes half a second and is skipped in a pod without a proxy,
which should start quickly: what that package does for a service account is done here, the address from the
environment, the CA from a file, and a token that is read again every minute.

Order: an explicit kubeconfig; else the pod's service account; else `$KUBECONFIG` or `~/.kube/config`. The
loader's own hook refreshes tokens (it reads a mounted token again every minute and runs an exec plugin again
after its expiry); that hook is not thread-safe, so it runs under a lock. A client *certificate* that an exec
plugin renews needs a restart.
"""

import os
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from urllib.request import getproxies

import urllib3

from etcd_operator.clock import Clock
from etcd_operator.errors import OperatorError, Unavailable
from etcd_operator.kube.transport import Transport


def load(kubeconfig: str = "", *, pool_size: int = 32) -> Transport:
    """A transport by configuration; sends nothing yet.

    `pool_size` is the number of connections kept: watches + workers + 4 or more. Raises one `OperatorError`
    if there is no configuration or it cannot be used.
    """
    source = _source(kubeconfig)
    if not source and not getproxies():
        return service_account(pool_size=pool_size)
    return _by_package(source, pool_size)


def _by_package(source: str, pool_size: int) -> Transport:
    from kubernetes.client.configuration import Configuration
    from kubernetes.client.rest import RESTClientObject

    configuration = Configuration()
    configuration.connection_pool_maxsize = pool_size
    try:
        _read(source, configuration)
        pool = RESTClientObject(configuration).pool_manager
    except Exception as error:  # the loader raises whatever its parsers raise
        raise OperatorError(
            f"cannot use {source or 'the service account of the pod'}: {_line(error)}"
        ) from error
    return Transport(pool=pool, base_url=configuration.host, headers=_authorization(configuration))


def _source(kubeconfig: str) -> str:
    """The kubeconfig to read; empty for the pod's service account."""
    if kubeconfig:
        if not Path(kubeconfig).exists():
            raise OperatorError(f"cannot use {kubeconfig}: it does not exist")
        return kubeconfig
    if os.environ.get("KUBERNETES_SERVICE_HOST"):
        return ""
    default = os.environ.get("KUBECONFIG") or str(Path("~/.kube/config").expanduser())
    if not any(Path(part).exists() for part in default.split(os.pathsep) if part):
        raise OperatorError(
            f"no Kubernetes configuration: not in a pod and {default} does not exist; "
            "give --kubeconfig or set KUBECONFIG"
        )
    return default


def _read(source: str, configuration: Any) -> None:
    from kubernetes.config import load_incluster_config, load_kube_config

    if not source:
        load_incluster_config(client_configuration=configuration)  # type: ignore[no-untyped-call]
    else:
        load_kube_config(  # type: ignore[no-untyped-call]
            config_file=source, client_configuration=configuration, persist_config=False
        )


def _authorization(configuration: Any) -> Callable[[], Mapping[str, str]]:
    lock = threading.Lock()

    def headers() -> Mapping[str, str]:
        """The current credentials."""
        try:
            with lock:
                bearer = configuration.auth_settings().get("BearerToken")
        except Exception as error:  # token files and exec plugins fail in any way
            raise Unavailable(f"cannot refresh the credentials: {_line(error)}") from error
        return {"Authorization": bearer["value"]} if bearer and bearer["value"] else {}

    return headers


def _line(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__


FOLDER = Path("/var/run/secrets/kubernetes.io/serviceaccount")
TOKEN_SECONDS = 60.0


def service_account(*, pool_size: int, clock: Clock | None = None) -> Transport:
    """Of the pod. Raises `OperatorError`, in one line, if a part of it is missing."""
    certificate, token = FOLDER / "ca.crt", _Token(FOLDER / "token", clock or Clock())
    try:
        if not certificate.read_bytes():
            raise ValueError(f"{certificate} is empty")
        token.read()
    except (OSError, ValueError) as error:
        raise OperatorError(f"cannot use the service account of the pod: {error}") from error
    pool = urllib3.PoolManager(maxsize=pool_size, cert_reqs="CERT_REQUIRED", ca_certs=str(certificate))
    return Transport(pool=pool, base_url=_address(os.environ), headers=token.headers)


def _address(environment: Mapping[str, str]) -> str:
    host, port = (environment[f"KUBERNETES_SERVICE_{part}"] for part in ("HOST", "PORT"))
    return f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"


class _Token:
    """The token in a file, which the kubelet replaces before it expires."""

    def __init__(self, path: Path, clock: Clock) -> None:
        self._path = path
        self._clock = clock
        self._lock = threading.Lock()
        self._value = ""
        self._read_at = 0.0

    def read(self) -> str:
        """The token, at most a minute old. Raises OSError or ValueError."""
        with self._lock:
            now = self._clock.monotonic()
            if not self._value or now - self._read_at >= TOKEN_SECONDS:
                value = self._path.read_text(encoding="utf-8").strip()
                if not value:
                    raise ValueError(f"{self._path} is empty")
                self._value, self._read_at = value, now
            return self._value

    def headers(self) -> Mapping[str, str]:
        """The current credentials."""
        try:
            return {"Authorization": f"Bearer {self.read()}"}
        except (OSError, ValueError) as error:
            raise Unavailable(f"cannot refresh the credentials: {error}") from error
