"""Cluster and member IDs as etcd's own tools print them: lower-case hexadecimal, no 0x, no leading zeros."""


def hex_id(number: int) -> str:
    """The ID of this number."""
    return f"{number:x}"


def without_padding(text: str) -> str:
    """An ID that somebody may have stored with leading zeros."""
    return text.lstrip("0") or "0"
