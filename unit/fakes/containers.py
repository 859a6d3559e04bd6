"""What the kubelets of the fake Kubernetes make of the containers of a pod."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from unit.fakes.apiserver import Json


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    """The first container of a pod as the kubelet starts it: what an etcd in it would be given."""

    namespace: str
    pod: str
    uid: str
    ip: str
    node: str
    image: str
    command: tuple[str, ...]
    env: Mapping[str, str]
    claims: tuple[str, ...] = field(default=())
    secrets: tuple[str, ...] = ()
    optional_secrets: frozenset[str] = frozenset()
    # of a Secret of which only some keys are mounted: each key with the name of its file
    items: Mapping[str, tuple[tuple[str, str], ...]] = field(default_factory=dict)
    restarts: int = 0
    init: tuple[tuple[str, ...], ...] = ()


def main_of(pod: Json) -> Json:
    """The first container of a pod."""
    container: Json = pod["spec"]["containers"][0]
    return container


def claims_of(pod: Json) -> tuple[str, ...]:
    """The claims that a pod uses."""
    volumes = pod["spec"].get("volumes") or ()
    return tuple(v["persistentVolumeClaim"]["claimName"] for v in volumes if "persistentVolumeClaim" in v)


def _mounted(pod: Json, main: Json) -> tuple[str, ...]:
    """Those of them that the main container uses."""
    names = {mount["name"] for mount in main.get("volumeMounts") or ()}
    volumes = [volume for volume in pod["spec"].get("volumes") or () if volume["name"] in names]
    return claims_of({"spec": {"volumes": volumes}})


def _secrets(pod: Json) -> tuple[str, ...]:
    """The Secrets that a pod mounts, by themselves or with others."""
    volumes = pod["spec"].get("volumes") or ()
    single = tuple(volume["secret"]["secretName"] for volume in volumes if "secret" in volume)
    return (*single, *(source["name"] for source in _projected(pod)))


def _projected(pod: Json) -> list[Json]:
    """The Secrets of volumes that have several."""
    volumes = pod["spec"].get("volumes") or ()
    sources = [source for volume in volumes for source in volume.get("projected", {}).get("sources", ())]
    return [source["secret"] for source in sources]


def _optional(pod: Json) -> frozenset[str]:
    """The Secrets that a pod mounts if they are there."""
    volumes = pod["spec"].get("volumes") or ()
    found = [*(volume["secret"] for volume in volumes if "secret" in volume), *_projected(pod)]
    return frozenset(each.get("secretName") or each["name"] for each in found if each.get("optional", False))


def rendered(pod: Json, ip: str, node: str, restarts: int) -> Running:
    """What the kubelet makes of a pod."""
    meta, main = pod["metadata"], main_of(pod)
    fields = {"metadata.name": meta["name"], "metadata.namespace": meta["namespace"], "status.podIP": ip}
    # read at every start of the container, from the pod as it is then
    fields |= {f"metadata.annotations['{k}']": v for k, v in (meta.get("annotations") or {}).items()}

    def value(entry: Json) -> str:
        if "valueFrom" in entry:
            path: str = entry["valueFrom"]["fieldRef"]["fieldPath"]
            return str(fields.get(path, ""))
        return str(entry.get("value", ""))

    def environment(container: Json) -> dict[str, str]:
        return {entry["name"]: value(entry) for entry in container.get("env") or ()}

    def words(container: Json) -> tuple[str, ...]:
        found = [*(container.get("command") or ()), *(container.get("args") or ())]
        for name, text in environment(container).items():
            found = [word.replace(f"$({name})", text) for word in found]
        return tuple(found)

    return Running(
        namespace=meta["namespace"],
        pod=meta["name"],
        uid=meta["uid"],
        ip=ip,
        node=node,
        image=main["image"],
        command=words(main),
        env=environment(main),
        claims=_mounted(pod, main),
        secrets=_secrets(pod),
        optional_secrets=_optional(pod),
        items={
            source["name"]: tuple((item["key"], item["path"]) for item in source["items"])
            for source in _projected(pod)
            if "items" in source
        },
        restarts=restarts,
        init=tuple(words(step) for step in pod["spec"].get("initContainers") or ()),
    )
