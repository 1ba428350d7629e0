"""One kubeconfig file: what is in it, or what is wrong with it."""

from pathlib import Path

import pytest

from muster.base.errors import ConfigError
from muster.runtime.kubeconfig_file import Kubeconfig, parse_file


def parse(tmp_path: Path, text: str) -> Kubeconfig:
    file = tmp_path / "config"
    file.write_text(text)
    return parse_file(file)


def test_names_of_another_kind_may_be_alike(tmp_path: Path) -> None:
    found = parse(tmp_path, "clusters: [{name: a}, {name: b}]\nusers: [{name: a, user: {token: t}}]\n")
    assert [item.name for item in found.clusters or ()] == ["a", "b"]
    assert [item.user.token for item in found.users or ()] == ["t"]


def test_an_empty_file_says_nothing(tmp_path: Path) -> None:
    assert parse(tmp_path, "\n") == Kubeconfig()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("a: [1", "is no YAML: .* in line", id="broken-yaml"),
        pytest.param("- a\n- b\n", "is no kubeconfig: a mapping is needed", id="a-list"),
        pytest.param(
            "clusters: [{cluster: {server: 5}}]",
            r"\$\.clusters\[0\]\.cluster\.server: expected `str`, got `int`",
            id="wrong-type",
        ),
        pytest.param(
            "clusters: [{name: k}, {name: k}]",
            r"\$\.clusters\[1\]\.name: 'k' is there already",
            id="two-clusters-of-a-name",
        ),
        pytest.param(
            "users: [{name: u}, {name: v}, {name: u, user: {token: hush}}]",
            r"\$\.users\[2\]\.name: 'u' is there already",
            id="two-users-of-a-name",
        ),
        pytest.param(
            "contexts: [{name: c}, {name: c}]",
            r"\$\.contexts\[1\]\.name: 'c' is there already",
            id="two-contexts-of-a-name",
        ),
    ],
)
def test_what_is_wrong_is_told_with_file_and_field(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message) as caught:
        parse(tmp_path, text)
    assert str(caught.value).startswith(str(tmp_path / "config"))


def test_a_file_that_is_not_there_says_so(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"nowhere: no such file$"):
        parse_file(tmp_path / "nowhere")


def test_a_folder_is_not_taken_for_a_file(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read: Is a directory"):
        parse_file(tmp_path)
