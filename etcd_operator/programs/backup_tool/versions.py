"""Which version of etcd can be started on a backup of another one."""

from etcd_operator.errors import InvalidSpec
from etcd_operator.versions import minors_that_start_on, parse_version, starts_on


class NotUsable(Exception):
    """The backup cannot be used with the version that was asked for, or that is not a version."""


def check_usable(backup: str, asked: str) -> None:
    """Raise `NotUsable` unless etcd `asked` may be started on a backup of etcd `backup`.

    See `etcd_operator.versions.starts_on`. An empty `asked` stands for any.
    """
    if not asked:
        return
    try:
        wanted, stored = str(parse_version(asked)), str(parse_version(backup))
    except InvalidSpec as error:
        raise NotUsable(f"etcdVersion={asked}: {error}") from error
    if not starts_on(wanted, stored):
        raise NotUsable(
            f"the newest backup is of etcd {backup}: use {minors_that_start_on(stored)}, not {asked}"
        )
