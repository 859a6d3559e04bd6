"""Which version of etcd can be started on a backup of another one."""

from etcd_operator.core.versions import parse_version
from etcd_operator.errors import InvalidSpec


class NotUsable(Exception):
    """The backup cannot be used with the version that was asked for, or that is not a version."""


def check_usable(backup: str, asked: str) -> None:
    """Raise `NotUsable` unless etcd `asked` may be started on a backup of etcd `backup`.

    It has to be of the same minor or of the next one. etcd neither reads what a later minor has written nor
    skips a minor. An empty `asked` stands for any.
    """
    if not asked:
        return
    try:
        wanted, stored = parse_version(asked).minor, parse_version(backup).minor
    except InvalidSpec as error:
        raise NotUsable(f"etcdVersion={asked}: {error}") from error
    if wanted - stored not in (0, 1):
        raise NotUsable(
            f"the newest backup is of etcd {backup}: use 3.{stored} or 3.{stored + 1}, not {asked}"
        )
