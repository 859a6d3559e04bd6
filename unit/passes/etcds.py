"""The etcd processes inside the pods of a `World`: containers in, fake members on the pods' addresses out.

Promises: data is bound to a claim, or to a pod without one; a second process on a claim waits for the first.
A start that etcd refuses leaves the container in a crash loop.
"""

import base64
import hashlib
import json
import posixpath
from copy import deepcopy
from functools import partial

import grpc

from etcd_operator.clock import Clock
from etcd_operator.controllers.etcd_cluster.observe.slots import answering
from etcd_operator.etcd.probe import Probe
from etcd_operator.etcd.values import Answered
from etcd_operator.pki.description import describe
from etcd_operator.pods.client import NoReport, TokenRefused
from etcd_operator.pods.contract import METRICS_PORT, READER_PORT
from etcd_operator.pods.http_client import Server, Trust
from etcd_operator.pods.reports import SURVIVOR, ListedVoter, SurvivorReport
from unit.fakes.apiserver import ApiServer, Json
from unit.fakes.apiserver.kinds import CLAIMS, PODS, SECRETS
from unit.fakes.containers import Running
from unit.fakes.etcd.auth import ROOT
from unit.fakes.etcd.cluster import FakeEtcdCluster
from unit.fakes.etcd.launcher import REMOVED, Bootstrapped, Launcher, Saved
from unit.fakes.etcd.member import FakeMember
from unit.fakes.etcd.metrics import MetricsServer
from unit.fakes.etcd.refusals import StartRefused

Options = dict[str, str]


class Etcds(Launcher):
    """All etcd clusters of a test, in the pods of its world."""

    def __init__(self, api: ApiServer, clock: Clock) -> None:
        super().__init__(clock, hangs=False)
        self.serves_metrics = True
        self.broken_versions: set[str] = set()
        self.holds_seeds = ""
        self.fetched: dict[str, FakeEtcdCluster | Saved] = {}
        self.reports: dict[str, str] = {}
        self.backups: dict[str, Saved] = {}
        self.readers_asked: list[tuple[tuple[str, int], str]] = []
        self.readers_fail = ""
        self._api = api
        self._where: dict[str, tuple[Running, Bootstrapped, FakeMember]] = {}
        self._waiting: dict[str, Running] = {}
        self._crashing: dict[str, tuple[Running, str]] = {}
        self._pages: dict[str, MetricsServer] = {}

    def prepare(self, running: Running) -> tuple[int, str]:
        """The steps of a seed, as `manifests.seed` writes them and etcd's tools run them."""
        for done, words in enumerate(running.init):
            try:
                self._prepare(running, words)
            except StartRefused as refusal:
                return done, str(refusal)
        return len(running.init), ""

    def _prepare(self, running: Running, words: tuple[str, ...]) -> None:
        if words[0] == "etcd-operator":
            self._fetch_backup(running, words)
            return
        tool, command, _, verb = (words[0].rpartition("/")[2], *words[1:4])
        if command == "version":
            return
        assert (command, (tool, verb) in (("etcdctl", "save"), ("etcdutl", "restore"))) == ("snapshot", True)
        if self.holds_seeds == verb:
            raise StartRefused(f"the test holds up {verb}")
        flags = dict(word[2:].split("=", 1) for word in words[5:] if "=" in word)
        if verb == "save":
            if running.uid not in self.fetched:  # a step that ended well is not run again
                if flags["endpoints"].startswith("https://"):
                    files = seen_by(self._api, running)
                    assert {posixpath.basename(flags[f]) for f in ("cacert", "cert", "key")} <= files.keys()
                    caller = describe(files[posixpath.basename(flags["cert"])]).common_name
                    assert caller == ROOT, "whom etcd allows to take a snapshot, with authentication"
                self.fetched[running.uid] = self._survivor(flags["endpoints"])
        else:
            assert "--mark-compacted" in words
            directory, old = self._directory(running, flags["data-dir"]), self.fetched[running.uid]
            self.restore(flags, directory=directory, old=old, unique=running.uid)

    def _fetch_backup(self, running: Running, words: tuple[str, ...]) -> None:
        """`etcd-operator seed`, as `manifests.seed` writes it."""
        assert words[1] == "seed"
        if self.holds_seeds == "save":
            raise StartRefused("the test holds up save")
        flags = dict(word[2:].split("=", 1) for word in words[2:] if "=" in word)
        if running.uid in self.fetched:
            return
        if flags.get("name") == SURVIVOR:
            self.fetched[running.uid] = self._offline(running, flags)
            return
        saved = self.backups.get(flags.get("name", "newest"))
        if saved is None:
            raise StartRefused("there is no backup")
        self.fetched[running.uid] = saved
        if "name" not in flags:
            self.reports[running.uid] = json.dumps(
                {"name": "newest", "time": "2026-01-01T00:00:00Z", "revision": saved.revision, "sha256": "cd"}
            )

    def save(self, name: str, etcd: FakeEtcdCluster) -> None:
        """What this etcd has now is stored as a backup."""
        self.backups[name] = Saved(dict(etcd.keys), etcd.revision, etcd.on_write, deepcopy(etcd.auth))

    def _survivor(self, endpoint: str) -> FakeEtcdCluster | Saved:
        name = endpoint.partition("://")[2].removesuffix(":2379").partition(".")[0]
        for _, cluster, member in self._where.values():
            if member.name == name and member.is_answering:
                etcd, least = cluster.etcd, cluster.etcd.revision - member.lags
                keys = {key: value for key, value in etcd.keys.items() if value[1] <= least}
                return Saved(keys, least, etcd.on_write, deepcopy(etcd.auth)) if member.lags else etcd
        raise StartRefused(f"{name} does not answer")

    def _offline(self, seed: Running, flags: Options) -> FakeEtcdCluster:
        """What a reader sends, if it is what was read."""
        at, trust = flags["tool"], None
        if "cacert" in flags:
            ca = seen_by(self._api, seed)[posixpath.basename(flags["cacert"])]
            trust = Trust(ca=ca, name=flags["tls-server-name"])
        for running, cluster, member in self._where.values():
            if at in (f"{running.ip}:{READER_PORT}", f"{member.name}.c-peer.default.svc:{READER_PORT}"):
                try:
                    self._verify(running, trust)
                except NoReport as error:
                    raise StartRefused(str(error)) from error
                if sha256_of(cluster.etcd) != flags["sha256"]:
                    raise StartRefused("it is not the one that was verified")
                return cluster.etcd
        raise StartRefused(f"nothing answers at {at}")

    def read(self, reader: Server) -> SurvivorReport:
        """As `client.survivor`, of the reader in the pod with this address. Raises NoReport."""
        address, token = reader.address, reader.token
        self.readers_asked.append((address, token))
        if self.readers_fail:
            raise NoReport(self.readers_fail)
        found = [(r, c, m) for r, c, m in self._where.values() if (r.ip, READER_PORT) == address]
        if not found:
            raise NoReport("no answer in time")
        self._verify(found[0][0], reader.trust)
        if token not in map(_token_in, self._api.objects.select(SECRETS)):
            raise TokenRefused("it refuses the token of its Secret")
        ((_, cluster, member),) = found
        if not member.is_alive:
            return SurvivorReport(problem="its etcd does not run: timed out")
        if member.has_led:
            return SurvivorReport(problem="it follows a leader", has_leader=True)
        etcd = cluster.etcd
        with etcd.changed:
            return SurvivorReport(
                cluster_id=f"{etcd.cluster_id:x}",
                member_id=f"{member.id:x}",
                committed=etcd.raft_index,
                revision=etcd.revision,
                sha256=sha256_of(etcd),
                members=tuple(
                    ListedVoter(id=f"{m.id:x}", name=m.name, peer_urls=m.peer_urls, is_learner=m.is_learner)
                    for m in etcd.members
                ),
            )

    def container_started(self, running: Running) -> None:
        """A container starts; what is no etcd is left alone."""
        options = _options(running)
        if "initial-cluster" not in options:
            return
        if any(other.claims and other.claims == running.claims for other, _, _ in self._where.values()):
            self._waiting[running.uid] = running  # for etcd's lock on its data directory
            return
        try:
            self._run(running, options)
        except StartRefused as refusal:
            self._crashing[running.uid] = running, str(refusal)

    def container_ended(self, running: Running) -> None:
        """A container ends."""
        self._crashing.pop(running.uid, None)
        page = self._pages.pop(running.uid, None)
        if page is not None:
            page.close()
        self._waiting.pop(running.uid, None)
        self._end(running.uid)
        for other in [other for other in self._waiting.values() if other.claims == running.claims]:
            del self._waiting[other.uid]
            self.container_started(other)

    def report(self) -> bool:
        """Removed members end themselves; kubelets report containers that crash. Whether anything is new."""
        for uid, (running, cluster, member) in list(self._where.items()):
            if member not in cluster.etcd.members:
                self._end(uid)
                self._crashing[uid] = running, REMOVED
        before = self._api.objects.store.revision
        for running, message in self._crashing.values():
            waiting = {"waiting": {"reason": "CrashLoopBackOff", "message": message}}
            ended = {"terminated": {"exitCode": 1, "reason": "Error", "message": message}}
            status = {"name": "etcd", "restartCount": 1, "ready": False, "state": waiting, "lastState": ended}
            patch = {"status": {"containerStatuses": [status]}}
            self._api.objects.patch(
                PODS, running.namespace, running.pod, patch, "merge", subresource="status"
            )
        return self._api.objects.store.revision != before

    def is_any_silent(self) -> bool:
        """Whether some process of them all hangs, or waits for a quorum."""
        etcds = [process.etcd for process in self.by_token.values() if process.running]
        return any(not etcd.has_quorum or any(m.is_frozen for m in etcd.members) for etcd in etcds)

    def is_as_expected(self, result: Probe) -> bool:
        """Whether all that could answer this probe did, and one of them proved the quorum that there is."""
        able = {
            f"{running.ip}:2379": cluster.etcd.has_quorum and not member.is_learner
            for running, cluster, member in self._where.values()
            if member.is_answering
        }
        asked = able.keys() & result.replies.keys()
        partly = {at for at, r in result.replies.items() if isinstance(r, Answered) and r.members is None}
        is_proven = bool(result.quorum) or not any(able[at] for at in asked)
        return asked <= answering(result) - partly and is_proven

    def close(self) -> None:
        """End everything."""
        for page in self._pages.values():
            page.close()
        super().close()

    def _end(self, uid: str) -> None:
        _, cluster, member = self._where.pop(uid, (None, None, None))
        if cluster is None or member is None:
            return
        if member in cluster.etcd.members:
            cluster.etcd.stop(member.name)
        elif member.server is not None:
            member.server.stop(grace=None).wait(30)

    def _run(self, running: Running, options: Options) -> None:
        self._require_files(running, options)
        version = running.image.rpartition(":v")[2]
        if version in self.broken_versions:
            raise StartRefused("it crashes")
        if "etcd-operator" in running.image:
            raise StartRefused("stat /usr/local/bin/etcd: no such file or directory")
        directory = self._directory(running, options["data-dir"])
        cluster, member = self.start(
            options,
            directory=directory,
            address=f"{running.ip}:2379",
            version=version,
            credentials=self._credentials(running, options),
            has_dual_port="http://" in options["listen-client-urls"],
        )
        self._where[running.uid] = running, cluster, member
        if self.serves_metrics:
            self._pages[running.uid] = MetricsServer(running.ip, METRICS_PORT, cluster.etcd, member)

    def _require_files(self, running: Running, options: Options) -> None:
        """etcd ends where a file for peers is missing."""
        flags = [flag for flag in options if flag.startswith("peer-") and flag.endswith("-file")]
        try:
            files = seen_by(self._api, running) if flags else {}
            _ = [files[posixpath.basename(options[flag])] for flag in flags]
        except KeyError as error:
            raise StartRefused(f"open {error}: no such file or directory") from error

    def _credentials(self, running: Running, options: Options) -> grpc.ServerCredentials | None:
        """Of its Secret, which etcd reads at each handshake."""
        advertised = options["advertise-client-urls"].partition(":")[0]
        served = {url.partition(":")[0] for url in options["listen-client-urls"].split(",")}
        if "cert-file" not in options:
            assert served == {advertised} == {"http"}
            return None
        assert "https" in served
        assert (advertised, options["enable-grpc-gateway"]) == ("https", "false")
        read = partial(served_by, self._api, running, options)
        requires = options.get("client-cert-auth") == "true"
        return grpc.dynamic_ssl_server_credentials(read(), read, require_client_authentication=requires)

    def _verify(self, running: Running, trust: Trust | None) -> None:
        """A handshake with a program in a pod, which serves with the certificate of its Secret."""
        leaf = seen_by(self._api, running).get("server.crt") if running.secrets else None
        if (leaf is None) != (trust is None):
            raise NoReport("only one side uses TLS")
        if leaf is None or trust is None:
            return
        found, ca = describe(leaf), describe(trust.ca)
        if found.issuer_key_id != ca.key_id or trust.name not in found.names:
            raise NoReport("certificate verify failed")

    def _directory(self, running: Running, directory: str) -> str:
        if not running.claims:
            return f"{running.uid}{directory}"
        claim = self._api.objects.get(CLAIMS, running.namespace, running.claims[0])
        return f"{claim['metadata']['uid']}{directory}"


def seen_by(api: ApiServer, running: Running) -> dict[str, bytes]:
    """The files of the Secrets that a pod mounts. Raises KeyError."""
    stored = {(s["metadata"]["namespace"], s["metadata"]["name"]): s for s in api.objects.select(SECRETS)}
    found: dict[str, bytes] = {}
    for name in running.secrets:
        if name in running.optional_secrets and (running.namespace, name) not in stored:
            continue
        data = stored[running.namespace, name]["data"]
        items = running.items.get(name, [(key, key) for key in data])
        found |= {path: base64.b64decode(data[key]) for key, path in items}
    return found


def served_by(api: ApiServer, running: Running, options: Options) -> grpc.ServerCertificateConfiguration:
    """What a member presents and trusts, as the files of its volume are now. Raises StartRefused."""
    try:
        files = seen_by(api, running)
        key, chain = (files[posixpath.basename(options[flag])] for flag in ("key-file", "cert-file"))
        trusted = options.get("trusted-ca-file", "")
        ca = files[posixpath.basename(trusted)] if trusted else None
    except KeyError as error:
        raise StartRefused(f"open {error}: no such file or directory") from error
    return grpc.ssl_server_certificate_configuration([(key, chain)], ca)


def _token_in(secret: Json) -> str:
    return base64.b64decode(secret["data"].get("token", "")).decode()


def sha256_of(etcd: FakeEtcdCluster) -> str:
    """Of what it has."""
    with etcd.changed:
        return hashlib.sha256(repr((etcd.revision, sorted(etcd.keys.items()))).encode()).hexdigest()


def _options(running: Running) -> Options:
    """etcd's options, from flags and environment alike."""
    flags = (word[2:].partition("=") for word in running.command if word.startswith("--"))
    named = {
        name.removeprefix("ETCD_").lower().replace("_", "-"): value for name, value in running.env.items()
    }
    return {
        **{name: value for name, value in named.items() if value},
        **{name: value for name, _, value in flags},
    }
