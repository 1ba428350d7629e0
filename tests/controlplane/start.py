"""A stock Kubernetes 1.37.2 control plane on loopback, for tests and benchmarks.

`ControlPlane(directory, port)` is a context manager: etcd and kube-apiserver, and as asked for
kube-controller-manager and kube-scheduler, with logs, certificates and a kubeconfig in `directory`.  It
uses the ports `port` (API), +1 and +2 (etcd), +10 (scheduler) and +11 (manager).  As a script
(`python -m tests.controlplane.start DIRECTORY --kcm`) it starts one, prints a line of JSON when it is ready,
and stops it on SIGTERM or Ctrl-C.  The binary comes from `build.py`.
"""

import argparse
import base64
import json
import secrets
import signal
import socket
import ssl
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from types import TracebackType

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from tests.controlplane.build import BuildError, find_binary

# What is on, by the word of --gates: the gates of every component, those that only the apiserver and the
# manager know, and those that only the apiserver and the scheduler know.
# `CompositePodGroup` without TopologyAwareWorkloadScheduling keeps every component from starting.
GATES: dict[str, tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]] = {
    "all": (
        ("GenericWorkload", "TopologyAwareWorkloadScheduling", "CompositePodGroup"),
        ("WorkloadWithJob",),
        ("PodGroupPreemptionPolicy",),
    ),
    "basic": (("GenericWorkload",), (), ()),
    "off": ((), (), ()),
}
APIS = "scheduling.k8s.io/v1beta1=true,scheduling.k8s.io/v1alpha3=true"
PORT_OFFSETS = (0, 1, 2, 10, 11)
PATIENCE_S = 120.0
STOP_S = 10.0


class StartError(Exception):
    """A component did not come up; the text names its log."""


class ControlPlane:
    """The running components; `kubeconfig` is the way in, as cluster admin."""

    def __init__(
        self,
        directory: Path,
        port: int,
        *,
        gates: str = "all",
        apis: str = APIS,
        scheduler: bool = False,
        manager: bool = False,
        queries_per_s: int = 1000,
        sync_to_disk: bool = False,
        event_ttl: str = "1h",
    ) -> None:
        self.directory = directory
        self.port = port
        self.kubeconfig = directory / "kubeconfig"
        self.url = f"https://127.0.0.1:{port}"
        self.token = "admin-" + secrets.token_hex(16)
        self._common, self._jobs, self._api_only = GATES[gates]
        self._apis = apis
        self._scheduler = scheduler
        self._manager = manager
        self._queries_per_s = queries_per_s
        self._sync_to_disk = sync_to_disk
        self._event_ttl = event_ttl
        self._running: list[tuple[str, subprocess.Popen[bytes]]] = []

    def __enter__(self) -> "ControlPlane":
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Start what was asked for and wait until the API answers.  Raises StartError or BuildError."""
        self._binary = find_binary()
        self.directory.mkdir(parents=True, exist_ok=True)
        for offset in PORT_OFFSETS:
            _check_free(self.port + offset)
        self._write_keys()
        self._start_etcd()
        self._start_apiserver()
        self._write_kubeconfig()
        if self._manager:
            self._start_manager()
        if self._scheduler:
            self.start_scheduler()

    def stop(self) -> None:
        """Stop everything, the API server before its storage."""
        while self._running:
            self._stop_last()

    def dead(self) -> str | None:
        """The name of a component that has ended by itself, or None."""
        return next((name for name, process in self._running if process.poll() is not None), None)

    def process_ids(self) -> dict[str, int]:
        """The process of every component that was started, by its name."""
        return {name: process.pid for name, process in self._running}

    # ── one component each ───────────────────────────────────────────────────────────────────────

    def _start_etcd(self) -> None:
        client, peer = f"http://127.0.0.1:{self.port + 1}", f"http://127.0.0.1:{self.port + 2}"
        flags = {
            "data-dir": self.directory / "etcd",
            "listen-client-urls": client,
            "advertise-client-urls": client,
            "listen-peer-urls": peer,
            "initial-advertise-peer-urls": peer,
            "initial-cluster": f"default={peer}",
        }
        if not self._sync_to_disk:
            flags["unsafe-no-fsync"] = "true"  # never in a figure that is quoted
        self._run("etcd", flags)
        self._wait_for(f"{client}/health", "etcd")

    def _start_apiserver(self) -> None:
        flags = {
            "etcd-servers": f"http://127.0.0.1:{self.port + 1}",
            "secure-port": self.port,
            "bind-address": "127.0.0.1",
            "cert-dir": self.directory / "apiserver-certificates",
            "token-auth-file": self.directory / "tokens.csv",
            "authorization-mode": "RBAC",
            "service-account-issuer": "https://kubernetes.default.svc",
            "service-account-key-file": self.directory / "accounts.pub",
            "service-account-signing-key-file": self.directory / "accounts.key",
            "service-cluster-ip-range": "10.0.0.0/24",
            # Without kubelets nobody makes service accounts for pods or clears the taint of new nodes.
            "disable-admission-plugins": "ServiceAccount,TaintNodesByCondition",
            "max-requests-inflight": 3000,
            "max-mutating-requests-inflight": 1500,
            "enable-priority-and-fairness": "false",
            "event-ttl": self._event_ttl,
        }
        if self._apis:
            flags["runtime-config"] = self._apis
        self._run("kube-apiserver", flags | _gate_flag(self._common + self._jobs + self._api_only))
        self._wait_for(f"{self.url}/readyz", "kube-apiserver")

    def _start_manager(self) -> None:
        flags = {
            "kubeconfig": self.kubeconfig,
            "leader-elect": "false",
            # No kubelets: nobody renews node leases, so nodes must not be judged by them.
            "controllers": "*,-nodelifecycle,-node-ipam-controller,-taint-eviction-controller",
            "secure-port": self.port + 11,
            "bind-address": "127.0.0.1",
            "service-account-private-key-file": self.directory / "accounts.key",
            "cert-dir": self.directory / "manager-certificates",
        }
        self._run("kube-controller-manager", flags | self._pace() | _gate_flag(self._common + self._jobs))

    def start_scheduler(self) -> None:
        """Start kube-scheduler now; for those who did not ask for it from the beginning."""
        flags = {
            "kubeconfig": self.kubeconfig,
            "leader-elect": "false",
            "authentication-skip-lookup": "true",
            "authorization-always-allow-paths": "/healthz,/readyz,/livez,/metrics",
            "secure-port": self.port + 10,
            "bind-address": "127.0.0.1",
            "cert-dir": self.directory / "scheduler-certificates",
        }
        self._run("kube-scheduler", flags | self._pace() | _gate_flag(self._common + self._api_only))

    def _pace(self) -> dict[str, object]:
        return {"kube-api-qps": self._queries_per_s, "kube-api-burst": self._queries_per_s}

    # ── files ────────────────────────────────────────────────────────────────────────────────────

    def _write_keys(self) -> None:
        (self.directory / "tokens.csv").write_text(f'{self.token},admin,admin,"system:masters"\n')
        key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        (self.directory / "accounts.key").write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.TraditionalOpenSSL,
                serialization.NoEncryption(),
            )
        )
        (self.directory / "accounts.pub").write_bytes(
            key.public_key().public_bytes(
                serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
            )
        )

    def _write_kubeconfig(self) -> None:
        """Write a way in that trusts the certificate which the apiserver made for itself."""
        certificate = (self.directory / "apiserver-certificates" / "apiserver.crt").read_bytes()
        cluster = {
            "server": self.url,
            "certificate-authority-data": base64.b64encode(certificate).decode(),
        }
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "stock",
            "clusters": [{"name": "stock", "cluster": cluster}],
            "users": [{"name": "admin", "user": {"token": self.token}}],
            "contexts": [{"name": "stock", "context": {"cluster": "stock", "user": "admin"}}],
        }
        self.kubeconfig.write_text(json.dumps(config))
        self.kubeconfig.chmod(0o600)

    # ── processes ────────────────────────────────────────────────────────────────────────────────

    def _run(self, name: str, flags: dict[str, object]) -> None:
        command = [str(self._binary), name, *(f"--{flag}={value}" for flag, value in flags.items())]
        with self._log(name).open("wb") as log:
            process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)
        self._running.append((name, process))

    def _log(self, name: str) -> Path:
        return self.directory / f"{name}.log"

    def _wait_for(self, url: str, name: str) -> None:
        unchecked = ssl.create_default_context()
        unchecked.check_hostname, unchecked.verify_mode = False, ssl.CERT_NONE
        request = urllib.request.Request(url, headers={"Authorization": f"Bearer {self.token}"})
        until = time.monotonic() + PATIENCE_S
        while time.monotonic() < until and self.dead() is None:
            if _answers(request, unchecked):
                return
            time.sleep(0.1)
        raise StartError(f"{name} did not become ready; see {self._log(name)}")

    def _stop_last(self) -> None:
        _, process = self._running.pop()
        process.terminate()
        try:
            process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _gate_flag(gates: tuple[str, ...]) -> dict[str, object]:
    return {"feature-gates": ",".join(f"{gate}=true" for gate in gates)} if gates else {}


def _answers(request: urllib.request.Request, context: ssl.SSLContext) -> bool:
    try:
        with urllib.request.urlopen(request, context=context, timeout=2) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


def _check_free(port: int) -> None:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as error:
            raise StartError(f"port {port} of 127.0.0.1 is not free: {error.strerror}") from error


def main() -> None:
    """Start one from the command line and wait for a signal."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("directory", type=Path, help="for logs, data, certificates and the kubeconfig")
    parser.add_argument("--port", type=int, default=16443)
    parser.add_argument("--gates", choices=sorted(GATES), default="all")
    parser.add_argument("--no-apis", action="store_true", help="gates on, but scheduling.k8s.io/v1beta1 off")
    parser.add_argument("--scheduler", action="store_true", help="with kube-scheduler")
    parser.add_argument("--kcm", action="store_true", help="with kube-controller-manager")
    parser.add_argument("--qps", type=int, default=1000, help="client limit of scheduler and manager")
    parser.add_argument("--fsync", action="store_true", help="let etcd sync to disk, as in production")
    given = parser.parse_args()
    plane = ControlPlane(
        given.directory.resolve(),
        given.port,
        gates=given.gates,
        apis="" if given.no_apis else APIS,
        scheduler=given.scheduler,
        manager=given.kcm,
        queries_per_s=given.qps,
        sync_to_disk=given.fsync,
    )
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    began = time.monotonic()
    try:
        with plane:
            ready_s = round(time.monotonic() - began, 1)
            line = {"kubeconfig": str(plane.kubeconfig), "url": plane.url, "ready_s": ready_s}
            print(json.dumps(line), flush=True)
            while (ended := plane.dead()) is None:
                time.sleep(0.5)
            sys.exit(f"start.py: {ended} ended by itself; see its log in {plane.directory}")
    except (BuildError, StartError) as error:
        sys.exit(f"start.py: {error}")
    except KeyboardInterrupt:
        pass


if __name__ == "__main__":
    main()
