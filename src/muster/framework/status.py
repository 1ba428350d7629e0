"""Verdicts with reasons.  Not fitting is not an error: it is one of these values."""

from enum import Enum

from msgspec import Struct


class Verdict(Enum):
    """What an extension point can answer."""

    SUCCESS = "success"
    WAIT = "wait"
    UNSCHEDULABLE = "unschedulable"
    UNRESOLVABLE = "unresolvable"  # evicting somebody would not help either
    ERROR = "error"  # the group's own contradiction (two scheduler names): SchedulerError


class Status(Struct, frozen=True):
    """A verdict, its reason in words a user can act on, and who said so."""

    verdict: Verdict
    message: str = ""
    plugin: str = ""

    @classmethod
    def success(cls) -> "Status":
        return cls(Verdict.SUCCESS)

    @classmethod
    def wait(cls, message: str) -> "Status":
        return cls(Verdict.WAIT, message)

    @classmethod
    def unschedulable(cls, message: str) -> "Status":
        return cls(Verdict.UNSCHEDULABLE, message)

    @classmethod
    def unresolvable(cls, message: str) -> "Status":
        return cls(Verdict.UNRESOLVABLE, message)

    @classmethod
    def error(cls, message: str) -> "Status":
        return cls(Verdict.ERROR, message)

    @property
    def ok(self) -> bool:
        return self.verdict is Verdict.SUCCESS
