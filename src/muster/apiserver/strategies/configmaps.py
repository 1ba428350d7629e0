"""ConfigMap: text and bytes under keys."""

from typing import Any

from muster.apiserver.kinds import Cause, Cluster, Object
from muster.apiserver.strategies.base import BaseStrategy
from muster.apiserver.strategies.fields import forbidden, invalid, invalid_each, mapping, too_long
from muster.apiserver.strategies.names import config_key
from muster.apiserver.strategies.printing import Column, age, column

BYTES_MOST = 1024 * 1024


class ConfigMapStrategy(BaseStrategy):
    """At most one MiB, and for ever once immutable."""

    def validate_object(self, obj: Object, cluster: Cluster) -> list[Cause]:
        data, binary = mapping(obj, "data"), mapping(obj, "binaryData")
        found: list[Cause] = []
        for key in data:
            where = f"data[{key}]"
            found += invalid_each(where, key, config_key(key))
            if key in binary:
                found.append(invalid(where, key, "duplicate of key present in binaryData"))
        for key in binary:
            found += invalid_each(f"binaryData[{key}]", key, config_key(key))
        size = sum(len(value.encode()) for value in data.values())
        size += sum(len(value or "") * 3 // 4 for value in binary.values())
        if size > BYTES_MOST:
            found.append(too_long("[]", BYTES_MOST))
        return found

    def validate_change(self, obj: Object, old: Object, cluster: Cluster) -> list[Cause]:
        found: list[Cause] = []
        if old.get("immutable"):
            detail = "field is immutable when `immutable` is set"
            if not obj.get("immutable"):
                found.append(forbidden("immutable", detail))
            found += [
                forbidden(key, detail)
                for key in ("data", "binaryData")
                if mapping(obj, key) != mapping(old, key)
            ]
        return found + self.validate_object(obj, cluster)

    def columns(self) -> tuple[Column, ...]:
        return (column("Name"), column("Data"), column("Age"))

    def cells(self, obj: Object, cluster: Cluster) -> list[Any]:
        count = len(mapping(obj, "data")) + len(mapping(obj, "binaryData"))
        return [obj["metadata"]["name"], count, age(obj, cluster.now_s)]
