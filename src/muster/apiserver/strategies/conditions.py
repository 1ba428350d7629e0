"""metav1.Condition in a status: types unique, with status, reason and time."""

import re

from muster.apiserver.kinds import Cause, Object
from muster.apiserver.strategies.fields import (
    duplicate,
    invalid,
    invalid_each,
    not_supported,
    required,
    text,
    too_long,
)
from muster.apiserver.strategies.names import label_key

REASON = re.compile(r"[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?")
_REASON_TEXT = (
    "a condition reason must start with alphabetic character, optionally followed by a string of "
    "alphanumeric characters or '_,:', and must end with an alphanumeric character or '_' (e.g. 'my_name',  "
    "or 'MY_NAME',  or 'MyName',  or 'ReasonA,ReasonB',  or 'ReasonA:ReasonB', regex used for validation is "
    f"'{REASON.pattern}')"
)
_STATUSES = ("False", "True", "Unknown")
_REASON_BYTES, _MESSAGE_BYTES = 1024, 32768


def validate_conditions(path: str, conditions: list[Object]) -> list[Cause]:
    """The whole list."""
    found: list[Cause] = []
    seen: set[str] = set()
    for index, condition in enumerate(conditions):
        here, type_ = f"{path}[{index}]", text(condition, "type")
        if type_ in seen:
            found.append(duplicate(here, type_))
        seen.add(type_)
        found += _validate_condition(here, condition)
    return found


def _validate_condition(here: str, condition: Object) -> list[Cause]:
    type_, status = text(condition, "type"), text(condition, "status")
    reason, generation = text(condition, "reason"), condition.get("observedGeneration")
    found = (
        invalid_each(f"{here}.type", type_, label_key(type_))
        if type_
        else [required(f"{here}.type", "is required")]
    )
    if not status:
        found.append(required(f"{here}.status"))
    elif status not in _STATUSES:
        found.append(not_supported(f"{here}.status", status, _STATUSES))
    if isinstance(generation, int) and generation < 0:
        found.append(
            invalid(f"{here}.observedGeneration", generation, "must be greater than or equal to zero")
        )
    if not condition.get("lastTransitionTime"):
        found.append(required(f"{here}.lastTransitionTime"))
    if not reason:
        found.append(required(f"{here}.reason"))
    else:
        if not REASON.fullmatch(reason[: _REASON_BYTES + 1]):
            found.append(invalid(f"{here}.reason", reason, _REASON_TEXT))
        if len(reason.encode()) > _REASON_BYTES:
            found.append(too_long(f"{here}.reason", _REASON_BYTES))
    if len(text(condition, "message").encode()) > _MESSAGE_BYTES:
        found.append(too_long(f"{here}.message", _MESSAGE_BYTES))
    return found
