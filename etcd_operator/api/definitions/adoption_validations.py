"""The rules of `spec.adopt` and `spec.selfHosted`, as the API server applies them (see `definitions.cel`)."""

from etcd_operator.api.cluster_spec import ENDPOINT_FORM
from etcd_operator.api.definitions.cel import Validation

# Not the whole pattern, which `dialects.base` applies: the API server would estimate its cost as too high.
_IS_ENDPOINT = "self.startsWith('http://') && self.matches(':[0-9]+/?$')"
_HAS_ADOPT = "self.?spec.?adopt.hasValue()"
_HAD_ADOPT = "oldSelf.?spec.?adopt.hasValue()"
_HAD_ANY = f"({_HAD_ADOPT} || oldSelf.?spec.?selfHosted.hasValue())"
_HAS_ANY = f"({_HAS_ADOPT} || self.?spec.?selfHosted.hasValue())"
_BEGUN = (
    "(oldSelf.?status.?clusterID.orValue('') != '' || oldSelf.?status.?bootstrap.hasValue() || "
    "oldSelf.?status.?recovery.hasValue())"
)
# With members on record: without, it is not known which are left, and a person may correct or withdraw it.
_ADOPTING = (
    "(oldSelf.?status.?adoption.?members.orValue([]).size() > 0 && "
    "!oldSelf.?status.?adoption.?finished.orValue(false))"
)
# A persistent resource that was created again, on claims that record no bootstrap: it may have been
# adopting a cluster before. See `adoption.adopt_again`, which decides whether it was.
_RESUMED = (
    "(oldSelf.?status.?clusterID.orValue('') != '' && !oldSelf.?status.?adoption.hasValue() && "
    "oldSelf.?status.?bootstrap.hasValue() && "
    "oldSelf.?status.?bootstrap.?members.orValue([]).size() == 0 && "
    "oldSelf.?status.?recovery.?replaces.orValue('') == '')"
)


def _rules(*, has_self_hosted: bool) -> tuple[Validation, ...]:
    had, has = (_HAD_ANY, _HAS_ANY) if has_self_hosted else (_HAD_ADOPT, _HAS_ADOPT)
    may_return = _ADOPTING if has_self_hosted else f"{_ADOPTING} || {_RESUMED}"
    return (
        Validation(at="spec.adopt.endpoints[]", holds=_IS_ENDPOINT, message=ENDPOINT_FORM),
        Validation(
            at="",
            field=".spec",
            holds=f"!{has} || {had} || !{_BEGUN} || {may_return}",
            message="a cluster that has been bootstrapped cannot adopt another one: create another resource",
        ),
        Validation(
            at="",
            field=".spec",
            # Where it is missing already, the status must stay writable.
            holds=f"!{_ADOPTING} || !{had} || ({has} && (!{_HAS_ADOPT} || !{_HAD_ADOPT} || "
            "self.spec.adopt.endpoints == oldSelf.spec.adopt.endpoints))",
            message="the adoption is in progress: keep spec.adopt with its endpoints until "
            "status.adoption.finished is true; to turn back, set spec.adopt.mode to Leave",
        ),
    )


ALTERNATIVES = "spec.adopt, spec.selfHosted and spec.restore are alternatives: set one of them"

IMPROBABLE_ADOPTION = _rules(has_self_hosted=False)

COREOS_ADOPTION = (
    *_rules(has_self_hosted=True),
    Validation(at="spec.selfHosted.bootMemberClientEndpoint", holds=_IS_ENDPOINT, message=ENDPOINT_FORM),
    Validation(
        at="spec",
        holds="[has(self.adopt), has(self.selfHosted), has(self.restore)].filter(x, x).size() < 2",
        message=ALTERNATIVES,
    ),
)
