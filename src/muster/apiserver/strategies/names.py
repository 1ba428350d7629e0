"""Kubernetes' rules for names, labels and the like: a value in, what is wrong with it out."""

import re

LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
KEY_NAME = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")
LABEL_VALUE = re.compile(r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?")
CONFIG_KEY = re.compile(r"[-._a-zA-Z0-9]+")

_LABEL_TEXT = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start "
    "and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is "
    f"'{LABEL.pattern}')"
)
_SUBDOMAIN_TEXT = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must "
    "start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    f"'{SUBDOMAIN.pattern}')"
)
_KEY_CHARACTERS = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "
    "character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    f"'{KEY_NAME.pattern}')"
)
_LABEL_VALUE_TEXT = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must "
    "start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used "
    f"for validation is '{LABEL_VALUE.pattern}')"
)
_CONFIG_KEY_TEXT = (
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or "
    f"'KEY_NAME',  or 'key-name', regex used for validation is '{CONFIG_KEY.pattern}')"
)


def _size(value: str) -> int:
    return len(value.encode("utf-8", "surrogatepass"))


def dns_label(value: str, unit: str = "characters") -> list[str]:
    """RFC 1123 label of at most 63; `unit` is the word that the error has for the length."""
    found = [f"must be no more than 63 {unit}"] if _size(value) > 63 else []
    if not LABEL.fullmatch(value):
        dotted = "." in value and SUBDOMAIN.fullmatch(value)
        found.append("must not contain dots" if dotted else _LABEL_TEXT)
    return found


def dns_subdomain(value: str, unit: str = "characters") -> list[str]:
    """RFC 1123 subdomain of at most 253."""
    found = [f"must be no more than 253 {unit}"] if _size(value) > 253 else []
    if not SUBDOMAIN.fullmatch(value):
        found.append(_SUBDOMAIN_TEXT)
    return found


def short_name(value: str) -> list[str]:
    """A label as declarative validation words it."""
    return dns_label(value, "bytes")


def long_name(value: str) -> list[str]:
    """A subdomain as declarative validation words it."""
    return dns_subdomain(value, "bytes")


def path_segment(value: str) -> list[str]:
    """A name that can stand in a URL path."""
    if value in (".", ".."):
        return [f"may not be '{value}'"]
    return [f"may not contain '{character}'" for character in "/%" if character in value]


def label_key(value: str) -> list[str]:
    """A qualified name: an optional prefix and a name of at most 63."""
    parts = value.split("/")
    if len(parts) > 2:
        return [
            f"a valid label key {_KEY_CHARACTERS} with an optional DNS subdomain prefix and '/' "
            "(e.g. 'example.com/MyName')"
        ]
    found: list[str] = []
    if len(parts) == 2:
        if not parts[0]:
            found.append("prefix part must be non-empty")
        else:
            found += [f"prefix part {detail}" for detail in dns_subdomain(parts[0], "bytes")]
    name = parts[-1]
    if not name:
        found.append("name part must be non-empty")
    elif _size(name) > 63:
        found.append("name part must be no more than 63 bytes")
    if not KEY_NAME.fullmatch(name):
        found.append(f"name part {_KEY_CHARACTERS}")
    return found


def label_value(value: str) -> list[str]:
    """A label's value."""
    found = ["must be no more than 63 bytes"] if _size(value) > 63 else []
    if not LABEL_VALUE.fullmatch(value):
        found.append(_LABEL_VALUE_TEXT)
    return found


def config_key(value: str) -> list[str]:
    """A key of a ConfigMap."""
    found = ["must be no more than 253 characters"] if _size(value) > 253 else []
    if not CONFIG_KEY.fullmatch(value):
        found.append(_CONFIG_KEY_TEXT)
    if value == ".":
        found.append("must not be '.'")
    elif value == "..":
        found.append("must not be '..'")
    elif value.startswith(".."):
        found.append("must not start with '..'")
    return found


def as_prefix(value: str) -> str:
    """A generateName as it is validated: a trailing dash stands for more to come."""
    return value[:-1] + "a" if len(value) > 1 and value.endswith("-") else value
