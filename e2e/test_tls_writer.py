"""All that can be changed about TLS and users of a cluster, one after the other, while clients write."""

import base64
import json
import time
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from e2e.support.clusters import IMPROBABLE, Document, each_kind
from e2e.support.resizing import leaders_pod, member_ids, member_of, sized
from e2e.support.secured import authorities, content, issuer, root
from e2e.support.space import Space
from e2e.support.status import condition
from e2e.support.story import BACK_OFF, WRITER, Story, refusals, start_writer
from e2e.support.waiting import LONG, wait_until
from e2e.test_authentication import declare
from e2e.test_tls import BOTH, settled
from etcd_operator.api.users import ROTATED_ANNOTATION
from etcd_operator.etcd.handshake import shake
from etcd_operator.pki.authority import renewed_ca
from etcd_operator.pki.description import describe

APP = "app-etcd-connection"


@pytest.mark.long
@pytest.mark.timeout(3600)
@each_kind()
def test_tls_and_users_are_added_changed_and_removed_and_no_write_is_lost(space: Space, kind: Any) -> None:
    document: Document = kind(version="3.5.35")
    space.kubectl.apply(document)
    space.wait_serving(document)
    space.wait_settled(document)
    shared = f"{document['metadata']['name']}-client-tls"
    with Story(space, document) as story:
        preferred = {**BOTH, "client": {"auto": {}, "mode": "Prefer"}}
        story.take("TLS is added", lambda: story.apply(tls=preferred))
        story.take("the writer uses TLS", lambda: story.use(shared))
        story.take("TLS is required", lambda: story.apply(tls=BOTH))
        for size in (5, 3):
            spec = sized(document, size)["spec"]
            story.take(f"{size} members", lambda spec=spec: story.apply(**spec))  # type: ignore[misc]
        declare_users(space, document)
        story.take("the writer is a user", lambda: story.use(APP))
        start_writer(space, document, "named-etcd-connection", pause=1.0)
        story.take("authentication is enabled", lambda: authenticate(story, is_enabled=True))
        story.take("a member is replaced", lambda: replace_follower(story))
        story.take("users are rotated", lambda: rotate_users(story))
        story.take("3.6 with TLS and users", lambda: story.apply(version="3.6.16"))
        story.take("authentication is disabled", lambda: authenticate(story, is_enabled=False))
        story.take("3.7 with TLS", lambda: story.apply(version="3.7.3"))
        refused = refusals(space)
        space.kubectl("delete", "pod", WRITER, "--now")
        story.take("TLS is preferred", lambda: story.apply(tls=preferred))
        story.take("the writer uses no TLS", lambda: story.use(""))
        story.take("TLS is removed", lambda: story.apply(tls=None))
    story.judge()
    assert refused == []


@pytest.mark.long
@pytest.mark.timeout(3600)
@each_kind()
def test_certificates_are_renewed_and_cas_replaced_and_no_client_that_reads_its_files_is_refused(
    space: Space, kind: Any
) -> None:
    document: Document = kind(tls=BOTH)
    space.kubectl.apply(document)
    settled(space, document)
    pods = {pod["metadata"]["uid"] for pod in space.pods(document)}
    start_writer(space, document)
    with Story(space, document, f"{document['metadata']['name']}-client-tls") as story:
        story.take("leafs are renewed", lambda: renew_leafs(story))
        story.take("the CA is renewed", lambda: renew_ca(story))
        story.take("the CA is rotated", lambda: rotate_ca(story))
    story.judge()
    assert refusals(space) == []
    assert len(pods & {pod["metadata"]["uid"] for pod in space.pods(document)}) in (0, 3)


def hurry(space: Space) -> bool:
    """Let the kubelets look at the Secrets of all pods, as they do by themselves every minute or so."""
    space.kubectl("annotate", "pods", "--all", "--overwrite", f"looked-at={time.monotonic_ns()}")
    return True


def presented(space: Space, document: Document) -> set[str]:
    """The serial numbers of what members present to clients."""
    ends = [f"{address}:2379" for address in space.addresses(document)]
    given = root(space, document)
    assert given is not None
    return {leaf.serial for end in ends if (leaf := shake(end, given).leaf) is not None}


def renew_leafs(story: Story) -> None:
    """They are made shorter, so all are replaced at once."""
    space, document = story.space, story.document
    former = presented(space, document)
    assert len(former) == 3
    story.apply(tls={side: {"auto": {}, "leafDuration": "10m"} for side in BOTH})

    def is_presented() -> bool:
        hurry(space)
        now = presented(space, document)
        return len(now) == 3 and not now & former

    space.wait_for(document, is_presented, "all present others", within=4 * LONG, every=10)


def renew_ca(story: Story) -> None:
    """As if it had been made nine days ago, for ten; the operator reads it within five minutes."""
    space, document = story.space, story.document
    secret, ca = authorities(space, document), issuer(space, document, "client")
    nine = timedelta(days=9)
    old = renewed_ca(ca, now=datetime.now(UTC) - nine, duration=nine + timedelta(days=1))
    data = {"client-issuer.crt": base64.b64encode(old.certificate).decode()}
    where = space.kubectl.within(secret["metadata"]["namespace"])
    where("patch", "secret", secret["metadata"]["name"], "--type=merge", "-p", json.dumps({"data": data}))
    rotating(story, "True")
    rotating(story, "False")
    renewed = describe(issuer(space, document, "client").certificate)
    assert (renewed.key_id, renewed.not_after > datetime.now(UTC) + timedelta(days=3000)) == (
        describe(ca.certificate).key_id,
        True,
    )


def rotating(story: Story, status: str) -> None:
    """Wait until members are restarted for their TLS, or a CA is rotated, or neither is."""
    space, document = story.space, story.document

    def is_so() -> bool:
        hurry(space)
        return bool(condition(space.stored(document), "TLSRotating")["status"] == status)

    space.wait_for(document, is_so, f"TLSRotating is {status}", within=BACK_OFF, every=5)


def signing(story: Story) -> str:
    return str(story.space.status(story.document)["tls"]["clientCA"])


def rotate_ca(story: Story) -> None:
    space, document, former = story.space, story.document, signing(story)
    resource = "etcdcluster." + document["apiVersion"].partition("/")[0]
    request = "etcd.improbable.io/rotate-client-ca=1"
    space.kubectl("annotate", resource, document["metadata"]["name"], request)
    space.wait_condition(document, "TLSRotating", "ClientTrusting", "ClientReissuing")
    space.wait_for(
        document,
        lambda: hurry(space) and signing(story) != former,
        "the next CA signs",
        within=2 * LONG,
        every=5,
    )

    def is_dropping() -> bool:
        hurry(space)
        return bool(condition(space.stored(document), "TLSRotating")["reason"] == "ClientDropping")

    space.wait_for(document, is_dropping, "all leafs are replaced", within=4 * LONG, every=5)
    rotating(story, "False")
    settled(space, document)


def declare_users(space: Space, document: Document) -> None:
    """One with a certificate for the writer, one with a password for etcdctl."""
    declare(space, document, "EtcdRole", "all", permissions=[{"prefix": "", "access": "ReadWrite"}])
    declare(space, document, "EtcdUser", "app", roles=["all"], authentication="certificate")
    password = {"authentication": "password", "rotateAfter": "30d"}
    declare(space, document, "EtcdUser", "named", roles=["all"], **password)
    ready = ("--all", "--for=condition=Ready", f"--timeout={LONG:.0f}s")
    space.kubectl("wait", "etcduser", *ready, deadline=LONG + 30)


def authenticate(story: Story, *, is_enabled: bool) -> None:
    story.apply(auth={"enabled": is_enabled})
    wanted = str(is_enabled)

    def is_done() -> bool:
        return bool(
            condition(story.space.stored(story.document), "AuthenticationEnabled")["status"] == wanted
        )

    wait_until(is_done, f"authentication is enabled: {wanted}")


def replace_follower(story: Story) -> None:
    """Its pod is deleted, and its claim, if it has one."""
    space, document = story.space, story.document
    leader, before = leaders_pod(space, document), set(member_ids(space, document).values())
    pod = next(each for each in space.pods(document) if each["metadata"]["name"] != leader)
    if document["apiVersion"] == IMPROBABLE:
        space.kubectl("delete", "pvc", member_of(pod), "--wait=false")
    space.kubectl("delete", "pod", pod["metadata"]["name"])

    def is_replaced() -> bool:
        now = set(member_ids(space, document).values())
        return (len(now), len(now - before)) == (3, 1)

    space.wait_for(document, is_replaced, "another member is there", within=2 * LONG)
    space.wait_settled(document, within=2 * LONG)


def rotate_users(story: Story) -> None:
    """A password as if it was old, and a certificate whose Secret is deleted."""
    space, former = story.space, content(story.space, APP)
    old = (datetime.now(UTC) - timedelta(days=26)).isoformat(timespec="seconds").replace("+00:00", "Z")
    space.kubectl("annotate", "--overwrite", "secret", "named-etcd-connection", f"{ROTATED_ANNOTATION}={old}")
    space.kubectl("delete", "secret", APP)
    patch = json.dumps({"spec": {"rotateAfter": "25d"}})
    space.kubectl("patch", "etcduser", "named", "--type=merge", "-p", patch)
    wait_until(
        lambda: content(space, APP).get("tls.crt") not in (None, former["tls.crt"]),
        "the user has another certificate",
        within=2 * LONG,
    )
    story.use(APP)
    wait_until(lambda: "named_2" in space.kubectl("logs", WRITER), "etcdctl uses the next password")
