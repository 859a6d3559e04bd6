"""The service account of a pod, without the `kubernetes` package, whose import is half of the start-up time.

Does what that package does: the address from the environment, the CA from a file, and a token that is read
again every minute. It does not support proxies: see `auth`.
"""

import os
import threading
from collections.abc import Mapping
from pathlib import Path

import urllib3

from etcd_operator.clock import Clock, SystemClock
from etcd_operator.errors import OperatorError, Unavailable
from etcd_operator.kube.transport import Transport

FOLDER = Path("/var/run/secrets/kubernetes.io/serviceaccount")
TOKEN_SECONDS = 60.0


def load(*, pool_size: int, clock: Clock | None = None) -> Transport:
    """Raises `OperatorError`, in one line, if a part of it is missing."""
    certificate, token = FOLDER / "ca.crt", _Token(FOLDER / "token", clock or SystemClock())
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
