"""Builds the operator's image from the project's own Dockerfile, with whatever can build images here.

Where docker or podman with a running engine is present, that builds, on the Dockerfile's own base. Otherwise
buildah does, without an engine or a registry, on a base that is made once from Debian packages.

Promises: the same Dockerfile serves everyone; the result is a docker-archive tar in the cache for
`hack/cluster load-image`; a rebuild after a change of code reuses the layers before it; no mount is left.

The form that the Dockerfile must have:

    ARG BASE=docker.io/library/python:3.13-slim
    FROM ${BASE}
    ...
    RUN --mount=type=secret,id=pip.conf,target=/etc/pip.conf \\
        --mount=type=secret,id=ca.crt,target=/run/ca.crt \\
        python3 -m venv /opt/venv && /opt/venv/bin/pip install ...

- `ARG BASE` before the first `FROM`; no other image is named, also not in a `# syntax=` line.
- The base has `python3` (3.11 or later) with `venv`, a shell and CA certificates, and no `pip` or `python`
  command.
- The two mounts pass the machine's pip settings (index, proxy) and CA bundle to pip while it runs; they are
  not part of the image, and without the secrets (a plain `docker build .`) the line works just as well.
"""

from __future__ import annotations

import configparser
import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from . import requirements
from .commands import CommandError, clean_environment, run, succeeds
from .console import RefusalError, progress
from .paths import REPOSITORY, Cache

TAG = "localhost/etcd-operator:dev"
CONTEXT = REPOSITORY
BASE = "localhost/python-base:dev"
ENGINES = ("docker", "podman")
CA_TARGET = "/run/ca.crt"

_SUITE = "bookworm"
_BASE_PACKAGES = "python3,python3-venv,ca-certificates"
_UNUSED = ("/usr/share/doc/*", "/usr/share/man/*", "/usr/share/locale/*")
_BUILD_DEADLINE = 900.0

# Settings of pip that name the sources of packages.
_PIP_KEYS = ("index-url", "extra-index-url", "trusted-host", "proxy", "timeout")
_PIP_FILES = ("/etc/pip.conf", "~/.pip/pip.conf", "~/.config/pip/pip.conf")
_CA_VARIABLES = ("PIP_CERT", "REQUESTS_CA_BUNDLE", "SSL_CERT_FILE", "CURL_CA_BUNDLE")
_CA_BUNDLE = "/etc/ssl/certs/ca-certificates.crt"


def build(cache: Cache, *, tag: str, base: str | None, context: Path) -> Path:
    """Build the image and return the path of its archive (docker-archive)."""
    if not (context / "Dockerfile").is_file():
        raise RefusalError(f"there is no Dockerfile in {context}")
    with cache.locked("operator-image"):
        return _build(cache, tag=tag, base=base, context=context)


def _build(cache: Cache, *, tag: str, base: str | None, context: Path) -> Path:
    target = cache.images / "built" / f"{tag.rpartition('/')[2].replace(':', '-')}.tar"
    target.parent.mkdir(parents=True, exist_ok=True)
    new = target.with_suffix(".new")
    new.unlink(missing_ok=True)
    secrets = _write_secrets(cache.root / "build-secrets")
    engine = find_engine()
    if engine is not None:
        _build_with_engine(engine, tag, base, context, secrets, new)
    else:
        _build_with_buildah(cache, tag, base, context, secrets, new)
    new.replace(target)
    return target


def find_engine() -> str | None:
    """Return the container engine that answers, if any."""
    for engine in ENGINES:
        if shutil.which(engine) and succeeds([engine, "info"], deadline=10):
            return engine
    return None


def pip_settings(environment: Mapping[str, str], files: list[Path]) -> dict[str, str]:
    """Return where pip gets packages from here: later files win over earlier, the environment over files."""
    parser = configparser.RawConfigParser()
    parser.read([file for file in files if file.is_file()])
    settings = {}
    for key in _PIP_KEYS:
        for section in ("global", "install"):
            if parser.has_option(section, key):
                settings[key] = parser.get(section, key)
        if value := environment.get(f"PIP_{key.upper().replace('-', '_')}"):
            settings[key] = value
    return settings


def pip_conf(settings: Mapping[str, str], *, has_ca: bool) -> str:
    """Return the pip.conf for use inside of the build."""
    lines = [f"{key} = {value}".replace("\n", "\n  ") for key, value in settings.items()]
    if has_ca:
        lines.append(f"cert = {CA_TARGET}")
    return "\n".join(["[global]", *lines]) + "\n"


def _write_secrets(folder: Path) -> list[str]:
    """Write what the build may see but the image must not hold; return the build's options."""
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(0o700)
    bundles = [os.environ.get(variable, "") for variable in _CA_VARIABLES]
    bundle = next((each for each in [*bundles, _CA_BUNDLE] if each and Path(each).is_file()), None)
    settings = pip_settings(os.environ, [Path(file).expanduser() for file in _PIP_FILES])
    (folder / "pip.conf").write_text(pip_conf(settings, has_ca=bundle is not None))
    secrets = [f"--secret=id=pip.conf,src={folder / 'pip.conf'}"]
    if bundle is not None:
        secrets.append(f"--secret=id=ca.crt,src={Path(bundle).resolve()}")
    return secrets


def _build_with_engine(
    engine: str, tag: str, base: str | None, context: Path, secrets: list[str], target: Path
) -> None:
    progress(f"building {tag} with {engine}")
    arguments = [f"--build-arg=BASE={base}"] if base else []
    environment = dict(os.environ) | {"DOCKER_BUILDKIT": "1"}
    run(
        [engine, "build", *secrets, *arguments, "--tag", tag, context],
        deadline=_BUILD_DEADLINE,
        env=environment,
    )
    run([engine, "save", "--output", target, tag], deadline=_BUILD_DEADLINE)


def _build_with_buildah(
    cache: Cache, tag: str, base: str | None, context: Path, secrets: list[str], target: Path
) -> None:
    requirements.check_rights()
    requirements.check_programs(requirements.OPERATOR_IMAGE_PROGRAMS)
    buildah = Buildah(cache.root / "buildah")
    if base is None and not buildah.has(BASE):
        _make_base(cache, buildah)
    progress(f"building {tag} with buildah")
    buildah(
        *("build", "--layers", "--pull=never", "--isolation=chroot", "--network=host", *secrets),
        *(f"--build-arg=BASE={base or BASE}", "--tag", tag, str(context)),
    )
    buildah("push", tag, f"docker-archive:{target}:{tag}")


class Buildah:
    """buildah with its own storage; in a mount namespace of its own, because it leaves a mount behind."""

    def __init__(self, root: Path) -> None:
        folders = ("--root", str(root / "storage"), "--runroot", str(root / "run"))
        private = ("unshare", "--mount", "--propagation", "private", "--")
        self._base = (*private, "buildah", *folders, "--storage-driver", "overlay")

    def __call__(self, *arguments: str) -> str:
        """Run a buildah command and return its output."""
        return run([*self._base, *arguments], deadline=_BUILD_DEADLINE)

    def has(self, image: str) -> bool:
        """Return whether the storage has the image."""
        try:
            self("inspect", "--type=image", image)
        except CommandError:
            return False
        return True


def _make_base(cache: Cache, buildah: Buildah) -> None:
    file = cache.images / "built" / "python-base.tar"
    if not file.exists():
        progress("making the base image from Debian packages (once, about a minute)")
        new = file.with_suffix(".new.tar")  # mmdebstrap takes the format from the name
        run(
            [
                *("mmdebstrap", "--quiet", "--variant=minbase", f"--include={_BASE_PACKAGES}"),
                *(f"--dpkgopt=path-exclude={pattern}" for pattern in _UNUSED),
                '--customize-hook=rm -rf "$1"/var/lib/apt/lists "$1"/var/cache/apt "$1"/var/log/*',
                *(_SUITE, new),
            ],
            deadline=_BUILD_DEADLINE,
        )
        new.replace(file)
    container = buildah("from", "scratch").strip()
    try:
        buildah("add", container, str(file), "/")
        buildah("config", "--env", f"PATH={clean_environment()['PATH']}", container)
        buildah("commit", container, BASE)
    finally:
        buildah("rm", container)
