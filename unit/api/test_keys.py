"""Every annotation, label and finalizer has a name that Kubernetes takes."""

import re
from types import ModuleType

import pytest

from etcd_operator.api import coreos, improbable, shared_keys

KINDS = ("_ANNOTATION", "_LABEL", "_FINALIZER")
DOMAIN = r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?"
NAME = r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
KEY = re.compile(f"({DOMAIN}/)?{NAME}")


def keys_of(group: ModuleType) -> dict[str, str]:
    return {name: value for name, value in vars(group).items() if name.endswith(KINDS)}


@pytest.mark.parametrize("group", [coreos, improbable, shared_keys])
def test_every_key_is_a_qualified_name(group: ModuleType) -> None:
    keys = keys_of(group)
    assert keys
    assert {name: key for name, key in keys.items() if not KEY.fullmatch(key)} == {}
