"""What a client may ask besides objects: health, version, which resources there are."""

from unit.fakes.apiserver.kinds import Json, Kinds


def discover(served: Kinds, path: str) -> tuple[int, Json]:
    """The answer for a path that names no resource; unknown ones get the plain-text 404 of a real server."""
    path = path.rstrip("/")
    if path in ("/healthz", "/livez", "/readyz"):
        return 200, {"plain": "ok"}
    if path == "/version":
        return 200, {"major": "1", "minor": "36", "gitVersion": "v1.36.3"}
    found = served.at(path)
    if not found:
        return 404, {"plain": "404 page not found\n"}
    resources = [{"name": k.plural, "kind": k.kind, "namespaced": k.namespaced} for k in found]
    return 200, {
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": found[0].api_version,
        "resources": resources,
    }
