"""Object metadata: what the server gives a new object, and what an update never changes.

`writing.py` and `deleting.py` call these around the rules of the kind; what metadata may hold is
checked by the strategies (`strategies/metadata.py`).
"""

from datetime import UTC, datetime
from functools import lru_cache

import numpy as np

from muster.apiserver.kinds import Object

# Kubernetes' alphabet of generated names: no vowels, nothing to mistake for another.
_SUFFIX_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
_SUFFIX_LENGTH = 5
_GENERATED_LENGTH = 63
_SET_BY_SERVER = ("uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink")


@lru_cache(maxsize=64)
def _time_text(second: int) -> str:
    return datetime.fromtimestamp(second, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def time_text(now_s: float) -> str:
    """A time as metadata show it: whole seconds, UTC."""
    return _time_text(int(now_s))


def time_of(text: str) -> int:
    """The Unix second of such a text."""
    return int(datetime.fromisoformat(text).timestamp())


def make_uid(rng: np.random.Generator) -> str:
    """A random UUID (version 4)."""
    bits = bytearray(rng.bytes(16))
    bits[6] = bits[6] & 0x0F | 0x40
    bits[8] = bits[8] & 0x3F | 0x80
    text = bits.hex()
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def make_name(base: str, rng: np.random.Generator) -> str:
    """A name from a generateName: cut so that the random end fits."""
    cut = base[: _GENERATED_LENGTH - _SUFFIX_LENGTH]
    picks = rng.integers(0, len(_SUFFIX_ALPHABET), _SUFFIX_LENGTH)
    return cut + "".join(_SUFFIX_ALPHABET[pick] for pick in picks)


def fill_new(metadata: Object, namespace: str, now_s: float, rng: np.random.Generator) -> None:
    """Give a new object what only the server may give: uid, time, namespace, a generated name."""
    for name in _SET_BY_SERVER:
        metadata.pop(name, None)
    if namespace:
        metadata["namespace"] = namespace
    if not metadata.get("name") and metadata.get("generateName"):
        metadata["name"] = make_name(metadata["generateName"], rng)
    metadata["uid"] = make_uid(rng)
    metadata["creationTimestamp"] = time_text(now_s)
    metadata.pop("managedFields", None)


def keep_old(metadata: Object, old: Object) -> None:
    """Give an updated object back what an update never changes."""
    metadata.pop("managedFields", None)
    metadata.pop("selfLink", None)
    metadata.setdefault("uid", old["uid"])
    metadata["creationTimestamp"] = old["creationTimestamp"]
    if "generation" in old:
        metadata["generation"] = old["generation"]
    else:
        metadata.pop("generation", None)
    for name in ("deletionTimestamp", "deletionGracePeriodSeconds"):
        if name in old:
            metadata[name] = old[name]
    metadata["resourceVersion"] = old["resourceVersion"]
