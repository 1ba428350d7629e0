"""Tests of runtime/certificates.py: only a client that trusts the authority reaches the server."""

import base64
import ssl
from pathlib import Path

import msgspec
import pytest

from muster.runtime.certificates import ServerIdentity, kubeconfig, make_identity, write_private


@pytest.fixture(scope="module")
def identity() -> ServerIdentity:
    return make_identity(("example.test",))


def shake_hands(identity: ServerIdentity, client: ssl.SSLContext, host: str) -> None:
    """Run a TLS handshake in memory; raises what the client would see."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    near = client.wrap_bio(to_client, to_server, server_hostname=host)
    far = identity.server_context.wrap_bio(to_server, to_client, server_side=True)
    finished = set[str]()
    for _ in range(10):
        for name, side in (("client", near), ("server", far)):
            try:
                side.do_handshake()
                finished.add(name)
            except ssl.SSLWantReadError:
                continue
        if len(finished) == 2:
            return
    raise AssertionError("the handshake does not end")


def trusting(identity: ServerIdentity) -> ssl.SSLContext:
    return ssl.create_default_context(cadata=identity.authority_pem.decode())


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "::1", "example.test"])
def test_a_client_with_the_authority_trusts_the_server(identity: ServerIdentity, host: str) -> None:
    shake_hands(identity, trusting(identity), host)


def test_another_host_name_is_not_covered(identity: ServerIdentity) -> None:
    with pytest.raises(ssl.SSLCertVerificationError, match="mismatch"):
        shake_hands(identity, trusting(identity), "elsewhere.test")


def test_the_authority_of_another_cluster_does_not_do(identity: ServerIdentity) -> None:
    with pytest.raises(ssl.SSLCertVerificationError):
        shake_hands(identity, trusting(make_identity()), "127.0.0.1")


def test_the_kubeconfig_leads_to_the_server_with_authority_and_token(identity: ServerIdentity) -> None:
    config = msgspec.json.decode(kubeconfig(identity, "https://127.0.0.1:6443"))
    cluster = config["clusters"][0]["cluster"]
    assert cluster["server"] == "https://127.0.0.1:6443"
    assert base64.b64decode(cluster["certificate-authority-data"]) == identity.authority_pem
    assert config["users"][0]["user"]["token"] == identity.token
    assert config["current-context"] == config["contexts"][0]["name"]


def test_tokens_differ_from_cluster_to_cluster(identity: ServerIdentity) -> None:
    assert make_identity().token != identity.token


def test_a_private_file_is_for_its_owner_only_and_replaces_what_was_there(tmp_path: Path) -> None:
    path = tmp_path / "kubeconfig"
    path.write_text("old")
    path.chmod(0o644)
    write_private(path, b"new")
    assert path.read_bytes() == b"new"
    assert path.stat().st_mode & 0o777 == 0o600
    assert [entry.name for entry in tmp_path.iterdir()] == ["kubeconfig"]
