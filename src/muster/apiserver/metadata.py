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
_BLOCK_BYTES = 4096
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


class Chance:
    """Uids and name endings from one generator, which is asked for many bytes at a time."""

    def __init__(self, rng: np.random.Generator) -> None:
        self._rng = rng
        self._block = b""
        self._at = 0

    def _bytes(self, count: int) -> bytes:
        if self._at + count > len(self._block):
            self._block, self._at = self._rng.bytes(_BLOCK_BYTES), 0
        self._at += count
        return self._block[self._at - count : self._at]

    def uid(self) -> str:
        """A random UUID (version 4)."""
        bits = bytearray(self._bytes(16))
        bits[6] = bits[6] & 0x0F | 0x40
        bits[8] = bits[8] & 0x3F | 0x80
        text = bits.hex()
        return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"

    def name(self, base: str) -> str:
        """A name from a generateName: cut so that the random end fits."""
        cut = base[: _GENERATED_LENGTH - _SUFFIX_LENGTH]
        picks = self._bytes(_SUFFIX_LENGTH)
        return cut + "".join(_SUFFIX_ALPHABET[pick % len(_SUFFIX_ALPHABET)] for pick in picks)


def fill_new(metadata: Object, namespace: str, now_s: float, chance: Chance) -> None:
    """Give a new object what only the server may give: uid, time, namespace, a generated name."""
    for name in _SET_BY_SERVER:
        metadata.pop(name, None)
    if namespace:
        metadata["namespace"] = namespace
    if not metadata.get("name") and metadata.get("generateName"):
        metadata["name"] = chance.name(metadata["generateName"])
    metadata["uid"] = chance.uid()
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
    if "deletionTimestamp" in old:
        metadata["deletionTimestamp"] = old["deletionTimestamp"]
    if "deletionGracePeriodSeconds" in old:
        metadata.setdefault("deletionGracePeriodSeconds", old["deletionGracePeriodSeconds"])
    metadata["resourceVersion"] = old["resourceVersion"]
