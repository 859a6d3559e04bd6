"""Keys, certificates and kubeconfigs of one instance, made with the `openssl` program.

Promises: one authority per instance; a file is complete if it exists; what exists is kept. Private keys are
readable by their owner only.
"""

from __future__ import annotations

import base64
import json
import secrets
from collections.abc import Sequence
from pathlib import Path

from .commands import run
from .plan import Plan

_DAYS = "3650"
_CURVE = "ec_paramgen_curve:P-256"
_NEW_KEY = ("-newkey", "ec", "-pkeyopt", _CURVE, "-nodes")


class Authority:
    """The certificate authority of an instance, in one folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @property
    def certificate(self) -> Path:
        """What clients and servers trust."""
        return self._folder / "ca.crt"

    @property
    def key(self) -> Path:
        """The authority's own key."""
        return self._folder / "ca.key"

    @property
    def service_account_key(self) -> Path:
        """Signs the tokens of service accounts."""
        return self._folder / "service-accounts.key"

    @property
    def service_account_public_key(self) -> Path:
        """Checks the tokens of service accounts."""
        return self._folder / "service-accounts.pub"

    def ensure(self) -> None:
        """Make the authority and the key for service account tokens."""
        self._folder.mkdir(parents=True, exist_ok=True)
        self._folder.chmod(0o700)
        if not self.certificate.exists():
            new = self.certificate.with_suffix(".new")
            owner = ("-days", _DAYS, "-subj", "/CN=local-cluster")
            _openssl("req", "-x509", *_NEW_KEY, *owner, "-keyout", self.key, "-out", new)
            new.replace(self.certificate)
        if not self.service_account_key.exists():
            new = self.service_account_key.with_suffix(".new")
            _openssl("genpkey", "-algorithm", "EC", "-pkeyopt", _CURVE, "-out", new)
            new.replace(self.service_account_key)
        if not self.service_account_public_key.exists():
            new = self.service_account_public_key.with_suffix(".new")
            _openssl("pkey", "-in", self.service_account_key, "-pubout", "-out", new)
            new.replace(self.service_account_public_key)

    def issue(self, name: str, subject: str, names: Sequence[str] = ()) -> tuple[Path, Path]:
        """Return certificate and key `name`; `names` are like `DNS:localhost` or `IP:10.0.0.1`."""
        certificate, key = self._folder / f"{name}.crt", self._folder / f"{name}.key"
        if certificate.exists():
            return certificate, key
        request, new = self._folder / f"{name}.csr", self._folder / f"{name}.new"
        extensions = self._folder / f"{name}.ext"
        _openssl("req", "-new", *_NEW_KEY, "-subj", subject, "-keyout", key, "-out", request)
        extensions.write_text(extensions_text(names))
        signer = ("-CA", self.certificate, "-CAkey", self.key, "-set_serial", str(secrets.randbits(63)))
        _openssl("x509", "-req", "-in", request, *signer, "-days", _DAYS, "-extfile", extensions, "-out", new)
        new.replace(certificate)
        return certificate, key

    def kubeconfig(self, file: Path, plan: Plan, name: str, subject: str) -> Path:
        """Write a kubeconfig for a client with this subject, unless it is there."""
        certificate, key = self.issue(name, subject)
        text = kubeconfig_text(
            server=plan.server,
            authority=self.certificate.read_bytes(),
            certificate=certificate.read_bytes(),
            key=key.read_bytes(),
        )
        if not file.exists() or file.read_text() != text:
            file.parent.mkdir(parents=True, exist_ok=True)
            new = file.with_name(f"{file.name}.new")
            new.touch(mode=0o600)
            new.write_text(text)
            new.replace(file)
        return file


def _openssl(*arguments: str | Path) -> None:
    run(["openssl", *arguments])


def api_server_names(plan: Plan) -> list[str]:
    """Return the names and addresses that the API server is called by."""
    domain = "kubernetes.default.svc.cluster.local"
    parts = domain.split(".")
    names = [".".join(parts[:count]) for count in (1, 2, 3, 5)]
    addresses = [plan.api_service_address, plan.hub_address, plan.hub_uplink_address, "127.0.0.1"]
    return [*(f"DNS:{name}" for name in [*names, "localhost"]), *(f"IP:{each}" for each in addresses)]


def extensions_text(names: Sequence[str]) -> str:
    """Return the openssl extension file of a certificate for servers and clients."""
    lines = ["basicConstraints=critical,CA:FALSE", "extendedKeyUsage=serverAuth,clientAuth"]
    if names:
        lines.append(f"subjectAltName={','.join(names)}")
    return "\n".join(lines) + "\n"


def kubeconfig_text(*, server: str, authority: bytes, certificate: bytes, key: bytes) -> str:
    """Return a kubeconfig as JSON, which every YAML reader takes."""

    def encode(data: bytes) -> str:
        return base64.b64encode(data).decode()

    cluster = {"server": server, "certificate-authority-data": encode(authority)}
    user = {"client-certificate-data": encode(certificate), "client-key-data": encode(key)}
    return json.dumps(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "local", "cluster": cluster}],
            "users": [{"name": "local", "user": user}],
            "contexts": [{"name": "local", "context": {"cluster": "local", "user": "local"}}],
            "current-context": "local",
        },
        indent=2,
    )
