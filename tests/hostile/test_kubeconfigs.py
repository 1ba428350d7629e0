"""Kubeconfigs of anything: an error that names the file and shows no secret, or a way in; nothing else."""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from muster.base.errors import ConfigError
from muster.runtime.kubeconfig import read_access

HUSH = "hush-hush"
texts = st.sampled_from(["", "c", "../..", "https://h:99999", "https://h:6443", "\0", "x" * 99])
addresses = texts | st.just(f"https://u:{HUSH}@h")
values = st.none() | st.integers() | st.booleans() | texts | st.lists(texts, max_size=2)


def part(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.fixed_dictionaries({}, optional=fields) | values


secret = st.just(HUSH) | values
cluster = part(
    **dict.fromkeys(("insecure-skip-tls-verify", "certificate-authority", "tls-server-name"), values),
    **{"server": addresses, "certificate-authority-data": secret, "proxy-url": addresses},
)
user = part(
    **dict.fromkeys(("token", "password", "client-certificate-data", "client-key-data", "username"), secret),
    **{"tokenFile": texts, "client-key": texts, "exec": part(command=texts, apiVersion=texts, env=values)},
)
configs = st.fixed_dictionaries(
    {
        "current-context": st.just("c") | values,
        "contexts": st.just([{"name": "c", "context": {"cluster": "c", "user": "c"}}]) | values,
        "clusters": cluster.map(lambda found: [{"name": "c", "cluster": found}]) | values,
        "users": user.map(lambda found: [{"name": "c", "user": found}]) | values,
    }
)


@given(config=configs)
@settings(max_examples=150, deadline=None)
def test_a_config_of_anything_is_refused_in_words_or_is_a_way_in(config: Any) -> None:
    with TemporaryDirectory() as folder:
        file = Path(folder) / "config"
        file.write_text(yaml.safe_dump(config))
        assert HUSH not in what_is_said_of(file)


def what_is_said_of(file: Path) -> str:
    try:
        return repr(read_access([file]))
    except ConfigError as error:
        return f"{error.path} {error} {error.hint}"


@pytest.mark.parametrize(
    "content", [b"\xff\xfe", b"[" * 10_000, b"a: &a [*a]", b"- " * 5_000, b"{a: b", b"!!python/object:x {}"]
)
def test_a_file_of_anything_is_refused_in_words(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "config").write_bytes(content)
    with pytest.raises(ConfigError):
        read_access([tmp_path / "config"])
