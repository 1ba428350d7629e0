"""Kubernetes' time texts (RFC 3339, UTC, whole seconds) and seconds since the Unix epoch."""

import re
from datetime import UTC, datetime

_LAST_S = 253_402_300_799.0
_DURATION = re.compile(r"[-+]?(?:0|(?:(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:ns|us|µs|μs|ms|s|m|h))+)")
_ZERO = datetime(1, 1, 1, tzinfo=UTC)


def parse_seconds(text: str | None) -> float:
    """Seconds since the epoch; 0.0 for an absent or unreadable time."""
    if not text:
        return 0.0
    try:
        return datetime.fromisoformat(text).timestamp()
    except ValueError:
        return 0.0


def format_seconds(seconds: float) -> str:
    """The time as `metav1.Time` prints it: whole seconds, rounded down, with Z; of 1970 to 9999 only."""
    return datetime.fromtimestamp(int(min(max(seconds, 0.0), _LAST_S)), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def format_moment(moment: datetime, timespec: str) -> str | None:
    """The time as `metav1.Time` ("seconds") or `metav1.MicroTime` ("microseconds") prints it, the year in
    four digits; None for the first moment of year 1, which is Go's way to say that there is none."""
    moment = moment.astimezone(UTC)
    return None if moment == _ZERO else moment.replace(tzinfo=None).isoformat(timespec=timespec) + "Z"


def is_duration(text: str) -> bool:
    """Whether the text is a duration as Go writes it (`time.ParseDuration`): "1h30m", "-1.5s", "0"."""
    return _DURATION.fullmatch(text) is not None
