"""What names, label keys and label values may look like, with Kubernetes' words for what is wrong.

Pure functions from a text to a list of faults; `metadata.py`, `selectors.py` and strategies use them.
"""

import re

_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = rf"{_LABEL}(\.{_LABEL})*"
_QUALIFIED = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_VALUE = f"({_QUALIFIED})?"
_FULL = {pattern: re.compile(pattern, re.ASCII) for pattern in (_LABEL, _SUBDOMAIN, _QUALIFIED, _VALUE)}

_LABEL_TEXT = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start "
    "and end with an alphanumeric character"
)
_SUBDOMAIN_TEXT = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and "
    "must start and end with an alphanumeric character"
)
_QUALIFIED_TEXT = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "
    "character"
)
_VALUE_TEXT = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and "
    "must start and end with an alphanumeric character"
)


def _regex_text(message: str, pattern: str, *examples: str) -> str:
    shown = ",  or ".join(f"'{example}'" for example in examples)
    return f"{message} (e.g. {shown}, regex used for validation is '{pattern}')"


def too_long(most: int) -> str:
    """The words for a text that is too long."""
    return f"must be no more than {most} bytes"


def _length(text: str) -> int:
    return len(text.encode("utf-8", "replace"))


def dns_label_faults(text: str) -> list[str]:
    """What is wrong with a DNS label (a namespace's name)."""
    faults = [too_long(63)] if _length(text) > 63 else []
    if not _FULL[_LABEL].fullmatch(text):
        faults.append(_regex_text(_LABEL_TEXT, _LABEL, "my-name", "123-abc"))
    return faults


def dns_subdomain_faults(text: str) -> list[str]:
    """What is wrong with a DNS subdomain (most names)."""
    faults = [too_long(253)] if _length(text) > 253 else []
    if not _FULL[_SUBDOMAIN].fullmatch(text):
        faults.append(_regex_text(_SUBDOMAIN_TEXT, _SUBDOMAIN, "example.com"))
    return faults


def path_segment_faults(text: str) -> list[str]:
    """What is wrong with a name that only has to fit into a path."""
    if text in (".", ".."):
        return [f"may not be '{text}'"]
    return [f"may not contain '{bad}'" for bad in "/%" if bad in text]


def label_key_faults(text: str) -> list[str]:
    """What is wrong with a label key (a qualified name)."""
    faults: list[str] = []
    example = "a valid label key "
    prefix, slash, name = text.rpartition("/")
    if "/" in prefix:
        whole = _regex_text(example + _QUALIFIED_TEXT, _QUALIFIED, "MyName", "my.name", "123-abc")
        return [f"{whole} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"]
    if slash:
        if not prefix:
            faults.append("prefix part must be non-empty")
        else:
            faults += [f"prefix part {fault}" for fault in dns_subdomain_faults(prefix)]
    if not name:
        faults.append("name part must be non-empty")
    elif _length(name) > 63:
        faults.append(f"name part {too_long(63)}")
    if not _FULL[_QUALIFIED].fullmatch(name):
        text_ = _regex_text(_QUALIFIED_TEXT, _QUALIFIED, "MyName", "my.name", "123-abc")
        faults.append(f"name part {text_}")
    return faults


def label_value_faults(text: str) -> list[str]:
    """What is wrong with a label value."""
    faults = [too_long(63)] if _length(text) > 63 else []
    if not _FULL[_VALUE].fullmatch(text):
        faults.append(_regex_text(_VALUE_TEXT, _VALUE, "MyValue", "my_value", "12345"))
    return faults
