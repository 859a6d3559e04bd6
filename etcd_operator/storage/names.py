"""Names of objects that mean the same in every store: relative paths of plain components."""

from etcd_operator.storage.errors import InvalidURL

# Files of a folder that are being written. No object can have such a name, and no list contains one.
PARTIAL_PREFIX = ".etcd-operator-partial-"

_LONGEST_NAME = 1024  # bytes, the limit of S3 and GCS
_LONGEST_COMPONENT = 255  # bytes, the limit of most filesystems


def check_name(name: str) -> str:
    """The name, if it can be an object's in every store; `InvalidURL` otherwise."""
    reason = _objection(name)
    if reason:
        raise InvalidURL(f"The name {name!r} cannot be used in a store: {reason}. Choose another name.")
    return name


def check_prefix(prefix: str) -> str:
    """The prefix with its separator, or "" for all; `InvalidURL` for one that no name can have."""
    return check_name(prefix.removesuffix("/")) + "/" if prefix else ""


def _objection(name: str) -> str:
    if not name:
        return "it is empty"
    if len(name.encode("utf-8", "surrogatepass")) > _LONGEST_NAME:
        return f"it is longer than {_LONGEST_NAME} bytes"
    if not name.isprintable():
        return "it contains a character that cannot be printed"
    return next(filter(None, map(_component_objection, name.split("/"))), "")


def _component_objection(component: str) -> str:
    if component in ("", ".", ".."):
        return "it starts or ends with '/', or contains '//', '.' or '..' as a component"
    if len(component.encode()) > _LONGEST_COMPONENT:
        return f"a component is longer than {_LONGEST_COMPONENT} bytes"
    if component.startswith(PARTIAL_PREFIX):
        return f"a component starts with {PARTIAL_PREFIX!r}, which marks unfinished files"
    return ""
