"""`etcd-operator run`: the operator. Every flag has an environment variable."""

import argparse
import os
import threading
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from etcd_operator.commands import outcome
from etcd_operator.errors import OperatorError

if TYPE_CHECKING:
    from etcd_operator.settings import Settings

PREFIX = "ETCD_OPERATOR_"
NAMESPACE_FILE = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")

HELP = "run the operator"
DESCRIPTION = (
    "Run the operator. Every flag can also be set by an environment variable, for example\n"
    f"--log-level by {PREFIX}LOG_LEVEL. A flag takes precedence over its variable."
)
EXAMPLES = ""

DOCUMENTED = ("pv-provisioner",)
"""Flags that older documents write with one dash."""

COMPATIBILITY = {"analytics": "accepted for compatibility, has no effect: no usage data is ever sent"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The flags: one for each setting, and those of older operators."""
    from etcd_operator.settings import Settings

    for field in fields(Settings):
        flag = "--" + field.name.replace("_", "-")
        shown = field.metadata["help"] + (f" (default: {field.default})" if field.default != "" else "")
        action: Any = argparse.BooleanOptionalAction if isinstance(field.default, bool) else "store"
        names = [flag, *(f"-{name}" for name in DOCUMENTED if flag == f"--{name}")]
        parser.add_argument(*names, action=action, default=None, help=shown)
    for name, text in COMPATIBILITY.items():
        parser.add_argument("--" + name, "-" + name, nargs="?", const="true", default=None, help=text)


def run(options: argparse.Namespace) -> int:
    """Run the operator until it is stopped; the exit code."""
    try:
        settings = settings_from(vars(options), os.environ)
        settings.check()
    except OperatorError as error:
        outcome.report(str(error))
        return 2
    return _run(settings)


def settings_from(given: Mapping[str, Any], environment: Mapping[str, str]) -> "Settings":
    """Flags before variables before defaults. Raises `OperatorError` for a value of the wrong type."""
    from etcd_operator.settings import Settings

    values: dict[str, Any] = {"lease_namespace": _own_namespace()}
    for field in fields(Settings):
        value = given.get(field.name)
        value = environment.get(PREFIX + field.name.upper()) if value is None else value
        if value is not None:
            values[field.name] = _typed(field.name, value, type(field.default))
    return Settings(**values)


def _run(settings: "Settings") -> int:
    from etcd_operator.app import LAST_SECONDS, Operator
    from etcd_operator.kube.own_pod import claim
    from etcd_operator.observability.logs import configure
    from etcd_operator.process.signals import end_in

    form: Any = settings.log_format
    configure(level=settings.log_level.upper(), form=form)
    try:
        operator = Operator(settings, claim(os.environ))
        threading.excepthook = operator.on_uncaught
        code = operator.run()
        end_in(LAST_SECONDS, code=code)  # the interpreter would wait for any remaining thread
        return code
    except OperatorError as error:
        outcome.report(str(error))
        return 1


def _typed(name: str, value: Any, kind: type) -> Any:
    if isinstance(value, kind):
        return value
    if kind is bool:
        if str(value).lower() in ("1", "true", "yes", "0", "false", "no"):
            return str(value).lower() in ("1", "true", "yes")
        raise OperatorError(f"{PREFIX}{name.upper()} must be true or false, not {value!r}")
    try:
        return kind(value)
    except ValueError as error:
        flag = name.replace("_", "-")
        raise OperatorError(f"--{flag} must be a number, not {value!r}") from error


def _own_namespace() -> str:
    try:
        return NAMESPACE_FILE.read_text(encoding="utf-8").strip()
    except OSError:
        return ""
