"""Plugin names and what makes them: Muster's own are handed in, third parties' come by entry point.

A distribution offers a plugin by an entry point in the group `muster.plugins`; it names a class or a
function that makes the plugin from keyword arguments (the `args` of the profile).  Next:
`assembly/profiles.py`.
"""

from collections.abc import Callable, Mapping
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from muster.base.errors import ConfigError

ENTRY_POINT_GROUP = "muster.plugins"
Factory = Callable[..., Any]


class Registry:
    """Names to factories; a third party may add names but not take one of ours."""

    def __init__(self, built_in: Mapping[str, Factory], *, third_party: Mapping[str, EntryPoint]) -> None:
        taken = sorted(set(built_in) & set(third_party))
        if taken:
            raise ConfigError(
                f"an installed distribution offers a plugin named {taken[0]!r}, which is Muster's own",
                hint=f"uninstall it, or have it renamed: {third_party[taken[0]].value}",
            )
        self._built_in = built_in
        self._third_party = third_party

    def names(self) -> tuple[str, ...]:
        """Every plugin that a profile may name, ours first."""
        return (*self._built_in, *sorted(self._third_party))

    def make(self, name: str, args: Mapping[str, Any], *, path: str) -> Any:
        """Make a plugin from its arguments.

        Raises ConfigError at `path` if no such plugin exists, it cannot be imported, its arguments are
        wrong, or what was made has another name.
        """
        factory = self._built_in.get(name) or self._load(name, path)
        try:
            plugin = factory(**args)
        except TypeError as error:
            raise ConfigError(
                f"plugin {name!r} does not take these arguments: {error}", path=f"{path}.args"
            ) from error
        except ValueError as error:
            raise ConfigError(f"plugin {name!r}: {error}", path=f"{path}.args") from error
        if getattr(plugin, "name", None) != name:
            raise ConfigError(
                f"the plugin made for {name!r} calls itself {getattr(plugin, 'name', None)!r}", path=path
            )
        return plugin

    def _load(self, name: str, path: str) -> Factory:
        entry_point = self._third_party.get(name)
        if entry_point is None:
            raise ConfigError(
                f"there is no plugin {name!r}", path=f"{path}.name", hint=f"one of {', '.join(self.names())}"
            )
        try:
            factory: Factory = entry_point.load()
        except (ImportError, AttributeError) as error:
            raise ConfigError(
                f"plugin {name!r} could not be imported from {entry_point.value}: {error}",
                path=f"{path}.name",
            ) from error
        return factory


def find_third_party() -> dict[str, EntryPoint]:
    """Plugins that installed distributions offer, by name."""
    return {
        point.name: point for point in sorted(entry_points(group=ENTRY_POINT_GROUP), key=lambda p: p.name)
    }
