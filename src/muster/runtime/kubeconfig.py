"""From a kubeconfig, or the files of a pod's service account, to a way into an API server.

In comes a path (or $KUBECONFIG, ~/.kube/config, the in-cluster files); out comes an `Access`: server, TLS,
and who to be.  Whatever is wrong is a ConfigError that names the file and the field.  Secrets that change
while we run are `runtime/credentials.py`; the requests are `runtime/client.py`.
"""

import base64
import binascii
import hashlib
import os
import re
import ssl
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar
from urllib.parse import SplitResult, quote, urlsplit

from msgspec import Struct
from msgspec.structs import replace

from muster.base.errors import ConfigError
from muster.runtime.credentials import (
    BasicPassword,
    CertificateFiles,
    ClientCertificate,
    Credentials,
    ExecPlugin,
    Masked,
    Nobody,
    Token,
    TokenFile,
)
from muster.runtime.kubeconfig_file import Cluster, User, parse_file, read_text

_PRINTABLE = re.compile(r"[!-~]+")
_TOKEN = "!#$&'*+-.^_`|~"  # besides letters and digits; a percent sign begins an escape
SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")


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

    Of the files in $KUBECONFIG some may be missing, as with kubectl.
    Raises   ConfigError naming file and field.
    """
    if path:
        return read_access([Path(path)], context=context)
    if named := environment.get("KUBECONFIG"):
        files = [Path(part) for part in named.split(os.pathsep) if part]
        return read_access([file for file in files if file.exists()] or files, context=context)
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
    digest = _digest_of([*(read_text(file, str(file)) for file in files), access])
    return replace(access, digest=digest, renew=_renewal(lambda: read_access(files, context=context), digest))


def _read_access(files: list[Path], context: str) -> Access:
    origin = os.pathsep.join(str(file) for file in files)
    parts = [(file, parse_file(file)) for file in files]
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
    headers = _impersonation(user, user_path)
    return _access_of(cluster, cluster_file, cluster_path, credentials, origin, headers)


def read_service_account(environment: Mapping[str, str], directory: Path = SERVICE_ACCOUNT) -> Access:
    """Give the way in that every pod of a cluster has; the token file is read again as it changes."""
    host = environment["KUBERNETES_SERVICE_HOST"]
    port = environment.get("KUBERNETES_SERVICE_PORT", "443")
    token, authority = directory / "token", directory / "ca.crt"
    pem = read_text(authority, str(authority))
    read_text(token, str(token))
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
    _check_proxy(cluster.proxy_url, f"{path}.proxy-url")
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
    url = _split(server)
    if url is not None and "@" in url.netloc:
        raise ConfigError("needs no user and password in it", path=path, hint="put them into the user")
    if url is None or url.scheme not in ("http", "https") or url.query or url.fragment:
        raise ConfigError(f"needs https://HOST:PORT, got {server!r}", path=path)


def _check_proxy(proxy: str, path: str) -> None:
    """Nothing of it is shown but its scheme: there may be a password in it."""
    if not proxy:
        return
    url = _split(proxy)
    if url is None:
        raise ConfigError("needs http://HOST:PORT", path=path)
    if url.scheme not in ("http", "https"):
        raise ConfigError(f"only http and https proxies, got {url.scheme!r}", path=path)


def _split(text: str) -> SplitResult | None:
    """The parts of a URL that names a host, and a port that there is if it names one."""
    try:
        url = urlsplit(text)
        is_sound = bool(url.hostname) and (url.port is None or url.port > 0)
    except ValueError:
        return None
    return url if is_sound and _PRINTABLE.fullmatch(text) else None


def _authority_of(cluster: Cluster, file: Path, path: str) -> tuple[str | None, str]:
    if cluster.insecure_skip_tls_verify and (
        cluster.certificate_authority or cluster.certificate_authority_data
    ):
        raise ConfigError(
            "a certificate authority says nothing where insecure-skip-tls-verify is true",
            path=path,
            hint="take one of the two away",
        )
    if cluster.certificate_authority_data:
        field_path = f"{path}.certificate-authority-data"
        return _decode(cluster.certificate_authority_data, field_path), field_path
    if cluster.certificate_authority:
        field_path = f"{path}.certificate-authority"
        return read_text(file.parent / cluster.certificate_authority, field_path), field_path
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
    if (user.token or user.token_file) and (user.username or user.password):
        raise ConfigError("has a token and a password", path=path, hint="take one of the two away")
    if user.token_file:  # it counts before a token, as with kubectl
        token = file.parent / user.token_file
        read_text(token, f"{path}.tokenFile")
        return TokenFile(token, certificate)
    if user.token:
        return Token(user.token, certificate)
    if user.username:
        return BasicPassword(user.username, user.password, certificate)
    if user.exec is not None and certificate is None:
        info = _cluster_info(cluster, cluster_file, cluster_path) if user.exec.provide_cluster_info else None
        return ExecPlugin(user.exec, path=f"{path}.exec", directory=file.parent, cluster=info)
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
            else read_text(file.parent / user.client_certificate, f"{path}.client-certificate")
        )
        key = (
            _decode(user.client_key_data, f"{path}.client-key-data")
            if user.client_key_data
            else read_text(file.parent / user.client_key, f"{path}.client-key")
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


def _impersonation(user: User, path: str) -> tuple[tuple[str, str], ...]:
    headers = [("Impersonate-Uid", user.as_uid)]
    headers += [("Impersonate-Group", group) for group in user.as_groups]
    headers += [
        (f"Impersonate-Extra-{quote(name.lower(), safe=_TOKEN)}", value)
        for name, values in user.as_user_extra.items()
        for value in values
    ]
    said = tuple((name, value) for name, value in headers if value)
    if said and not user.as_user:
        raise ConfigError("says more of whom to act as, but not who that is", path=path, hint="set as")
    return (("Impersonate-User", user.as_user), *said) if user.as_user else ()


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
