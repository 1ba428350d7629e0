"""Whatever a plugin raises becomes a PluginError that names plugin, point and entity."""

from types import TracebackType

from muster.base.errors import PluginError


class blamed:  # noqa: N801 - a context manager reads like a word
    """Around every call of a plugin: third parties' code may raise anything.

    A class, not a generator: a decision asks 60 times, and each costs 0.4 µs instead of 1.3.
    """

    __slots__ = ("_entity", "_plugin", "_point")

    def __init__(self, plugin: str, point: str, entity: str) -> None:
        self._plugin = plugin
        self._point = point
        self._entity = entity

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, Exception) and not isinstance(error, PluginError):
            raise PluginError(
                plugin=self._plugin, point=self._point, entity=self._entity, error=error
            ) from error
