"""Cells that all tables share: ages as kubectl shows them."""

from datetime import datetime

from muster.apiserver.kinds import Object

UNKNOWN = "<unknown>"
NONE = "<none>"
Column = tuple[str, str, str, int]


def column(name: str, type_: str = "string", *, wide: bool = False) -> Column:
    """A column definition; the column called Name has the format `name`."""
    return (name, type_, "name" if name == "Name" else "", 1 if wide else 0)


def seconds(timestamp: object) -> float | None:
    """RFC 3339 text as seconds since 1970; None for what is no time."""
    if not isinstance(timestamp, str) or not timestamp:
        return None
    try:
        return datetime.fromisoformat(timestamp).timestamp()
    except (ValueError, OverflowError):
        return None


def duration(length_s: float) -> str:
    """A duration in at most two units, as kubectl prints ages."""
    whole = int(length_s)
    if whole < -1:
        return "<invalid>"
    if whole < 0:
        return "0s"
    if whole < 120:
        return f"{whole}s"
    minutes, hours, days = whole // 60, whole // 3600, whole // 86400
    if minutes < 10:
        return _two(minutes, "m", whole % 60, "s")
    if minutes < 180:
        return f"{minutes}m"
    if hours < 8:
        return _two(hours, "h", minutes % 60, "m")
    if hours < 48:
        return f"{hours}h"
    if hours < 192:
        return _two(days, "d", hours % 24, "h")
    if days < 730:
        return f"{days}d"
    if days < 2920:
        return _two(days // 365, "y", days % 365, "d")
    return f"{days // 365}y"


def _two(large: int, large_unit: str, small: int, small_unit: str) -> str:
    return f"{large}{large_unit}{small}{small_unit}" if small else f"{large}{large_unit}"


def since(timestamp: object, now_s: float) -> str:
    """How long ago a time was."""
    then = seconds(timestamp)
    return UNKNOWN if then is None else duration(now_s - then)


def age(obj: Object, now_s: float) -> str:
    """How old an object is."""
    return since(obj.get("metadata", {}).get("creationTimestamp"), now_s)
