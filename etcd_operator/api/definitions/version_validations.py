"""The validation rules of `spec.version`: which versions exist, and which follow the running one.

`upgrade.skew` applies the same rules to clusters whose definitions are missing or outdated.
"""

from etcd_operator.api.definitions.cel import Validation
from etcd_operator.api.definitions.limits import NEWEST_MINOR, OLDEST_MINOR, PATCH_FLOORS, VERSION_PATTERN

SUPPORTED = (
    f"is not a supported version: use a full version from 3.{OLDEST_MINOR}.0 to 3.{NEWEST_MINOR}.x, "
    "like 3.6.16 or v3.6.16"
)

EXPLAINED = f"""'"' + self + '" {SUPPORTED}'"""
"""The same with the version, in CEL."""

SUPPORTED_VERSION = Validation(
    at="spec.version",
    holds=f"self.matches('{VERSION_PATTERN}')",
    message=f"the version {SUPPORTED}",
    explain=EXPLAINED,
)

_DESIRED = "self.spec.version"
_RUNNING = "(oldSelf.status.currentVersion)"


def _change(holds: str, message: str, explain: str) -> Validation:
    """A rule for a change of spec.version, based on the running version and not on the previous spec.

    status.currentVersion is the lowest version that any member runs; the API server carries the status over
    into every edit of the spec. A cluster that has never served accepts any version.
    holds: CEL, in which `v[0]` is the running version and `v[1]` the desired one, each as
    [major, minor, patch]. CEL has no variables: `[value].all(v, ...)` stands for one.
    """
    numbers = "x.replace('v', '').split('-')[0].split('.').map(n, int(n))"
    is_free = (
        "!(has(self.spec) && has(self.spec.version)) || "
        "((has(oldSelf.spec) && has(oldSelf.spec.version)) && "
        f"({_DESIRED} == oldSelf.spec.version || 'v' + {_DESIRED} == oldSelf.spec.version || "
        f"{_DESIRED} == 'v' + oldSelf.spec.version)) || "
        "oldSelf.?status.?currentVersion.orValue('') == '' || "
        f"!{_DESIRED}.matches('{VERSION_PATTERN}')"
    )
    return Validation(
        at="",
        field=".spec.version",
        holds=f"{is_free} || [[{_RUNNING}, {_DESIRED}].map(x, {numbers})].all(v, {holds})",
        message=message,
        explain=explain,
    )


VERSION_CHANGES = (
    _change(
        "v[1][1] > v[0][1] || (v[1][1] == v[0][1] && v[1][2] >= v[0][2])",
        "etcd does not support a downgrade below the running version: use that version or a later one",
        f"'etcd does not support a downgrade below ' + {_RUNNING} + ', which is running: use ' + "
        f"{_RUNNING} + ' or a later version'",
    ),
    _change(
        "v[1][1] <= v[0][1] + 1",
        "etcd supports upgrades by one minor version at a time: upgrade to the next one first",
        # Not computed from the numbers: the API server would estimate the cost of that as too high.
        f"'etcd supports upgrades by one minor version at a time, and ' + {_RUNNING} + "
        "' is running: upgrade to ' + "
        f"({_RUNNING}.startsWith('3.4.') ? '3.5' : {_RUNNING}.startsWith('3.5.') ? '3.6' : '3.7') + "
        "'.x first'",
    ),
    *(
        _change(
            f"v[0][1] != {minor - 1} || v[1][1] != {minor} || v[0][2] >= {patch}",
            f"an upgrade to 3.{minor} requires 3.{minor - 1}.{patch} or later on every member: "
            f"upgrade to such a 3.{minor - 1} version first and wait until the status shows it",
            f"'an upgrade to 3.{minor} requires 3.{minor - 1}.{patch} or later on every member, and ' + "
            f"{_RUNNING} + ' is running: upgrade to such a 3.{minor - 1} version first and wait until "
            "the status shows it'",
        )
        for minor, patch in PATCH_FLOORS.items()
    ),
)
