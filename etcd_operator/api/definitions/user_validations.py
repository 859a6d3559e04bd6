"""The validation rules of EtcdRole and EtcdUser, as the API server applies them (see `definitions.cel`).

`etcd_auth.decide.spec` has the same rules in Python, for objects that were stored under another definition.
"""

from etcd_operator.api.definitions.cel import Form, Validation, immutable, name_length, whole
from etcd_operator.api.definitions.limits import LONGEST_LABEL
from etcd_operator.api.users import MARK
from etcd_operator.formats import DURATION_PATTERN

LONGEST_NAME = LONGEST_LABEL
"""Characters. A CN has at most 64."""

NAME_LENGTH = (
    f"must have at most {LONGEST_NAME} characters, because it is the CN of a certificate: choose a shorter "
    "name"
)
ROLE_NAME_LENGTH = f"must have at most {LONGEST_NAME} characters: choose a shorter name"
RESERVED = Form(
    pattern="root|etcd|etcd-.*",
    message="root, etcd and names that begin with etcd- are reserved for the operator: choose another name",
    forbids=True,
)
ROOT_ROLE = "the role root is reserved for the operator: grant a role with the permissions that are needed"
ONE_PLACE = "key, prefix and range are alternatives: set exactly one of them"
EMPTY_KEY = "must not be empty: use an empty prefix for all keys"
MARKED_KEY = (
    "keys that begin with etcd.improbable.io/managed/ are reserved for the operator: choose another key"
)
ORDER = "to must be greater than from, in the order of bytes, or be left out"
ROTATION = Form(
    pattern=DURATION_PATTERN.replace("wdhms", "wdh"),
    message="must be a duration in the units w, d and h, like 30d or 1d12h",
)
ONLY_PASSWORDS = "belongs to authentication: password. Certificates are renewed without it"

_PERMISSION = "spec.permissions[]"


def _name(length: str) -> tuple[Validation, ...]:
    return (
        name_length(LONGEST_NAME, length),
        Validation(
            at="",
            field=".metadata.name",
            holds=f"!{whole(RESERVED.pattern, 'self.metadata.name')}",
            message=RESERVED.message,
        ),
    )


ROLE = (
    *_name(ROLE_NAME_LENGTH),
    immutable("clusterRef"),
    Validation(
        at=_PERMISSION,
        holds="[has(self.key), has(self.prefix), has(self.range)].filter(x, x).size() == 1",
        message=ONE_PLACE,
    ),
    Validation(at=f"{_PERMISSION}.key", holds="self != ''", message=EMPTY_KEY),
    Validation(at=f"{_PERMISSION}.key", holds=f"!self.startsWith('{MARK}')", message=MARKED_KEY),
    Validation(at=f"{_PERMISSION}.range.from", holds="self != ''", message=EMPTY_KEY),
    Validation(
        at=f"{_PERMISSION}.range",
        holds="!has(self.to) || bytes(self.to) > bytes(self.from)",
        message=ORDER,
    ),
)

USER = (
    *_name(NAME_LENGTH),
    immutable("clusterRef"),
    Validation(at="spec.roles[]", holds="self != 'root'", message=ROOT_ROLE),
    ROTATION.rule("spec.rotateAfter"),
    Validation(
        at="spec",
        field=".rotateAfter",
        holds="!has(self.rotateAfter) || self.authentication == 'password'",
        message=ONLY_PASSWORDS,
    ),
)
