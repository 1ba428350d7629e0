"""Secrets that change while we run: token files, certificate files and exec plugins."""

import json
import os
import sys
from pathlib import Path

import pytest

from muster.base.errors import ConfigError
from muster.runtime.credentials import (
    REREAD_S,
    BasicPassword,
    CertificateFiles,
    ExecConfig,
    ExecPlugin,
    ExecVariable,
    TokenFile,
)

V1 = "client.authentication.k8s.io/v1"


async def test_a_token_file_is_read_again_after_a_minute(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("one\n")
    credentials = TokenFile(file)
    assert (await credentials.secret(0.0)).authorization == "Bearer one"
    file.write_text("two\n")
    assert (await credentials.secret(REREAD_S - 1)).authorization == "Bearer one"
    assert (await credentials.secret(REREAD_S)).authorization == "Bearer two"


async def test_a_refused_token_makes_the_file_be_read_at_once(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("one")
    credentials = TokenFile(file)
    await credentials.secret(0.0)
    file.write_text("two")
    assert credentials.refresh()
    assert (await credentials.secret(0.0)).authorization == "Bearer two"


async def test_a_token_file_that_goes_away_leaves_the_token_in_use(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("one")
    credentials = TokenFile(file)
    await credentials.secret(0.0)
    file.unlink()
    assert (await credentials.secret(REREAD_S)).authorization == "Bearer one"


async def test_a_token_file_that_becomes_no_text_leaves_the_token_in_use(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("one")
    source = TokenFile(file)
    assert (await source.secret(0.0)).authorization == "Bearer one"
    file.write_bytes(b"\xff\xfe")
    source.refresh()
    assert (await source.secret(61.0)).authorization == "Bearer one"
    with pytest.raises(ConfigError, match="is no text"):
        await TokenFile(file).secret(0.0)


def test_a_certificate_that_becomes_no_text_is_named(tmp_path: Path) -> None:
    for name in ("crt", "key"):
        (tmp_path / name).write_bytes(b"\xff")
    with pytest.raises(ConfigError, match=r"^users: certificate or key is no text"):
        CertificateFiles(tmp_path / "crt", tmp_path / "key", "users").current()


@pytest.mark.parametrize("variable", [ExecVariable("A=B", "hush"), ExecVariable("A", "hush\0")])
async def test_variables_that_no_process_can_have_are_an_error_that_shows_no_secret(
    tmp_path: Path, variable: ExecVariable
) -> None:
    config = ExecConfig(api_version=V1, command="true", env=[variable])
    source = ExecPlugin(config, path="users", directory=tmp_path, cluster=None)
    with pytest.raises(ConfigError, match=r"^users: command, args or env: ") as caught:
        await source.secret(0.0)
    assert "hush" not in str(caught.value)


async def test_an_empty_token_file_is_an_error(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("\n")
    with pytest.raises(ConfigError, match="token: is empty"):
        await TokenFile(file).secret(0.0)


async def test_a_password_goes_as_basic_authorization() -> None:
    assert (await BasicPassword("me", "pw").secret(0.0)).authorization == "Basic bWU6cHc="


def test_certificate_files_are_read_again_when_they_are_replaced(tmp_path: Path) -> None:
    certificate, key = tmp_path / "crt", tmp_path / "key"
    certificate.write_text("one")
    key.write_text("key")
    files = CertificateFiles(certificate, key, "field")
    assert files.current().certificate_pem == "one"
    certificate.write_text("two")
    os.utime(certificate, (1, 1))
    assert files.current().certificate_pem == "two"


class Plugin:
    """A program that counts its runs and answers with `status`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.answer: dict[str, object] = {"apiVersion": V1, "kind": "ExecCredential"}
        self.script = folder / "plugin.py"
        self.script.write_text(
            "import os, pathlib, sys\n"
            "here = pathlib.Path(__file__).parent\n"
            "(here / 'runs').open('a').write('x')\n"
            "(here / 'info').write_text(os.environ['KUBERNETES_EXEC_INFO'] + os.environ.get('REGION', ''))\n"
            "print((here / 'answer').read_text())\n"
            "if (here / 'fail').exists():\n"
            "    sys.exit('please log in first')\n"
        )

    def give(self, **status: str) -> None:
        (self.folder / "answer").write_text(json.dumps({**self.answer, "status": status}))

    @property
    def runs(self) -> int:
        return len((self.folder / "runs").read_text())

    def credentials(self, cluster: dict[str, object] | None = None) -> ExecPlugin:
        config = ExecConfig(
            api_version=V1,
            command=sys.executable,
            args=[str(self.script)],
            env=[ExecVariable("REGION", "eu")],
        )
        return ExecPlugin(config, path="config: exec", directory=self.folder, cluster=cluster)


@pytest.fixture
def plugin(tmp_path: Path) -> Plugin:
    return Plugin(tmp_path)


async def test_a_plugins_token_is_kept_until_it_expires(plugin: Plugin) -> None:
    plugin.give(token="t1", expirationTimestamp="1970-01-01T01:00:00Z")
    credentials = plugin.credentials()
    assert (await credentials.secret(0.0)).authorization == "Bearer t1"
    await credentials.secret(3500.0)
    assert plugin.runs == 1
    await credentials.secret(3595.0)
    assert plugin.runs == 2


async def test_a_refused_token_makes_the_plugin_run_again(plugin: Plugin) -> None:
    plugin.give(token="t1")
    credentials = plugin.credentials()
    await credentials.secret(0.0)
    plugin.give(token="t2")
    assert credentials.refresh()
    assert (await credentials.secret(0.0)).authorization == "Bearer t2"


async def test_a_plugin_may_give_a_certificate(plugin: Plugin) -> None:
    plugin.give(clientCertificateData="CRT", clientKeyData="KEY")
    secret = await plugin.credentials().secret(0.0)
    assert secret.authorization is None
    assert secret.certificate is not None
    assert (secret.certificate.certificate_pem, secret.certificate.key_pem) == ("CRT", "KEY")


async def test_a_plugin_is_told_version_cluster_and_its_variables(plugin: Plugin) -> None:
    plugin.give(token="t")
    await plugin.credentials({"server": "https://cluster.test"}).secret(0.0)
    told = (plugin.folder / "info").read_text()
    assert told.endswith("}eu")
    assert json.loads(told.removesuffix("eu")) == {
        "apiVersion": V1,
        "kind": "ExecCredential",
        "spec": {"interactive": False, "cluster": {"server": "https://cluster.test"}},
    }


async def test_a_plugin_that_fails_is_quoted(plugin: Plugin) -> None:
    plugin.give(token="t")
    (plugin.folder / "fail").touch()
    with pytest.raises(ConfigError, match=r"config: exec: .* ended with code 1: please log in first"):
        await plugin.credentials().secret(0.0)


async def test_a_plugin_that_prints_its_variables_as_it_fails_is_quoted_without_them(tmp_path: Path) -> None:
    config = ExecConfig(
        api_version=V1,
        command="sh",
        args=["-c", 'echo "no login with $PASSWORD in $REGION" >&2; exit 3'],
        env=[ExecVariable("PASSWORD", "hush-hush"), ExecVariable("REGION", "eu")],
    )
    source = ExecPlugin(config, path="users", directory=tmp_path, cluster=None)
    with pytest.raises(ConfigError, match=r"ended with code 3: no login with … in eu$"):
        await source.secret(0.0)


async def test_a_plugin_beside_a_kubeconfig_of_this_folder_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "plugin"
    answer = {"apiVersion": V1, "kind": "ExecCredential", "status": {"token": "t"}}
    program.write_text(f"#!/bin/sh\necho '{json.dumps(answer)}'\n")
    program.chmod(0o700)
    monkeypatch.chdir(tmp_path)
    config = ExecConfig(api_version=V1, command="./plugin")
    source = ExecPlugin(config, path="users", directory=Path("config").parent, cluster=None)
    assert (await source.secret(0.0)).authorization == "Bearer t"


async def test_a_plugin_that_is_not_installed_comes_with_its_hint(tmp_path: Path) -> None:
    config = ExecConfig(api_version=V1, command="no-such-plugin", install_hint="get it from the shop")
    plugin = ExecPlugin(config, path="config: exec", directory=tmp_path, cluster=None)
    with pytest.raises(ConfigError, match="cannot run 'no-such-plugin': No such file") as caught:
        await plugin.secret(0.0)
    assert caught.value.hint == "get it from the shop"


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        pytest.param("hello", "is no ExecCredential", id="no-json"),
        pytest.param('{"apiVersion": "x/v2", "kind": "ExecCredential"}', "asked for", id="other-version"),
        pytest.param(
            json.dumps({"apiVersion": V1, "kind": "ExecCredential"}), "has no status", id="no-status"
        ),
        pytest.param(
            json.dumps({"apiVersion": V1, "kind": "ExecCredential", "status": {}}),
            "neither a token",
            id="empty",
        ),
        pytest.param(
            json.dumps({"apiVersion": V1, "kind": "ExecCredential", "status": {"clientKeyData": "k"}}),
            "a key alone",
            id="key-alone",
        ),
        pytest.param(
            json.dumps(
                {
                    "apiVersion": V1,
                    "kind": "ExecCredential",
                    "status": {"token": "t", "expirationTimestamp": "soon"},
                }
            ),
            "'soon' is no RFC 3339 time",
            id="bad-time",
        ),
    ],
)
async def test_an_answer_that_is_no_credential_is_refused(plugin: Plugin, answer: str, message: str) -> None:
    (plugin.folder / "answer").write_text(answer)
    with pytest.raises(ConfigError, match=message):
        await plugin.credentials().secret(0.0)
