"""Names in the notation of the cases, and the names that the Job controller gives.

Next: `manifests.py`, which turns short notation into objects.
"""

import re
from collections.abc import Iterable
from typing import NamedTuple

_RANGE = re.compile(r"(.*)\[(\d+)\.\.(\d+)\](.*)")
_LETTERS = "456789bcdf"  # how the Job controller spells the digits 0 to 9


def spread(name: str) -> list[str]:
    """Spell out a range: `g-[0..2]` gives g-0, g-1, g-2; any other name gives itself."""
    found = _RANGE.fullmatch(name)
    if found is None:
        return [name]
    before, first, last, after = found.groups()
    return [f"{before}{number}{after}" for number in range(int(first), int(last) + 1)]


def spread_all(names: str | Iterable[str]) -> list[str]:
    """The same for one name or a list of them."""
    return [name for each in ([names] if isinstance(names, str) else names) for name in spread(each)]


class JobNames(NamedTuple):
    """What the Job controller calls the objects it makes for a Job."""

    workload: str
    template: str
    group: str


def job_names(job: str, uid: str, *, workload: str | None = None, template: str | None = None) -> JobNames:
    """Names of the objects of this Job; `workload` and `template` where they are not its own."""
    workload = workload or f"{job}-{hash_suffix('(types.UID)' + uid)}"
    template = template or f"{job}-pgt-0"
    return JobNames(workload, template, f"{workload}-{template}-{hash_suffix(workload + template)}")


def hash_suffix(text: str) -> str:
    """FNV-1a of the text in 32 bits, its decimal digits spelled in `_LETTERS`."""
    value = 0x811C9DC5
    for byte in text.encode():
        value = (value ^ byte) * 0x01000193 & 0xFFFFFFFF
    return "".join(_LETTERS[int(digit)] for digit in str(value))
