"""Stores for backups inside of the cluster: an S3 gateway and an emulator of Google Cloud Storage.

Each is one pod with its data in an emptyDir, a Service, and a Secret with the credentials of clients, all in
the namespace of the test. Pods use `url` and `pod_environment`; commands on this machine `local_url` and
`environment`. The credentials are planted: nothing but the Secret may ever contain one of `PLANTED`.

The images are built on first use, in some minutes; `hack/test` does so beforehand.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote, urlencode

from e2e.support import buckets
from e2e.support.clusters import RESTRICTED_CONTAINER, RESTRICTED_POD, Document
from e2e.support.space import Space
from e2e.support.waiting import wait_until
from etcd_operator.kube import resources
from localcluster import images
from localcluster.kubectl import is_ready

BUCKET = "backups"
ACCESS_KEY = "PLANTEDACCESSKEYID"
SECRET_KEY = "planted-secret-access-key"
REFRESH_TOKEN = "planted-refresh-token"
PLANTED = (ACCESS_KEY, SECRET_KEY, REFRESH_TOKEN)

_DATA = "/data"


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """A program that stores objects. `account` names its environment variables: each a key of the Secret."""

    name: str
    scheme: str
    image: str
    port: int
    health: str
    arguments: tuple[str, ...]
    account: Mapping[str, str]
    secret: Mapping[str, str] = field(repr=False)


S3 = Kind(
    name="s3-gateway",
    scheme="s3",
    image=images.VERSITYGW,
    port=7070,
    health="/health",
    arguments=("--port=:7070", "--health=/health", "--quiet", "posix", _DATA),
    account={
        "ROOT_ACCESS_KEY_ID": "AWS_ACCESS_KEY_ID",
        "ROOT_SECRET_ACCESS_KEY": "AWS_SECRET_ACCESS_KEY",
    },
    secret={
        "AWS_ACCESS_KEY_ID": ACCESS_KEY,
        "AWS_SECRET_ACCESS_KEY": SECRET_KEY,
        "credentials": f"[default]\naws_access_key_id = {ACCESS_KEY}\naws_secret_access_key = {SECRET_KEY}\n",
        "config": "[default]\nregion = us-east-1\n",
    },
)
GCS = Kind(
    name="gcs-emulator",
    scheme="gs",
    image=images.FAKE_GCS_SERVER,
    port=4443,
    health="/_internal/healthcheck",
    arguments=("-scheme=http", "-port=4443", "-backend=filesystem", f"-filesystem-root={_DATA}"),
    account={},
    secret={  # the emulator accepts everyone
        "credentials.json": json.dumps(
            {
                "type": "authorized_user",
                "client_id": "client",
                "client_secret": "planted",
                "refresh_token": REFRESH_TOKEN,
            }
        )
    },
)


@dataclass(frozen=True, kw_only=True)
class DeployedStore:
    """One store that serves; `address` is that of its pod."""

    space: Space
    kind: Kind
    address: str

    @property
    def secret(self) -> str:
        """The name of the Secret with the credentials."""
        return self.kind.name

    @property
    def endpoint(self) -> str:
        """The URL of the service for pods of every namespace."""
        return f"http://{self.kind.name}.{self.space.namespace}.svc:{self.kind.port}"

    @property
    def local_endpoint(self) -> str:
        """The URL of the service for this machine, which does not know the names of Services."""
        return f"http://{self.address}:{self.kind.port}"

    def url(self, key: str) -> str:
        """The URL of an object for pods, such as the operator writes it into a Job."""
        return url(self.kind, self.endpoint, key)

    def local_url(self, key: str) -> str:
        """The URL of the same object for the command line on this machine."""
        return url(self.kind, self.local_endpoint, key)

    @property
    def pod_environment(self) -> dict[str, str]:
        """What a client in a pod needs in its environment, beside the credentials."""
        return client_environment(self.kind, self.endpoint)

    @property
    def environment(self) -> dict[str, str]:
        """What a client on this machine needs in its environment, with the credentials."""
        keys = {key: text for key, text in self.kind.secret.items() if key.isupper()}
        return keys | client_environment(self.kind, self.local_endpoint)

    @property
    def bucket(self) -> buckets.Bucket:
        """The bucket, read by other means than those of the operator."""
        return self.bucket_named(BUCKET)

    def bucket_named(self, name: str) -> buckets.Bucket:
        """Another bucket of the store, which need not exist yet."""
        make = buckets.S3Bucket if self.kind is S3 else buckets.GCSBucket
        return make(self.local_endpoint, name, self.environment)

    def file(self, key: str) -> Path:
        """Where an object lies on this machine, to damage it as a broken disk would; local clusters only."""
        pod = self.space.kubectl.json("get", "pod", self.kind.name)
        node: Path = self.space.testbed.volumes.parent.parent / "nodes" / pod["spec"]["nodeName"]
        volume = node / "kubelet/pods" / str(pod["metadata"]["uid"]) / "volumes/kubernetes.io~empty-dir/data"
        return volume / BUCKET / key


def deploy(space: Space, kind: Kind) -> DeployedStore:
    """A store that serves, with an empty bucket `BUCKET`. Needs a local cluster (`Testbed.is_local`)."""
    space.testbed.load_stores()
    space.kubectl.create(manifests(kind))

    def address() -> str:
        pod = space.api.get(resources.PODS, space.namespace, kind.name) or {}
        return str(pod["status"]["podIP"]) if is_ready(pod) else ""

    found = wait_until(address, f"the pod {kind.name} is ready")
    store = DeployedStore(space=space, kind=kind, address=found)
    store.bucket.create()
    return store


def url(kind: Kind, endpoint: str, key: str) -> str:
    """The URL of an object; `key` may be a template with placeholders in braces."""
    plain = f"{kind.scheme}://{BUCKET}/{quote(key, safe='/{} ')}"
    if kind is not S3:
        return plain
    query = {"region": "us-east-1", "endpoint": endpoint, "s3ForcePathStyle": "true", "disableSSL": "true"}
    return f"{plain}?{urlencode(query, safe=':/')}"


def client_environment(kind: Kind, endpoint: str) -> dict[str, str]:
    """How clients find the store if its URL does not name it."""
    return {} if kind is S3 else {"STORAGE_EMULATOR_HOST": endpoint}


def manifests(kind: Kind) -> list[Document]:
    """Secret, Service and pod; the pod complies with the Pod Security Standard `restricted`."""
    meta = {"name": kind.name, "labels": {"app": kind.name}}
    port = {"name": "http", "port": kind.port, "targetPort": kind.port}
    return [
        {"apiVersion": "v1", "kind": "Secret", "metadata": meta, "stringData": dict(kind.secret)},
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": meta,
            "spec": {"selector": meta["labels"], "ports": [port]},
        },
        {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": _pod(kind)},
    ]


def _pod(kind: Kind) -> Document:
    return {
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": 1,
        "securityContext": {**RESTRICTED_POD, "fsGroup": RESTRICTED_POD["runAsUser"]},
        "containers": [_container(kind)],
        "volumes": [{"name": "data", "emptyDir": {}}],
    }


def _container(kind: Kind) -> Document:
    account = [
        {"name": name, "valueFrom": {"secretKeyRef": {"name": kind.name, "key": key}}}
        for name, key in kind.account.items()
    ]
    return {
        "name": "store",
        "image": kind.image,
        "imagePullPolicy": "Never",
        "args": list(kind.arguments),
        "env": account,
        "ports": [{"containerPort": kind.port}],
        "readinessProbe": {"httpGet": {"path": kind.health, "port": kind.port}, "periodSeconds": 1},
        "securityContext": RESTRICTED_CONTAINER,
        "volumeMounts": [{"name": "data", "mountPath": _DATA}],
    }
