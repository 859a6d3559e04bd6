"""What the EtcdRoles and EtcdUsers of one cluster ask for, and what each of them reports."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime

import msgspec

from etcd_operator.api.definitions.user_validations import NAME_LENGTH, ROLE_NAME_LENGTH
from etcd_operator.api.meta import ObjectMeta, merge_conditions
from etcd_operator.api.users import (
    READY,
    EtcdRole,
    EtcdUser,
    RoleSpec,
    RoleStatus,
    UserSpec,
    UserStatus,
)
from etcd_operator.controllers.etcd_auth.access import ClientAuthority
from etcd_operator.controllers.etcd_auth.connections import Asked, UserConnection, connect
from etcd_operator.controllers.etcd_auth.decide import report, spec
from etcd_operator.controllers.etcd_auth.decide.names import Method, names_of
from etcd_operator.controllers.etcd_auth.decide.report import Verdict
from etcd_operator.controllers.etcd_auth.decide.state import AuthPlan, DesiredRole, DesiredUser
from etcd_operator.controllers.etcd_auth.manifests.connection import secret_name
from etcd_operator.controllers.shared.name_conflicts import NameConflict
from etcd_operator.controllers.shared.objects import Objects
from etcd_operator.decoding import parsed
from etcd_operator.errors import Conflict, Forbidden, NotLeading, OperatorError, Throttled, Unavailable
from etcd_operator.formats import timestamp
from etcd_operator.keys import Key
from etcd_operator.pki.errors import ClockSkew


@dataclass(kw_only=True)
class DeclaredRole:
    """An EtcdRole; spec: None for one that is not valid, about which `verdict` reports."""

    role: EtcdRole
    spec: RoleSpec | None
    verdict: Verdict | None = None

    @property
    def name(self) -> str:
        """Its name, also in etcd."""
        return self.role.metadata.name

    def desired(self) -> Iterator[DesiredRole]:
        """What etcd is to have."""
        if self.spec is not None:
            yield DesiredRole(name=self.name, permissions=spec.permissions(self.spec))

    def result(self, plan: AuthPlan) -> Verdict:
        """Once the plan is carried out."""
        return self.verdict or report.of_role(self.name, plan)

    def status(self, plan: AuthPlan, now: str) -> RoleStatus:
        """Once the plan is carried out."""
        verdict = self.result(plan)
        before, generation = self.role.status, self.role.metadata.generation
        wanted = (verdict.condition(generation),)
        conditions = merge_conditions(before.conditions, wanted, now, own={READY})
        return RoleStatus(observed_generation=generation, conditions=conditions)


@dataclass(kw_only=True)
class DeclaredUser:
    """An EtcdUser; spec: None for one that is not valid. With a verdict, its user in etcd remains as it is.

    connection: its Secret, once that is known. username: the user in etcd that the Secret is for.
    """

    user: EtcdUser
    spec: UserSpec | None
    verdict: Verdict | None = None
    connection: UserConnection | None = None
    username: str = ""
    failure: OperatorError | None = None  # of its Secret
    unproven: set[str] = field(default_factory=set)  # users in etcd whose password may be another one
    is_later: bool = False  # another pass comes to it: all of it remains as it is

    @property
    def name(self) -> str:
        """Its name."""
        return self.user.metadata.name

    @property
    def is_held(self) -> bool:
        """Whether nothing is changed for it in etcd."""
        return self.spec is None or self.verdict is not None

    @property
    def was_ready(self) -> bool:
        """Whether its status says that etcd has what it asks for now."""
        return report.was_ready(self.user.status.conditions, self.user.metadata.generation)

    def wait(self) -> None:
        """Leave it to another pass."""
        self.is_later = True
        self.verdict = self.verdict or report.later(is_ready=self.was_ready)

    def desired(self) -> Iterator[DesiredUser]:
        """The users that etcd is to have."""
        if self.spec is None or self.is_held:
            return
        if self.connection is None:
            yield self._desired(self.spec, self.name)
            return
        rotation = self.connection.rotation
        for name in filter(None, (rotation.current, rotation.following)):
            yield self._desired(self.spec, name)
        if rotation.retiring:
            yield self._desired(self.spec, rotation.retiring, is_retiring=True)

    def _desired(self, spec: UserSpec, name: str, *, is_retiring: bool = False) -> DesiredUser:
        return DesiredUser(
            name=name,
            of=self.name,
            method=Method(spec.authentication),
            roles=frozenset(spec.roles),
            is_retiring=is_retiring,
            has_other_password=not is_retiring and name in self.unproven,
        )

    def connect(
        self, cluster: Key, authority: ClientAuthority | None, objects: Objects, now: datetime
    ) -> None:
        """Its Secret; one that cannot be written holds up only this user."""
        if self.spec is None:
            return
        has_password = self.spec.authentication == "password"
        if authority is None and not has_password:
            self.verdict = report.needs_client_tls()
            return
        asked = Asked(
            user=self.user,
            cluster=cluster,
            has_password=has_password,
            after=spec.rotate_after(self.spec),
            authority=authority,
            now=now,
        )
        try:
            self.connection = connect(asked, objects)
        except OperatorError as error:
            self.fail(error)

    def publish(self, objects: Objects) -> None:
        """What its Secret has, once etcd is as planned; a failure holds up only this user."""
        if self.connection is None or self.is_held:
            return
        try:
            self.username = self.connection.publish(objects)
        except OperatorError as error:
            self.fail(error)

    def fail(self, error: OperatorError) -> None:
        """Its Secret cannot be read or written. Raises `NotLeading`."""
        if isinstance(error, NotLeading):
            raise error
        is_named = isinstance(error, (Forbidden, NameConflict, ClockSkew))
        reason = type(error).__name__ if is_named else "SecretFailed"
        self.failure = error
        self.verdict = self.verdict or Verdict(is_ready=False, reason=reason, message=str(error))

    @property
    def passwords(self) -> dict[str, str]:
        """By name of the user in etcd; none where nothing is changed."""
        return dict(self.connection.passwords) if self.connection is not None and not self.is_held else {}

    def result(self, plan: AuthPlan) -> Verdict:
        """Once the plan is carried out."""
        names = [each.name for each in self.desired()]
        return self.verdict or report.of_user(self.name, names, plan)

    def status(self, plan: AuthPlan, now: str) -> UserStatus:
        """Once the plan is carried out."""
        verdict = self.result(plan)
        before, generation = self.user.status, self.user.metadata.generation
        wanted = (verdict.condition(generation),)
        conditions = merge_conditions(before.conditions, wanted, now, own={READY})
        if self.verdict is not None or verdict.reason == report.TAKEN:
            return msgspec.structs.replace(before, observed_generation=generation, conditions=conditions)
        due = self.connection.rotation.due if self.connection is not None else None
        return UserStatus(
            observed_generation=generation,
            username=self.username or self.name,
            connection_secret=secret_name(self.name) if self.connection is not None else "",
            rotation_time=timestamp(due) if due is not None else "",
            conditions=conditions,
        )


Declared = DeclaredRole | DeclaredUser


def declared_role(role: EtcdRole) -> DeclaredRole:
    """An EtcdRole as it is stored."""
    made, wrong = parsed(role.spec, RoleSpec, spec.role_problem)
    wrong = spec.name_problem(role.metadata.name, ROLE_NAME_LENGTH) or wrong
    return DeclaredRole(
        role=role, spec=None if wrong else made, verdict=report.invalid(wrong) if wrong else None
    )


def declared_user(user: EtcdUser) -> DeclaredUser:
    """An EtcdUser as it is stored; its Secret is not known yet."""
    made, wrong = parsed(user.spec, UserSpec, spec.user_problem)
    wrong = spec.name_problem(user.metadata.name, NAME_LENGTH) or wrong
    return DeclaredUser(
        user=user, spec=None if wrong else made, verdict=report.invalid(wrong) if wrong else None
    )


def not_ready(roles: Iterable[DeclaredRole], users: Iterable[DeclaredUser], plan: AuthPlan) -> Iterator[str]:
    """The objects that etcd does not have as they are declared, once the plan is carried out."""
    yield from (f"EtcdRole {each.name}" for each in roles if not each.result(plan).is_ready)
    yield from (f"EtcdUser {each.name}" for each in users if not each.result(plan).is_ready)


def held_users(users: list[DeclaredUser]) -> frozenset[str]:
    """The names in etcd of users for which nothing is changed."""
    return frozenset(name for user in users if user.is_held for name in names_of(user.name))


def connect_all(
    users: Iterable[DeclaredUser],
    cluster: Key,
    authority: ClientAuthority | None,
    objects: Objects,
    now: datetime,
    is_over: Callable[[], bool],
) -> None:
    """The Secrets of these users: one by one, as long as the API server answers, and there is time.

    Raises `NotLeading`.
    """
    failure: OperatorError | None = None
    for user in users:
        if is_over():
            user.wait()
        elif isinstance(failure, Unavailable):
            user.fail(failure)
        else:
            user.connect(cluster, authority, objects, now)
            failure = user.failure


def failure_of(users: Iterable[DeclaredUser]) -> OperatorError | None:
    """What failed of a Secret, and is worth another try soon."""
    passing = (Unavailable, Conflict, Throttled)
    return next((user.failure for user in users if isinstance(user.failure, passing)), None)


def requested(metadata: ObjectMeta) -> tuple[object, ...]:
    """What people change of an object."""
    return metadata.uid, metadata.generation, tuple(sorted(metadata.labels.items()))
