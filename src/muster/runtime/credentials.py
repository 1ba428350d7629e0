"""Who we are to the API server, and how that is renewed: tokens, token files, certificates, exec plugins.

In comes what `runtime/kubeconfig.py` read; out comes, at every request, a `Secret` that holds now.
`refresh` is called after a 401: what was kept is forgotten and made anew.  Next: `runtime/client.py`.

Source   client.authentication.k8s.io v1 and v1beta1 (KEP-541).
"""

import asyncio
import base64
import os
import sys
from datetime import datetime
from pathlib import Path
from typing import Protocol

import msgspec
from msgspec import Struct, field

from muster.base.errors import ConfigError

REREAD_S = 60.0  # kubelets renew projected tokens long before they end; client-go rereads as often
EARLY_S = 10.0  # an exec credential is renewed so long before it expires
EXEC_PATIENCE_S = 60.0
SECRET_LENGTH_MIN = 4  # what is shorter is a number or a word of everyday's
EXEC_VERSIONS = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")


class Masked(Struct, frozen=True):
    """Holds secrets: shows its type and nothing else, in logs, errors and debuggers."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}(…)"


class ClientCertificate(Masked, frozen=True):
    """A certificate and its key as PEM text; `origin` names the field they came from."""

    certificate_pem: str
    key_pem: str
    origin: str = ""

    def current(self) -> "ClientCertificate":
        """Itself: this one does not change."""
        return self


class CertificateFiles:
    """A certificate in two files, read again when one of them is replaced."""

    def __init__(self, certificate: Path, key: Path, origin: str) -> None:
        self._files = (certificate, key)
        self._origin = origin
        self._stamps: tuple[float, ...] = ()
        self._kept: ClientCertificate | None = None

    def current(self) -> ClientCertificate:
        """The certificate as the files hold it now.  Raises ConfigError when one cannot be read."""
        try:
            stamps = tuple(file.stat().st_mtime for file in self._files)
            if self._kept is None or stamps != self._stamps:
                certificate, key = (file.read_text(encoding="utf-8") for file in self._files)
                self._kept, self._stamps = ClientCertificate(certificate, key, self._origin), stamps
        except OSError as error:
            problem = "no such file" if isinstance(error, FileNotFoundError) else error.strerror
            raise ConfigError(f"{problem}: {error.filename}", path=self._origin) from error
        except UnicodeDecodeError as error:
            raise ConfigError("certificate or key is no text", path=self._origin) from error
        return self._kept


class Secret(Masked, frozen=True):
    """What a request proves itself with; either, both or neither may be set."""

    authorization: str | None = None
    certificate: ClientCertificate | None = None


class Credentials(Protocol):
    """A source of secrets."""

    async def secret(self, now_s: float) -> Secret:
        """The secret that holds now.  Raises ConfigError when there is none to be had."""
        ...

    def refresh(self) -> bool:
        """Forget what is kept; False if another try would bring the same secret."""
        ...


Certificate = ClientCertificate | CertificateFiles | None


class Nobody:
    """A client certificate, or nothing at all (an anonymous request)."""

    def __init__(self, certificate: Certificate = None) -> None:
        self._certificate = certificate

    async def secret(self, now_s: float) -> Secret:
        """The certificate."""
        return Secret(certificate=_current(self._certificate))

    def refresh(self) -> bool:
        """Nothing to renew."""
        return False


class Token:
    """A bearer token that stands in the kubeconfig."""

    def __init__(self, token: str, certificate: Certificate = None) -> None:
        self._authorization = f"Bearer {token}"
        self._certificate = certificate

    async def secret(self, now_s: float) -> Secret:
        """The token."""
        return Secret(self._authorization, _current(self._certificate))

    def refresh(self) -> bool:
        """Nothing to renew."""
        return False


class BasicPassword:
    """User name and password; Kubernetes itself no longer takes them, proxies in front of it may."""

    def __init__(self, username: str, password: str, certificate: Certificate = None) -> None:
        pair = base64.b64encode(f"{username}:{password}".encode()).decode()
        self._authorization = f"Basic {pair}"
        self._certificate = certificate

    async def secret(self, now_s: float) -> Secret:
        """The pair as a Basic header."""
        return Secret(self._authorization, _current(self._certificate))

    def refresh(self) -> bool:
        """Nothing to renew."""
        return False


class TokenFile:
    """A bearer token in a file that somebody else renews."""

    def __init__(self, file: Path, certificate: Certificate = None) -> None:
        self._file = file
        self._certificate = certificate
        self._token = ""
        self._read_s = 0.0

    async def secret(self, now_s: float) -> Secret:
        """The token as read less than a minute ago; an unreadable file leaves the one before in use."""
        if not self._token or now_s - self._read_s >= REREAD_S:
            try:
                self._token = self._file.read_text(encoding="utf-8").strip() or self._token
                self._read_s = now_s
            except (OSError, UnicodeDecodeError) as error:
                if not self._token:
                    why = f"cannot be read: {error.strerror}" if isinstance(error, OSError) else "is no text"
                    raise ConfigError(why, path=str(self._file)) from error
        if not self._token:
            raise ConfigError("is empty", path=str(self._file))
        return Secret(f"Bearer {self._token}", _current(self._certificate))

    def refresh(self) -> bool:
        """Read the file again at the next request."""
        self._read_s = float("-inf")
        return True


def _current(certificate: Certificate) -> ClientCertificate | None:
    return None if certificate is None else certificate.current()


# ── exec plugins ─────────────────────────────────────────────────────────────────────────────────


class ExecVariable(Masked, frozen=True):
    name: str = ""
    value: str = ""


class ExecConfig(Struct, rename="camel"):
    """The `exec` part of a user in a kubeconfig."""

    api_version: str = ""
    command: str = ""
    args: list[str] | None = None
    env: list[ExecVariable] | None = None
    install_hint: str = ""
    provide_cluster_info: bool = False
    interactive_mode: str = ""


class ExecStatus(Masked, frozen=True, rename="camel"):
    expiration_timestamp: str | None = None
    token: str | None = None
    client_certificate_data: str | None = None
    client_key_data: str | None = None


class ExecCredential(Struct, rename="camel"):
    """What a plugin prints."""

    api_version: str = ""
    kind: str = ""
    status: ExecStatus | None = field(default=None)


class ExecPlugin:
    """A secret that a program of the user's makes; kept until it expires or is refused."""

    def __init__(
        self, config: ExecConfig, *, path: str, directory: Path, cluster: dict[str, object] | None
    ) -> None:
        self._config = config
        self._path = path
        self._directory = directory
        self._cluster = cluster
        self._kept: Secret | None = None
        self._until_s = 0.0
        self._turn = asyncio.Lock()
        self._check()

    async def secret(self, now_s: float) -> Secret:
        """The kept secret, or one from a new run; many requests at once make one run."""
        async with self._turn:
            if self._kept is None or now_s >= self._until_s:
                status = self._read(await self._run())
                self._kept = _secret_of(status, self._path)
                self._until_s = _expiry_s(status.expiration_timestamp, self._path)
            return self._kept

    def refresh(self) -> bool:
        """Run the program again at the next request."""
        self._kept = None
        return True

    def _check(self) -> None:
        config = self._config
        if not config.command:
            raise ConfigError("is not set", path=f"{self._path}.command")
        if config.api_version not in EXEC_VERSIONS:
            raise ConfigError(
                f"needs one of {', '.join(EXEC_VERSIONS)}, got {config.api_version!r}",
                path=f"{self._path}.apiVersion",
            )
        if config.interactive_mode not in ("", "Never", "IfAvailable", "Always"):
            raise ConfigError(
                f"needs Never, IfAvailable or Always, got {config.interactive_mode!r}",
                path=f"{self._path}.interactiveMode",
            )
        if config.interactive_mode == "Always" and not sys.stdin.isatty():
            raise ConfigError(
                "Always needs a terminal, and there is none", path=f"{self._path}.interactiveMode"
            )

    async def _run(self) -> bytes:
        config = self._config
        command = config.command
        if os.sep in command:
            command = str((self._directory / command).absolute())  # "./x" stays a path, wherever it is
        spec: dict[str, object] = {"interactive": config.interactive_mode == "Always"}
        if self._cluster is not None:
            spec["cluster"] = self._cluster
        info = {"apiVersion": config.api_version, "kind": "ExecCredential", "spec": spec}
        environment = {
            **os.environ,
            **{variable.name: variable.value for variable in config.env or ()},
            "KUBERNETES_EXEC_INFO": msgspec.json.encode(info).decode(),
        }
        try:
            process = await asyncio.create_subprocess_exec(
                command,
                *(config.args or ()),
                env=environment,
                stdin=None if config.interactive_mode == "Always" else asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
            )
        except OSError as error:
            raise ConfigError(
                f"cannot run {command!r}: {error.strerror}",
                path=f"{self._path}.command",
                hint=config.install_hint,
            ) from error
        except ValueError as error:  # what no process can be given: a zero byte, a name with "=" in it
            raise ConfigError(f"command, args or env: {error}", path=self._path) from error
        return await self._output_of(process, command)

    async def _output_of(self, process: asyncio.subprocess.Process, command: str) -> bytes:
        try:
            out, said = await asyncio.wait_for(process.communicate(), EXEC_PATIENCE_S)
        except TimeoutError as error:
            raise ConfigError(
                f"{command!r} gave no answer in {EXEC_PATIENCE_S:.0f} s", path=self._path
            ) from error
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        if process.returncode != 0:
            lines = self._without_secrets(said.decode(errors="replace")).strip().splitlines()
            because = f": {lines[-1]}" if lines else ""
            raise ConfigError(f"{command!r} ended with code {process.returncode}{because}", path=self._path)
        return out

    def _without_secrets(self, text: str) -> str:
        """What a plugin says, its own variables left out: it may print them when it fails."""
        for variable in self._config.env or ():
            if len(variable.value) >= SECRET_LENGTH_MIN:
                text = text.replace(variable.value, "…")
        return text

    def _read(self, out: bytes) -> ExecStatus:
        try:
            credential = msgspec.json.decode(out, type=ExecCredential)
        except msgspec.DecodeError as error:
            raise ConfigError(
                f"the plugin's answer is no ExecCredential: {error}", path=self._path
            ) from error
        if credential.kind != "ExecCredential" or credential.api_version != self._config.api_version:
            raise ConfigError(
                f"the plugin answered with {credential.kind or 'nothing'} of {credential.api_version!r},"
                f" asked for {self._config.api_version!r}",
                path=self._path,
            )
        if credential.status is None:
            raise ConfigError("the plugin's answer has no status", path=self._path)
        return credential.status


def _secret_of(status: ExecStatus, path: str) -> Secret:
    if bool(status.client_certificate_data) != bool(status.client_key_data):
        raise ConfigError("the plugin gave a certificate without its key, or a key alone", path=path)
    if not status.token and not status.client_certificate_data:
        raise ConfigError("the plugin gave neither a token nor a client certificate", path=path)
    certificate = None
    if status.client_certificate_data and status.client_key_data:
        certificate = ClientCertificate(status.client_certificate_data, status.client_key_data, path)
    return Secret(f"Bearer {status.token}" if status.token else None, certificate)


def _expiry_s(timestamp: str | None, path: str) -> float:
    """When to run the plugin again; without a timestamp only a 401 makes it run."""
    if timestamp is None:
        return float("inf")
    try:
        return datetime.fromisoformat(timestamp).timestamp() - EARLY_S
    except ValueError as error:
        raise ConfigError(f"expirationTimestamp {timestamp!r} is no RFC 3339 time", path=path) from error
