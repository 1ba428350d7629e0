"""Whether a CEL expression about devices compiles, as kube-apiserver 1.37 asks before it stores one.

In comes an expression, out goes the text that stock refuses it with, or None where stock takes it.  What is
nested too deep to look at, or has types that are too large, is taken: the scheduler says then what it cannot
evaluate.  What an expression may cost is not estimated.
"""

import re
from functools import lru_cache

from muster.apiserver.expressions.checker import Checker
from muster.apiserver.expressions.declared import PLAIN_VALUES
from muster.apiserver.expressions.syntax import Fault, Unreadable, read_expression
from muster.apiserver.expressions.types import ANY, BOOL, ERROR, TooHard, Type, long_name

_FAULTS_MAX = 100
_ASKED_MAX = 1_000  # characters: the library takes seconds for long texts that are all wrong
_LINE_MAX = 16384
_SYNTAX = re.compile(r"(?:^|: )ERROR: <input>:(\d+):(\d+): (Syntax error: .*)$", re.MULTILINE)
_WORD_FOR_NAME = re.compile(r"no viable alternative at input '.(true|false|null)'")
_EMPTY = (
    "compilation failed: ERROR: <input>:1:0: Syntax error: mismatched input '<EOF>' expecting {'[', '{', "
    "'(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}"
)
_PLAIN = "must evaluate to a primitive scalar (string, integer, boolean, semver)"


@lru_cache(maxsize=1024)
def compile_fault(expression: str, *, is_derived: bool = False) -> str | None:
    """Why stock refuses the expression, or None; `is_derived`: it gives an attribute, not a yes or no."""
    if not expression:
        return _EMPTY
    try:
        node, faults = read_expression(expression)
        if faults:
            return _told(expression, faults)
        checker = Checker()
        found = checker.check(node)
    except Unreadable as unreadable:
        return _told(expression, _syntax_faults(expression, unreadable))
    except (RecursionError, TooHard):
        return None
    if checker.faults or checker.literal_faults:
        return _told(expression, checker.faults or checker.literal_faults)
    return _result_fault(found, is_derived=is_derived)


def _result_fault(found: Type, *, is_derived: bool) -> str | None:
    if found == ERROR:
        return None
    if is_derived:
        return None if found in PLAIN_VALUES else f"{_PLAIN}, not {long_name(found)}"
    if found in (BOOL, ANY):
        return None
    return f"must evaluate to bool or the unknown type, not {long_name(found)}"


def _syntax_faults(expression: str, unreadable: Unreadable) -> list[Fault]:
    """What the parser of the library says, whose grammar is stock's; the own words where it says nothing."""
    own = [Fault(unreadable.at, str(unreadable))]
    if len(expression) > _ASKED_MAX:
        return own
    import cel  # 0.2 s, only for those who wrote something that cannot be read

    said = ""
    try:
        cel.compile(expression)
    except ValueError as error:
        said = str(error)
    except BaseException as error:  # the library panics on some texts, with an exception of its own
        if type(error).__name__ != "PanicException":
            raise
    starts = [0, *(match.end() for match in re.finditer("\n", expression))]
    found = [
        Fault(
            starts[int(line) - 1] + int(column) - 1,
            _WORD_FOR_NAME.sub(r"mismatched input '\1' expecting IDENTIFIER", text),
        )
        for line, column, text in _SYNTAX.findall(said)
        if int(line) <= len(starts)
    ]
    return found or own


def _told(expression: str, faults: list[Fault]) -> str:
    ordered = sorted(faults[:_FAULTS_MAX], key=lambda fault: fault.at)
    texts = [_shown(expression, fault) for fault in ordered]
    if len(faults) > _FAULTS_MAX:
        texts.append(f"{len(faults) - _FAULTS_MAX} more errors were truncated")
    return "compilation failed: " + "\n".join(texts)


def _shown(expression: str, fault: Fault) -> str:
    """The error with its line, and a mark below the place."""
    start = expression.rfind("\n", 0, fault.at) + 1
    line = expression[start:].split("\n", 1)[0]
    column = fault.at - start
    text = f"ERROR: <input>:{expression.count(chr(10), 0, fault.at) + 1}:{column + 1}: {fault.text}"
    if len(line) > _LINE_MAX:
        return text
    marked = line[column : column + 1]
    dots = "".join("." if letter.isascii() else "\uff0e" for letter in line[:column])
    return f"{text}\n | {line.replace(chr(9), ' ')}\n | {dots}{'^' if marked.isascii() else chr(0xFF3E)}"
