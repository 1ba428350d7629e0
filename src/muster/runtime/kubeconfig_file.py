"""One kubeconfig file as it stands on the disk: text to typed parts, errors that name file and field.

In comes a path; out comes a `Kubeconfig` of which every name is there once.  What it means, and how several
files are one, is `runtime/kubeconfig.py`.
"""

from collections.abc import Iterable
from pathlib import Path

import msgspec
import yaml
from msgspec import Struct, field

from muster.base.errors import ConfigError
from muster.runtime.credentials import ExecConfig, Masked


class Cluster(Masked, frozen=True, rename="kebab"):
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


def parse_file(file: Path) -> Kubeconfig:
    """Read a file; an empty one says nothing.  Raises ConfigError for what kubectl would not take either."""
    text = read_text(file, str(file))
    try:
        plain = yaml.safe_load(text)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f" in line {mark.line + 1}" if mark is not None else ""
        problem = getattr(error, "problem", None) or "cannot be read"
        raise ConfigError(f"is no YAML: {problem}{line}", path=str(file)) from error
    except RecursionError as error:
        raise ConfigError("is nested too deep", path=str(file)) from error
    if plain is None:
        return Kubeconfig()
    if not isinstance(plain, dict):
        raise ConfigError("is no kubeconfig: a mapping is needed", path=str(file))
    try:
        found = msgspec.convert(plain, Kubeconfig)
    except msgspec.ValidationError as error:
        message, _, where = str(error).partition(" - at `")
        raise ConfigError(message.lower(), path=f"{file}: {where.rstrip('`') or '$'}") from error
    _check_names(f"{file}: $.clusters", (item.name for item in found.clusters or ()))
    _check_names(f"{file}: $.users", (item.name for item in found.users or ()))
    _check_names(f"{file}: $.contexts", (item.name for item in found.contexts or ()))
    return found


def _check_names(path: str, names: Iterable[str]) -> None:
    known: set[str] = set()
    for number, name in enumerate(names):
        if name in known:
            raise ConfigError(f"{name!r} is there already", path=f"{path}[{number}].name")
        known.add(name)


def read_text(file: Path, place: str) -> str:
    """The text of a file.  Raises ConfigError at `place`, a field or the file itself."""
    try:
        return file.read_text(encoding="utf-8")
    except FileNotFoundError:
        message = "no such file" if place == str(file) else f"no such file: {file}"
    except UnicodeDecodeError:
        message = "is no text" if place == str(file) else f"is no text: {file}"
    except OSError as error:
        message = f"cannot be read: {error.strerror}" + ("" if place == str(file) else f": {file}")
    raise ConfigError(message, path=place)
