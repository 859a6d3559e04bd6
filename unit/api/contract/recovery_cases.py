"""`spec.recovery` of EtcdClusters that is refused."""

from unit.api.contract.case import Case, Manifest

_LONE = (
    "spec.recoveryAfterSeconds: Invalid value: has an effect only with spec.recovery: Automatic: set that, "
    "too, or remove this field"
)


def recoveries(base: Manifest) -> tuple[Case, ...]:
    """For a resource of either group."""
    return (
        Case(
            typed="recovery: Always",
            base=base,
            changes={"spec/recovery": "Always"},
            sees='spec.recovery: Unsupported value: "Always": supported values: "Automatic", "Manual"',
        ),
        Case(
            typed="recoveryAfterSeconds: 5",
            base=base,
            changes={"spec/recovery": "Automatic", "spec/recoveryAfterSeconds": 5},
            sees="spec.recoveryAfterSeconds: Invalid value: 5: spec.recoveryAfterSeconds in body should be "
            "greater than or equal to 10",
        ),
        *(
            Case(
                typed=f"recoveryAfterSeconds: 60, {with_}",
                base=base,
                changes={**changes, "spec/recoveryAfterSeconds": 60},
                sees=_LONE,
            )
            for with_, changes in (
                ("without recovery", {}),
                ("with recovery: Manual", {"spec/recovery": "Manual"}),
            )
        ),
    )
