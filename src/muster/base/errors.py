"""Every exception Muster raises on purpose.

MusterError
├── ConfigError           the user's file; has .path and .hint           → exit 2
├── ObjectInvalid         the user's object; a list of field errors      → HTTP 422
├── ApiError              the server's answer; has .code and .reason     → retried by type
│   ├── Conflict              reread and retry
│   ├── Expired               410: list again
│   └── Unavailable           has .retry_after_s
├── PluginError           a plugin raised; names plugin, point and group → group to backoff
└── InvariantViolated     ours; never caught; in sim carries seed and event number
"""


class MusterError(Exception):
    """Root of the tree."""


class ConfigError(MusterError):
    """A file the user wrote is wrong; `path` names the field, `hint` the cure."""

    def __init__(self, message: str, *, path: str = "", hint: str = "") -> None:
        super().__init__(f"{path}: {message}" if path else message)
        self.path = path
        self.hint = hint


class ObjectInvalid(MusterError):
    """An object the user sent breaks rules of its kind."""

    def __init__(self, message: str, *, causes: tuple[object, ...] = ()) -> None:
        super().__init__(message)
        self.causes = causes


class ApiError(MusterError):
    """An API server's answer that is not a success; `code` is the HTTP status, 0 when there was none.

    `retry_after_s`: for so long the server wants to be left alone; None if it does not say.
    """

    retry_after_s: float | None = None

    def __init__(self, message: str, *, code: int, reason: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason


class Conflict(ApiError):
    """409 on a write: somebody else changed the object."""


class Expired(ApiError):
    """410: the resourceVersion is too old; list again."""


class Unavailable(ApiError):
    """No answer, 429 or 5xx: worth another try after `retry_after_s`."""

    def __init__(
        self, message: str, *, code: int, reason: str = "", retry_after_s: float | None = None
    ) -> None:
        super().__init__(message, code=code, reason=reason)
        self.retry_after_s = retry_after_s


class PluginError(MusterError):
    """A plugin raised instead of answering."""

    def __init__(self, *, plugin: str, point: str, entity: str, error: Exception) -> None:
        super().__init__(f"plugin {plugin!r} raised at {point} for {entity}: {type(error).__name__}: {error}")
        self.plugin = plugin
        self.point = point
        self.entity = entity


class InvariantViolated(MusterError):
    """Our own promise is broken; never caught."""
