"""Log lines on stderr, one a record: what others wrote cannot break them or steer a terminal."""

import logging

from muster.base.printing import printable


def set_up_logging(level: int) -> None:
    """Log records of this level and above to stderr."""
    handler = logging.StreamHandler()
    handler.setFormatter(LegibleFormatter("%(asctime)s %(levelname)-7s %(name)s: %(message)s"))
    logging.basicConfig(level=level, handlers=[handler])
    # A warning for every device that an expression fails on: the pods that wait for it are told.
    logging.getLogger("cel").setLevel(logging.ERROR)


class LegibleFormatter(logging.Formatter):
    """Escapes what is not printable: names, and messages of servers, are other people's words."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802  logging's own name
        """The record in one line."""
        record.message = printable(record.message)
        return super().formatMessage(record)

    def formatException(self, ei: object) -> str:  # noqa: N802
        """The traceback, line by line."""
        text = super().formatException(ei)  # type: ignore[arg-type]
        return "\n".join(printable(line) for line in text.split("\n"))
