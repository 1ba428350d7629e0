"""The configuration of the scheduler: whose pods, which plugins, how long to wait; read from YAML or JSON.

In comes the text of a file the user wrote; out comes a validated `Config`, or a `ConfigError` with the path
of the bad value and a hint.  Next: `profiles.py`, which makes a scheduler of it.
"""

from typing import Any

import msgspec
import yaml
from msgspec import Struct

from muster.base.errors import ConfigError
from muster.scheduling.queue import QueueTimes

DEFAULT_SCHEDULER_NAMES = ("muster", "default-scheduler")


class PluginChoice(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """One plugin of the profile, with the arguments of its constructor; `weight` is of its score."""

    name: str
    args: dict[str, Any] = {}
    weight: float = 1.0


class QueueChoice(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """Waiting times in seconds; the defaults are kube-scheduler's."""

    initial_backoff_seconds: float = 1.0
    max_backoff_seconds: float = 10.0
    flush_every_seconds: float = 30.0
    max_unschedulable_seconds: float = 300.0


class Config(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """What `muster.yaml` may say.

    `plugins` replaces the default profile when given; `remove_plugins` are taken out of it, `add_plugins`
    come after it.
    """

    scheduler_names: tuple[str, ...] = DEFAULT_SCHEDULER_NAMES
    plugins: tuple[PluginChoice, ...] | None = None
    add_plugins: tuple[PluginChoice, ...] = ()
    remove_plugins: tuple[str, ...] = ()
    queue: QueueChoice = QueueChoice()


def load_config(text: str, source: str) -> Config:
    """Read and check a configuration; `source` is the file's name, for messages.  Raises ConfigError."""
    try:
        tree = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ConfigError(f"not YAML: {error}", path=source) from error
    try:
        config = msgspec.convert({} if tree is None else tree, Config)
    except msgspec.ValidationError as error:
        message, _, path = str(error).partition(" - at `")
        raise ConfigError(
            message, path=f"{source}: {path.rstrip('`') or '$'}", hint=_hint(message)
        ) from error
    check_config(config, source)
    return config


def check_config(config: Config, source: str) -> None:
    """Refuse values that have the right type and no meaning.  Raises ConfigError."""
    if not config.scheduler_names:
        raise ConfigError(
            "no scheduler name is given",
            path=f"{source}: $.schedulerNames",
            hint="leave it out for the default",
        )
    for index, name in enumerate(config.scheduler_names):
        if not name.strip():
            raise ConfigError("a scheduler name is empty", path=f"{source}: $.schedulerNames[{index}]")
    queue = config.queue
    for name, value in msgspec.structs.asdict(queue).items():
        if not 0 <= value < 1e9:
            raise ConfigError(
                f"must be 0 or more seconds, got {value}", path=f"{source}: $.queue.{_camel(name)}"
            )
    if queue.flush_every_seconds == 0:
        raise ConfigError("must be more than 0", path=f"{source}: $.queue.flushEverySeconds")
    if queue.max_backoff_seconds < queue.initial_backoff_seconds:
        raise ConfigError(
            f"less than initialBackoffSeconds: {queue.max_backoff_seconds} < {queue.initial_backoff_seconds}",
            path=f"{source}: $.queue.maxBackoffSeconds",
        )


def queue_times(choice: QueueChoice) -> QueueTimes:
    """The queue's times as the core takes them."""
    return QueueTimes(
        backoff_s_initial=choice.initial_backoff_seconds,
        backoff_s_max=choice.max_backoff_seconds,
        flush_every_s=choice.flush_every_seconds,
        unschedulable_s_max=choice.max_unschedulable_seconds,
    )


def _hint(message: str) -> str:
    if "unknown field" not in message:
        return ""
    types = (Config, PluginChoice, QueueChoice)
    known = {field.encode_name for type_ in types for field in msgspec.structs.fields(type_)}
    return f"fields are {', '.join(sorted(known))}"


def _camel(name: str) -> str:
    head, *rest = name.split("_")
    return head + "".join(word.capitalize() for word in rest)
