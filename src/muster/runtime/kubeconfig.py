"""From a kubeconfig, or the files of a pod's service account, to a way into an API server.

In comes a path (or $KUBECONFIG, ~/.kube/config, the in-cluster files); out comes an `Access`: server, TLS,
and who to be.  Whatever is wrong is a ConfigError that names the file and the field.  Secrets that change
while we run are `runtime/credentials.py`; the requests are `runtime/client.py`.
"""

import base64
import binascii
import hashlib
import os
import ssl
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar
from urllib.parse import urlsplit

import msgspec
import yaml
from msgspec import Struct, field
from msgspec.structs import replace

from muster.base.errors import ConfigError
from muster.runtime.credentials import (
    BasicPassword,
    CertificateFiles,
    ClientCertificate,
    Credentials,
    ExecConfig,
    ExecPlugin,
    Masked,
    Nobody,
    Token,
    TokenFile,
)

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")


class Cluster(Struct, rename="kebab"):
    """The `cluster` part of a kubeconfig."""

    server: str = ""
    certificate_authority: str = ""
    certificate_authority_data: str = ""
    insecure_skip_tls_verify: bool = False
    tls_server_name: str = ""
    proxy_url: str = ""


class User(Masked, frozen=True, rename="kebab"):
    """The `user` part of a kubeconfig."""

    token: str = ""
    token_file: str = field(name="tokenFile", default="")
    client_certificate: str = ""
    client_certificate_data: str = ""
    client_key: str = ""
    client_key_data: str = ""
    username: str = ""
    password: str = ""
    exec: ExecConfig | None = None
    auth_provider: dict[str, object] | None = None
    as_user: str = field(name="as", default="")
    as_uid: str = ""
    as_groups: list[str] = field(default_factory=list)
    as_user_extra: dict[str, list[str]] = field(default_factory=dict)


class Context(Struct, rename="kebab"):
    """The `context` part of a kubeconfig."""

    cluster: str = ""
    user: str = ""
    namespace: str = ""


class NamedCluster(Struct):
    name: str = ""
    cluster: Cluster = field(default_factory=Cluster)


class NamedUser(Struct):
    name: str = ""
    user: User = field(default_factory=User)


class NamedContext(Struct):
    name: str = ""
    context: Context = field(default_factory=Context)


class Kubeconfig(Struct, rename="kebab"):
    """One file, as kubectl reads it; unknown fields are left alone."""

    current_context: str = ""
    clusters: list[NamedCluster] | None = None
    users: list[NamedUser] | None = None
    contexts: list[NamedContext] | None = None


def _no_other() -> None:
    return None


class Access(Masked, frozen=True):
    """A way into an API server: where, how it proves itself, and as whom.

    `tls` is None for plain HTTP.  `headers` go with every request.  `origin` names the file for messages.
    `renew` gives the way in as the files have it now, None while they are as they were (`digest`).
    """

    server: str
    tls: "Tls | None"
    credentials: Credentials
    origin: str
    server_name: str | None = None
    proxy: str | None = None
    headers: tuple[tuple[str, str], ...] = ()
    digest: str = ""
    renew: "Callable[[], Access | None]" = _no_other


class Tls(Struct, frozen=True):
    """How the server is checked; `context_for` adds who we are."""

    authority_pem: str | None
    authority_field: str
    is_checked: bool = True

    def context_for(self, certificate: ClientCertificate | None) -> ssl.SSLContext:
        """Make a TLS context with this client certificate.  Raises ConfigError for unusable PEM text."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        if not self.is_checked:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        elif self.authority_pem is None:
            context.load_default_certs()
        else:
            # A certificate that a server signed for itself is trusted as it stands.
            context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
            try:
                context.load_verify_locations(cadata=self.authority_pem)
            except ssl.SSLError as error:
                raise ConfigError("no certificate in PEM form", path=self.authority_field) from error
        if certificate is not None:
            _load_certificate(context, certificate)
        return context


def find_access(
    path: str | None = None,
    *,
    context: str = "",
    environment: Mapping[str, str] = os.environ,
    service_account: Path = SERVICE_ACCOUNT,
) -> Access:
    """Find the way in: this file, else $KUBECONFIG, else ~/.kube/config, else the pod's service account.

    Raises   ConfigError naming file and field.
    """
    if path:
        return read_access([Path(path)], context=context)
    if named := environment.get("KUBECONFIG"):
        files = [Path(part) for part in named.split(os.pathsep) if part]
        return read_access(files, context=context)
    usual = Path(environment.get("HOME", "~")).expanduser() / ".kube" / "config"
    if usual.exists():
        return read_access([usual], context=context)
    if "KUBERNETES_SERVICE_HOST" in environment:
        return read_service_account(environment, service_account)
    raise ConfigError(
        f"no kubeconfig given, none at {usual}, and this is no pod of a cluster",
        hint="give --kubeconfig FILE",
    )


def read_access(files: list[Path], *, context: str = "") -> Access:
    """Read one kubeconfig or several, the first to name a thing winning, as kubectl does."""
    access = _read_access(files, context)
    digest = _digest_of([*(_read_text(file, str(file)) for file in files), access])
    return replace(access, digest=digest, renew=_renewal(lambda: read_access(files, context=context), digest))


def _read_access(files: list[Path], context: str) -> Access:
    origin = os.pathsep.join(str(file) for file in files)
    parts = [(file, _parse(file)) for file in files]
    wanted = context or next((c.current_context for _, c in parts if c.current_context), "")
    if not wanted:
        raise ConfigError("is not set", path=f"{origin}: current-context", hint="or give --context NAME")
    _, _, chosen = _find(
        ((file, n, item.name, item.context) for file, c in parts for n, item in enumerate(c.contexts or [])),
        wanted,
        f"{origin}: {'--context' if context else 'current-context'}",
        "contexts",
    )
    place = f"{origin}: $.contexts[{wanted}]"
    cluster_file, cluster_path, cluster = _find(
        ((file, n, item.name, item.cluster) for file, c in parts for n, item in enumerate(c.clusters or [])),
        chosen.cluster,
        f"{place}.cluster",
        "clusters",
    )
    if not chosen.user:
        return _access_of(cluster, cluster_file, cluster_path, Nobody(), origin, ())
    user_file, user_path, user = _find(
        ((file, n, item.name, item.user) for file, c in parts for n, item in enumerate(c.users or [])),
        chosen.user,
        f"{place}.user",
        "users",
    )
    credentials = _credentials_of(user, user_file, user_path, cluster, cluster_file, cluster_path)
    return _access_of(cluster, cluster_file, cluster_path, credentials, origin, _impersonation(user))


def read_service_account(environment: Mapping[str, str], directory: Path = SERVICE_ACCOUNT) -> Access:
    """Give the way in that every pod of a cluster has; the token file is read again as it changes."""
    host = environment["KUBERNETES_SERVICE_HOST"]
    port = environment.get("KUBERNETES_SERVICE_PORT", "443")
    token, authority = directory / "token", directory / "ca.crt"
    pem = _read_text(authority, str(authority))
    _read_text(token, str(token))
    where = f"[{host}]" if ":" in host else host
    access = Access(
        server=f"https://{where}:{port}",
        tls=Tls(authority_pem=pem, authority_field=str(authority)),
        credentials=TokenFile(token),
        origin=f"service account in {directory}",
    )
    digest = _digest_of([access])
    return replace(
        access, digest=digest, renew=_renewal(lambda: read_service_account(environment, directory), digest)
    )


# ── files that change ────────────────────────────────────────────────────────────────────────────


def _digest_of(parts: Iterable[str | Access]) -> str:
    """Tells one state of the files from another; nothing can be read out of it."""
    digest = hashlib.sha256()
    for part in parts:
        text = part if isinstance(part, str) else (part.tls.authority_pem or "") if part.tls else ""
        digest.update(text.encode() + b"\0")
    return digest.hexdigest()


def _renewal(read: Callable[[], Access], digest: str) -> Callable[[], Access | None]:
    """Reads again, and gives what is new; a file that is just being written gives nothing yet."""

    def renew() -> Access | None:
        try:
            fresh = read()
        except ConfigError:
            return None
        return None if fresh.digest == digest else fresh

    return renew


# ── parts of a file ──────────────────────────────────────────────────────────────────────────────


def _parse(file: Path) -> Kubeconfig:
    text = _read_text(file, str(file))
    try:
        plain = yaml.safe_load(text)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f" in line {mark.line + 1}" if mark is not None else ""
        problem = getattr(error, "problem", None) or "cannot be read"
        raise ConfigError(f"is no YAML: {problem}{line}", path=str(file)) from error
    except RecursionError as error:
        raise ConfigError("is nested too deep", path=str(file)) from error
    if not isinstance(plain, dict):
        raise ConfigError("is no kubeconfig: a mapping is needed", path=str(file))
    try:
        return msgspec.convert(plain, Kubeconfig)
    except msgspec.ValidationError as error:
        message, _, where = str(error).partition(" - at `")
        raise ConfigError(message.lower(), path=f"{file}: {where.rstrip('`') or '$'}") from error


_Item = TypeVar("_Item")


def _find(
    items: Iterable[tuple[Path, int, str, _Item]], wanted: str, place: str, kind: str
) -> tuple[Path, str, _Item]:
    """Give the first item of that name, the file it is in, and its path for messages."""
    names = []
    for file, number, name, item in items:
        if name == wanted:
            return file, f"{file}: $.{kind}[{number}].{kind[:-1]}", item
        names.append(name)
    there = f"there are: {', '.join(sorted(names))}" if names else "there are none"
    raise ConfigError(f"no {kind[:-1]} named {wanted!r}; {there}", path=place)


def _access_of(
    cluster: Cluster,
    file: Path,
    path: str,
    credentials: Credentials,
    origin: str,
    headers: tuple[tuple[str, str], ...],
) -> Access:
    _check_server(cluster.server, f"{path}.server")
    if cluster.proxy_url and urlsplit(cluster.proxy_url).scheme not in ("http", "https"):
        scheme = urlsplit(cluster.proxy_url).scheme
        raise ConfigError(f"only http and https proxies, got {scheme!r}", path=f"{path}.proxy-url")
    pem, pem_field = _authority_of(cluster, file, path)
    tls = None
    if cluster.server.startswith("https:"):
        tls = Tls(
            authority_pem=pem, authority_field=pem_field, is_checked=not cluster.insecure_skip_tls_verify
        )
        tls.context_for(None)  # a bad authority is told now, not at the first request
    return Access(
        server=cluster.server.rstrip("/"),
        tls=tls,
        credentials=credentials,
        origin=origin,
        server_name=cluster.tls_server_name or None,
        proxy=cluster.proxy_url or None,
        headers=headers,
    )


def _check_server(server: str, path: str) -> None:
    if not server:
        raise ConfigError("is not set", path=path)
    url = urlsplit(server)
    if "@" in url.netloc:
        raise ConfigError("needs no user and password in it", path=path, hint="put them into the user")
    try:
        port_is_sound = url.port is None or url.port > 0
    except ValueError:
        port_is_sound = False
    if url.scheme not in ("http", "https") or not url.hostname or not port_is_sound:
        raise ConfigError(f"needs https://HOST:PORT, got {server!r}", path=path)


def _authority_of(cluster: Cluster, file: Path, path: str) -> tuple[str | None, str]:
    if cluster.certificate_authority_data:
        field_path = f"{path}.certificate-authority-data"
        return _decode(cluster.certificate_authority_data, field_path), field_path
    if cluster.certificate_authority:
        field_path = f"{path}.certificate-authority"
        return _read_text(file.parent / cluster.certificate_authority, field_path), field_path
    return None, path


def _credentials_of(
    user: User, file: Path, path: str, cluster: Cluster, cluster_file: Path, cluster_path: str
) -> Credentials:
    if user.auth_provider is not None:
        raise ConfigError(
            f"provider {user.auth_provider.get('name')!r} is of a kind that Kubernetes 1.26 removed",
            path=f"{path}.auth-provider",
            hint="use an exec plugin",
        )
    certificate = _certificate_of(user, file, path)
    if user.exec is not None:
        info = _cluster_info(cluster, cluster_file, cluster_path) if user.exec.provide_cluster_info else None
        return ExecPlugin(user.exec, path=f"{path}.exec", directory=file.parent, cluster=info)
    if user.token:
        return Token(user.token, certificate)
    if user.token_file:
        token = file.parent / user.token_file
        _read_text(token, f"{path}.tokenFile")
        return TokenFile(token, certificate)
    if user.username:
        return BasicPassword(user.username, user.password, certificate)
    return Nobody(certificate)


def _certificate_of(user: User, file: Path, path: str) -> ClientCertificate | CertificateFiles | None:
    has_certificate = bool(user.client_certificate or user.client_certificate_data)
    has_key = bool(user.client_key or user.client_key_data)
    if not has_certificate and not has_key:
        return None
    if not has_key:
        raise ConfigError("client certificate without client-key or client-key-data", path=path)
    if not has_certificate:
        raise ConfigError(
            "client key without client-certificate or client-certificate-data", path=f"{path}.client-key"
        )
    if user.client_certificate_data or user.client_key_data:
        pem = (
            _decode(user.client_certificate_data, f"{path}.client-certificate-data")
            if user.client_certificate_data
            else _read_text(file.parent / user.client_certificate, f"{path}.client-certificate")
        )
        key = (
            _decode(user.client_key_data, f"{path}.client-key-data")
            if user.client_key_data
            else _read_text(file.parent / user.client_key, f"{path}.client-key")
        )
        certificate = ClientCertificate(pem, key, path)
        _load_certificate(ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT), certificate)
        return certificate
    files = CertificateFiles(file.parent / user.client_certificate, file.parent / user.client_key, path)
    _load_certificate(ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT), files.current())
    return files


def _cluster_info(cluster: Cluster, file: Path, path: str) -> dict[str, object]:
    """What an exec plugin is told of the cluster (`spec.cluster` of ExecCredential)."""
    pem, _ = _authority_of(cluster, file, path)
    info: dict[str, object] = {
        "server": cluster.server,
        "tls-server-name": cluster.tls_server_name,
        "insecure-skip-tls-verify": cluster.insecure_skip_tls_verify,
        "certificate-authority-data": base64.b64encode(pem.encode()).decode() if pem else "",
        "proxy-url": cluster.proxy_url,
    }
    return {name: value for name, value in info.items() if value}


def _impersonation(user: User) -> tuple[tuple[str, str], ...]:
    headers = [("Impersonate-User", user.as_user), ("Impersonate-Uid", user.as_uid)]
    headers += [("Impersonate-Group", group) for group in user.as_groups]
    headers += [
        (f"Impersonate-Extra-{name}", value)
        for name, values in user.as_user_extra.items()
        for value in values
    ]
    return tuple((name, value) for name, value in headers if value)


def _read_text(file: Path, place: str) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except FileNotFoundError:
        message = "no such file" if place == str(file) else f"no such file: {file}"
    except UnicodeDecodeError:
        message = "is no text" if place == str(file) else f"is no text: {file}"
    except OSError as error:
        message = f"cannot be read: {error.strerror}" + ("" if place == str(file) else f": {file}")
    raise ConfigError(message, path=place)


def _decode(text: str, path: str) -> str:
    try:
        return base64.b64decode("".join(text.split()), validate=True).decode("ascii")
    except (binascii.Error, UnicodeDecodeError) as error:
        raise ConfigError("is no base64 of a PEM text", path=path) from error


def _load_certificate(context: ssl.SSLContext, certificate: ClientCertificate) -> None:
    """Load a certificate; the ssl module takes it from a file only, so it stands in one for a moment."""
    text = certificate.certificate_pem.rstrip("\n") + "\n" + certificate.key_pem
    with _brief_file(text.encode()) as name:
        try:
            context.load_cert_chain(name)
        except (ssl.SSLError, OSError) as error:
            reason = getattr(error, "reason", None) or str(error)
            raise ConfigError(
                f"client certificate and key are not usable: {reason}", path=certificate.origin
            ) from error


@contextmanager
def _brief_file(content: bytes) -> Iterator[str]:
    """A file with this content: in memory where the system can, so that no key is on a disk, which may be
    read-only besides.
    """
    if hasattr(os, "memfd_create"):
        number = os.memfd_create("muster")
        try:
            os.write(number, content)
            yield f"/proc/self/fd/{number}"
        finally:
            os.close(number)
        return
    with tempfile.NamedTemporaryFile(prefix="muster-", suffix=".pem") as file:
        file.write(content)
        file.flush()
        yield file.name
