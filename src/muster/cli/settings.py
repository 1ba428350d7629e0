"""The scheduler's settings as the command line gives them: a file, and names that overrule it."""

from pathlib import Path
from typing import TYPE_CHECKING

from muster.base.errors import ConfigError

if TYPE_CHECKING:
    from muster.assembly.config import Config


def read_settings(file: Path | None, scheduler_names: tuple[str, ...] | None) -> "Config":
    """Give the configuration of `--config FILE`, with the names of `--scheduler-name` where there are any.

    Raises   ConfigError naming the file, or the field in it, and the cure.
    """
    import msgspec

    from muster.assembly.config import Config, load_config

    config = Config() if file is None else load_config(_read(file), str(file))
    return msgspec.structs.replace(config, scheduler_names=scheduler_names) if scheduler_names else config


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except OSError as error:
        raise ConfigError(error.strerror or str(error), path=f"--config {file}") from error
    except UnicodeDecodeError as error:
        raise ConfigError("not text in UTF-8", path=f"--config {file}", hint="write it as YAML") from error
