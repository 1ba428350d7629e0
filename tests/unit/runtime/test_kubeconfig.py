"""Every way into a cluster, and every lie a kubeconfig can tell, with the field that tells it."""

import base64
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from muster.base.errors import ConfigError
from muster.runtime.credentials import ExecPlugin, Nobody, Token, TokenFile
from muster.runtime.kubeconfig import Access, find_access

Config = dict[str, Any]
Change = Callable[[Config], object]


def make_pair() -> tuple[str, str]:
    """A certificate that signs itself, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "test")])
    began = datetime(2026, 1, 1, tzinfo=UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(began)
        .not_valid_after(began + timedelta(days=3650))
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    text = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    return certificate.public_bytes(pem).decode(), text.decode()


CERTIFICATE, KEY = make_pair()
OTHER_CERTIFICATE, OTHER_KEY = make_pair()


def coded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def sound() -> Config:
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "c",
        "clusters": [{"name": "k", "cluster": {"server": "https://cluster.test:6443"}}],
        "users": [{"name": "u", "user": {"token": "secret"}}],
        "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u"}}],
    }


def access_of(tmp_path: Path, change: Change = lambda config: None, **options: str) -> Access:
    config = sound()
    change(config)
    file = tmp_path / "config"
    file.write_text(yaml.safe_dump(config))
    return find_access(str(file), **options)


def cluster(**fields: object) -> Change:
    return lambda config: config["clusters"][0]["cluster"].update(fields)


def user(**fields: object) -> Change:
    return lambda config: config["users"][0].update(
        user={name.replace("_", "-"): value for name, value in fields.items()}
    )


async def test_server_and_token_are_found_by_the_current_context(tmp_path: Path) -> None:
    access = access_of(tmp_path)
    assert access.server == "https://cluster.test:6443"
    assert (await access.credentials.secret(0.0)).authorization == "Bearer secret"


def test_another_context_can_be_asked_for(tmp_path: Path) -> None:
    def add(config: Config) -> None:
        config["clusters"].append({"name": "k2", "cluster": {"server": "http://other.test"}})
        config["contexts"].append({"name": "c2", "context": {"cluster": "k2", "user": "u"}})

    access = access_of(tmp_path, add, context="c2")
    assert (access.server, access.tls) == ("http://other.test", None)


def test_files_are_found_beside_the_kubeconfig(tmp_path: Path) -> None:
    (tmp_path / "ca.crt").write_text(CERTIFICATE)
    (tmp_path / "me.crt").write_text(CERTIFICATE)
    (tmp_path / "me.key").write_text(KEY)

    def change(config: Config) -> None:
        cluster(**{"certificate-authority": "ca.crt"})(config)
        user(client_certificate="me.crt", client_key="me.key")(config)

    access = access_of(tmp_path, change)
    assert access.tls is not None
    assert access.tls.authority_pem == CERTIFICATE


async def test_a_client_certificate_can_stand_in_the_file(tmp_path: Path) -> None:
    change = user(client_certificate_data=coded(CERTIFICATE), client_key_data=coded(KEY))
    access = access_of(tmp_path, change)
    certificate = (await access.credentials.secret(0.0)).certificate
    assert isinstance(access.credentials, Nobody)
    assert certificate is not None
    assert access.tls is not None
    access.tls.context_for(certificate)


def test_impersonation_goes_along_as_headers(tmp_path: Path) -> None:
    change = user(
        token="t", **{"as": "jane", "as-groups": ["dev", "ops"], "as-user-extra": {"why": ["test"]}}
    )
    assert access_of(tmp_path, change).headers == (
        ("Impersonate-User", "jane"),
        ("Impersonate-Group", "dev"),
        ("Impersonate-Group", "ops"),
        ("Impersonate-Extra-why", "test"),
    )


def test_the_name_of_an_extra_goes_along_as_a_header_can_have_it(tmp_path: Path) -> None:
    change = user(**{"as": "jane", "as-user-extra": {"acme.com/a b": ["x"], "c\r\nd: e": ["y"]}})
    assert access_of(tmp_path, change).headers == (
        ("Impersonate-User", "jane"),
        ("Impersonate-Extra-acme.com%2Fa%20b", "x"),
        ("Impersonate-Extra-c%0D%0Ad%3A%20e", "y"),
    )


def test_a_plugin_is_kept_for_later(tmp_path: Path) -> None:
    plugin = {"apiVersion": "client.authentication.k8s.io/v1", "command": "aws", "args": None, "env": None}
    assert isinstance(access_of(tmp_path, user(exec=plugin)).credentials, ExecPlugin)


async def test_a_token_file_counts_before_a_token(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("renewed")
    access = access_of(tmp_path, user(token="old", tokenFile="token"))
    assert (await access.credentials.secret(0.0)).authorization == "Bearer renewed"


def test_a_plugin_comes_after_what_stands_in_the_file(tmp_path: Path) -> None:
    plugin = {"apiVersion": "client.authentication.k8s.io/v1", "command": "aws"}
    assert isinstance(access_of(tmp_path, user(token="t", exec=plugin)).credentials, Token)


def test_of_the_files_in_the_variable_some_may_be_missing_or_empty(tmp_path: Path) -> None:
    (tmp_path / "empty").write_text("")
    (tmp_path / "sound").write_text(yaml.safe_dump(sound()))
    named = ":".join(str(tmp_path / name) for name in ("missing", "empty", "sound"))
    assert find_access(environment={"KUBECONFIG": named}).server == "https://cluster.test:6443"
    with pytest.raises(ConfigError, match="missing: no such file"):
        find_access(environment={"KUBECONFIG": str(tmp_path / "missing")})


def test_kubeconfig_variable_merges_files_and_the_first_wins(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    first.write_text(yaml.safe_dump({"users": [{"name": "u", "user": {"token": "first"}}]}))
    second.write_text(yaml.safe_dump(sound()))
    access = find_access(environment={"KUBECONFIG": f"{first}:{second}"})
    assert isinstance(access.credentials, Token)
    assert access.credentials._authorization == "Bearer first"


def test_inside_a_pod_the_service_account_is_used(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("pod-token\n")
    (tmp_path / "ca.crt").write_text(CERTIFICATE)
    environment = {
        "HOME": str(tmp_path),
        "KUBERNETES_SERVICE_HOST": "fd00::1",
        "KUBERNETES_SERVICE_PORT": "443",
    }
    access = find_access(environment=environment, service_account=tmp_path)
    assert access.server == "https://[fd00::1]:443"
    assert isinstance(access.credentials, TokenFile)


def test_no_kubeconfig_anywhere_says_so(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no kubeconfig given") as caught:
        find_access(environment={"HOME": str(tmp_path)})
    assert caught.value.hint == "give --kubeconfig FILE"


def drop(part: str) -> Change:
    return lambda config: config.pop(part)


REMOVED = {"name": "gcp"}
LIES = [
    pytest.param(
        lambda c: c.update({"current-context": "x"}),
        r"current-context: no context named 'x'; there is: c|there are: c",
        id="no-such-context",
    ),
    pytest.param(drop("current-context"), r"current-context: is not set", id="no-current-context"),
    pytest.param(
        drop("clusters"),
        r"\$\.contexts\[c\]\.cluster: no cluster named 'k'; there are none",
        id="no-clusters",
    ),
    pytest.param(drop("users"), r"\$\.contexts\[c\]\.user: no user named 'u'; there are none", id="no-users"),
    pytest.param(cluster(server=""), r"\$\.clusters\[0\]\.cluster\.server: is not set", id="no-server"),
    pytest.param(
        cluster(server="cluster.test:6443"),
        r"\.server: needs https://HOST:PORT, got 'cluster\.test:6443'",
        id="server-without-scheme",
    ),
    pytest.param(
        cluster(server="https://cluster.test:99999"), r"\.server: needs https://HOST", id="port-range"
    ),
    pytest.param(cluster(server="https://[::1"), r"\.server: needs https://HOST", id="broken-address"),
    pytest.param(cluster(server="https://h:1/a b"), r"\.server: needs https://HOST", id="blank-in-server"),
    pytest.param(cluster(server="https://h:1?a=b"), r"\.server: needs https://HOST", id="query-in-server"),
    pytest.param(
        cluster(**{"proxy-url": "http://u:hush@p:99999"}),
        r"\.cluster\.proxy-url: needs http://HOST:PORT$",
        id="port-of-a-proxy",
    ),
    pytest.param(
        cluster(**{"insecure-skip-tls-verify": True, "certificate-authority-data": coded(CERTIFICATE)}),
        r"\.cluster: a certificate authority says nothing where insecure-skip-tls-verify is true",
        id="authority-that-nobody-asks",
    ),
    pytest.param(
        cluster(**{"certificate-authority-data": "%%%"}),
        r"\.certificate-authority-data: is no base64",
        id="authority-is-no-base64",
    ),
    pytest.param(
        cluster(**{"certificate-authority-data": coded("hello")}),
        r"\.certificate-authority-data: no certificate in PEM form",
        id="authority-is-no-pem",
    ),
    pytest.param(
        cluster(**{"certificate-authority": "nowhere.crt"}),
        r"\.certificate-authority: no such file: .*nowhere\.crt",
        id="authority-file-missing",
    ),
]
USER_LIES = [
    pytest.param(
        user(client_certificate_data=coded(CERTIFICATE)),
        r"\$\.users\[0\]\.user: client certificate without client-key",
        id="certificate-without-key",
    ),
    pytest.param(
        user(client_certificate_data=coded(CERTIFICATE), client_key_data=coded(OTHER_KEY)),
        r"\.user: client certificate and key are not usable: KEY_VALUES_MISMATCH",
        id="key-of-another-certificate",
    ),
    pytest.param(
        user(client_certificate_data="%%%", client_key_data=coded(KEY)),
        r"\.client-certificate-data: is no base64",
        id="certificate-is-no-base64",
    ),
    pytest.param(user(tokenFile="nowhere"), r"\.tokenFile: no such file: .*nowhere", id="token-file-missing"),
    pytest.param(
        user(token="hush", username="jane", password="hush"),
        r"\$\.users\[0\]\.user: has a token and a password",
        id="token-and-password",
    ),
    pytest.param(
        user(token="hush", **{"as-groups": ["dev"]}),
        r"\.user: says more of whom to act as, but not who that is",
        id="groups-of-nobody",
    ),
    pytest.param(
        user(auth_provider=REMOVED), r"\.auth-provider: provider 'gcp' is of a kind", id="removed-provider"
    ),
    pytest.param(
        user(exec={"apiVersion": "client.authentication.k8s.io/v1alpha1", "command": "x"}),
        r"\.exec\.apiVersion: needs one of .*v1, .*v1beta1, got",
        id="old-plugin-version",
    ),
    pytest.param(
        user(exec={"apiVersion": "client.authentication.k8s.io/v1"}),
        r"\.exec\.command: is not set",
        id="plugin-without-command",
    ),
]


@pytest.mark.parametrize(("change", "message"), LIES)
def test_a_lie_about_the_cluster_is_told_with_file_and_field(
    tmp_path: Path, change: Change, message: str
) -> None:
    with pytest.raises(ConfigError, match=message) as caught:
        access_of(tmp_path, change)
    assert str(caught.value).startswith(str(tmp_path / "config"))


@pytest.mark.parametrize(("change", "message"), USER_LIES)
def test_a_lie_about_the_user_is_told_with_file_and_field(
    tmp_path: Path, change: Change, message: str
) -> None:
    with pytest.raises(ConfigError, match=message) as caught:
        access_of(tmp_path, change)
    assert str(caught.value).startswith(str(tmp_path / "config"))
