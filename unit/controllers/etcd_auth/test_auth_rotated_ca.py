"""The client CA is rotated while users are required: their Secrets have what is accepted at any time."""

import base64
import json
from datetime import timedelta

from etcd_operator.api.shared_keys import ROTATE_CLIENT_ANNOTATION
from unit.controllers.etcd_auth.test_auth_enabling import ON, client, served, wait_for
from unit.fakes.apiserver.kinds import SECRETS
from unit.passes.bench import Bench
from unit.passes.bodies import persistent
from unit.passes.harness import OWN_NAMESPACE
from unit.passes.users import secret

MOST_MINUTES = 60


def is_rotated(made: Bench) -> bool:
    (stored,) = made.api.objects.select(SECRETS, OWN_NAMESPACE)
    record = json.loads(base64.b64decode(stored["data"]["client.json"]))
    return (record["phase"], record.get("request")) == ("Stable", "1")


def test_users_are_served_in_each_phase_of_a_rotation() -> None:
    short = {"client": {"auto": {}, "leafDuration": "60m"}}
    with served(persistent, ago=timedelta(minutes=50), tls=short, **ON) as (made, kind):
        wait_for(made, enabled=True)
        made.etcd.put(b"/app/a", b"1")
        before, record = secret(made), made.status(kind)["tls"]
        made.edit(kind, "c", {"metadata": {"annotations": {ROTATE_CLIENT_ANNOTATION: "1"}}})
        for _ in range(MOST_MINUTES):
            made.wait(60.0)
            for name in ("app", "named"):
                with client(made, f"{name}-etcd-connection") as app:
                    assert app.get(b"/app/a") is not None
            if is_rotated(made):
                break
        assert is_rotated(made)
        assert made.status(kind)["tls"]["clientCA"] != record["clientCA"]
        assert secret(made)["tls.crt"] != before["tls.crt"]
