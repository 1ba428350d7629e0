"""A certificate authority, a server certificate, a token and a kubeconfig, fresh for each embedded cluster.

Nothing of it is kept: the keys live in this process and, for the moment that OpenSSL needs to read them, in
a private temporary folder.  Next: `runtime/embedded.py`, which serves with them.
"""

import base64
import ipaddress
import os
import secrets
import ssl
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

import msgspec
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

_VALID = timedelta(days=365)
_CLOCK_SKEW = timedelta(hours=1)
_LOOPBACK = ("localhost", "127.0.0.1", "::1", "kubernetes", "kubernetes.default", "kubernetes.default.svc")


class ServerIdentity(NamedTuple):
    """What a server needs to be trusted, and a client to be let in."""

    authority_pem: bytes
    server_context: ssl.SSLContext
    token: str


def make_identity(names: tuple[str, ...] = ()) -> ServerIdentity:
    """Make a CA, a server certificate for loopback and `names` (host names or addresses), and a token."""
    authority_key = ec.generate_private_key(ec.SECP256R1())
    authority = _certificate("muster-ca", authority_key, "muster-ca", authority_key)
    key = ec.generate_private_key(ec.SECP256R1())
    server = _certificate(
        "muster", key, "muster-ca", authority_key, names=tuple(dict.fromkeys(_LOOPBACK + names))
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    _load_chain(context, server, key)
    context.set_alpn_protocols(["http/1.1"])
    return ServerIdentity(_pem(authority), context, secrets.token_urlsafe(32))


def kubeconfig(identity: ServerIdentity, url: str) -> bytes:
    """Give the kubeconfig text (JSON, which is YAML) that leads a client to `url` with the token."""
    authority = base64.b64encode(identity.authority_pem).decode()
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "muster", "cluster": {"server": url, "certificate-authority-data": authority}}],
        "users": [{"name": "admin", "user": {"token": identity.token}}],
        "contexts": [{"name": "muster", "context": {"cluster": "muster", "user": "admin"}}],
        "current-context": "muster",
        "preferences": {},
    }
    return msgspec.json.format(msgspec.json.encode(config), indent=2) + b"\n"


def write_private(path: Path, text: bytes) -> None:
    """Write a file that only its owner can read, in one step: it is not there, or there whole."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(text)
        Path(name).replace(path)
    except OSError:
        Path(name).unlink(missing_ok=True)
        raise


def _certificate(
    subject: str,
    key: ec.EllipticCurvePrivateKey,
    issuer: str,
    issuer_key: ec.EllipticCurvePrivateKey,
    *,
    names: tuple[str, ...] = (),
) -> x509.Certificate:
    """Sign a certificate: an authority where it has no names, else a server."""
    is_authority = not names
    now = datetime.now(UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, subject)]))
        .issuer_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, issuer)]))
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _CLOCK_SKEW)
        .not_valid_after(now + _VALID)
        .add_extension(x509.BasicConstraints(ca=is_authority, path_length=None), critical=True)
        .add_extension(_key_usage(is_authority=is_authority), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_key.public_key()), critical=False
        )
    )
    if names:
        builder = builder.add_extension(
            x509.SubjectAlternativeName([_general_name(name) for name in names]), critical=False
        ).add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
    return builder.sign(issuer_key, hashes.SHA256())


def _key_usage(*, is_authority: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        key_cert_sign=is_authority,
        crl_sign=is_authority,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _general_name(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def _load_chain(context: ssl.SSLContext, server: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> None:
    """Hand the key to OpenSSL, which reads it from a file only."""
    secret = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    with tempfile.TemporaryDirectory(prefix="muster-") as folder:
        chain = Path(folder) / "server.pem"
        write_private(chain, _pem(server) + secret)
        context.load_cert_chain(chain)
