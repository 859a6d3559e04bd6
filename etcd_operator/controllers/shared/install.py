"""Installs the operator's own definitions: CRDs and admission policies.

Server-side apply: what is already as it should be is not changed. A definition that cannot be applied
prevents no other from being applied, and none of them stops the operator, because somebody else may
have installed it. All that could not be applied is tried again until it is:

- an API server that does not answer, or cannot do so now: soon, then every half minute;
- a refusal (a missing right, a schema it does not accept): every minute, since somebody may correct that.

A problem is logged when it begins and when its message changes, and `check` shows it until it is over.
"""

import random as chance
import threading
from collections.abc import Callable
from typing import Any

import structlog

from etcd_operator.api.definitions.crd import crds
from etcd_operator.api.definitions.policies import policies
from etcd_operator.api.meta import RawObject
from etcd_operator.errors import OperatorError, RetryableError, Throttled
from etcd_operator.keys import Key
from etcd_operator.kube import resources
from etcd_operator.kube.client import Client, PatchKind
from etcd_operator.kube.transport import NoResponse
from etcd_operator.pacing import Exponential

DELAYS = Exponential(1.0, cap=30.0)
REFUSED_DELAY = 60.0

log = structlog.get_logger()

_BY_KIND = {
    resource.kind: resource
    for resource in (
        resources.CRDS,
        resources.MUTATING_POLICIES,
        resources.MUTATING_POLICY_BINDINGS,
        resources.VALIDATING_POLICIES,
        resources.VALIDATING_POLICY_BINDINGS,
    )
}

Wait = Callable[[float], bool]
"""Waits that many seconds, or until the process is asked to stop; whether it is."""


class Installer:
    """Applies the definitions in the thread of its caller; `check` may be asked by any other."""

    def __init__(self, client: Client, *, wait: Wait, random: Callable[[], float] = chance.random) -> None:
        self._client = client
        self._wait = wait
        self._random = random
        self._has_tried = threading.Event()
        self._missing: dict[str, RawObject] = {_label(body): body for body in (*crds(), *policies())}
        self._problems: dict[str, OperatorError] = {}

    def try_all(self) -> bool:
        """Apply each definition that is not applied yet, once; whether none is left."""
        for label, body in list(self._missing.items()):
            try:
                self._apply(body)
            except OperatorError as error:
                self._failed(label, error)
                if isinstance(error, NoResponse):
                    break  # the others would wait for nothing, too
            else:
                self._done(label)
        self._has_tried.set()
        return not self._missing

    def try_until_done(self) -> None:
        """Try again what is left, until nothing is or the process is asked to stop."""
        failures = 1
        while self._missing and not self._wait(self._pause(DELAYS.after(failures))):
            failures += 1
            self.try_all()

    def check(self) -> tuple[bool, str]:
        """Whether the operator may be called ready, and what is not applied, for people.

        A definition that is refused may have been installed by somebody else: it is only shown.
        """
        if not self._has_tried.is_set():
            return False, "not applied yet"
        problems = dict(self._problems)
        missing = "; ".join(f"{label} is not applied: {error}" for label, error in problems.items())
        is_ready = not any(isinstance(error, RetryableError) for error in problems.values())
        return is_ready, missing or "applied"

    def _pause(self, delay: float) -> float:
        """Seconds until the next try: `delay`, more where the API server asks for it or refuses."""
        passing = [error for error in self._problems.values() if isinstance(error, RetryableError)]
        asked = [min(error.retry_after, REFUSED_DELAY) for error in passing if isinstance(error, Throttled)]
        return max([delay, *asked]) * (1 + self._random() / 5) if passing else REFUSED_DELAY

    def _apply(self, body: RawObject) -> None:
        resource, name = _BY_KIND[body["kind"]], body["metadata"]["name"]
        if resource is resources.CRDS:
            # A definition that was created before Kubernetes 1.16 has the opposite, which excludes defaults.
            # The API server drops it, so in a manifest it would differ from what is stored for ever.
            body = {**body, "spec": {**body["spec"], "preserveUnknownFields": False}}
        if resource is resources.CRDS or self._client.has_api(resource.api_version, resource.plural):
            self._client.patch(resource, Key("", name), body, dict[str, Any], kind=PatchKind.APPLY)
        else:
            # Older API servers lack mutating policies.
            log.warning("policy_not_supported", kind=body["kind"], name=name)

    def _failed(self, label: str, error: OperatorError) -> None:
        before = self._problems.get(label)
        if before is None or str(before) != str(error):
            log.warning("definition_not_applied", definition=label, error=str(error))
        self._problems = {**self._problems, label: error}

    def _done(self, label: str) -> None:
        del self._missing[label]
        if label in self._problems:
            log.info("definition_applied", definition=label)
        self._problems = {other: error for other, error in self._problems.items() if other != label}


def _label(body: RawObject) -> str:
    return f"{body['kind']} {body['metadata']['name']}"
