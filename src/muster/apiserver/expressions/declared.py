"""What expressions about devices may call and name: the functions, types and fields of kube-apiserver 1.37.

One line a signature, as `argument.name(arguments) -> result`; capitals are parameters.  Whether a function
can be evaluated here is another matter (`placement/device_selectors.py`).
Source: k8s.io/apiserver cel/library, k8s.io/dynamic-resource-allocation cel, and cel-go's standard library.
"""

from functools import cache
from typing import NamedTuple

from muster.apiserver.expressions.types import ANY, BOOL, DYN, STRING, Type, map_of, read_type

QUANTITY, SEMVER = Type("kubernetes.Quantity"), Type("kubernetes.Semver")
DEVICE = Type("kubernetes.DRADevice")
DEVICE_FIELDS = {
    "driver": STRING,
    "attributes": map_of(STRING, map_of(STRING, ANY)),  # what an attribute is only the device tells
    "capacity": map_of(STRING, map_of(STRING, QUANTITY)),
    "allowMultipleAllocations": BOOL,
}
PLAIN_VALUES = (BOOL, Type("int"), STRING, ANY, DYN, SEMVER)  # what a derived attribute may be
SORT = "@sortByAssociatedKeys"  # what sortBy stands for
# Of several that fit an open type the first is taken: the order is stock's, here and in the tables.
_LISTED = ["int", "uint", "double", "bool", "duration", "timestamp", "string", "bytes"]
_COMPARED = [
    "bool,bool",
    "int,int",
    "int,double",
    "int,uint",
    "uint,uint",
    "uint,double",
    "uint,int",
    "double,double",
    "double,int",
    "double,uint",
    "string,string",
    "bytes,bytes",
    "timestamp,timestamp",
    "duration,duration",
]
_CONVERSIONS = {
    "bool": "bool string",
    "bytes": "bytes string",
    "double": "double int string uint",
    "duration": "duration string",
    "int": "int double duration string timestamp uint",
    "string": "string bool bytes double duration int timestamp uint net.IP net.CIDR",
    "timestamp": "timestamp int string",
    "uint": "uint double int string",
}
_MOMENTS = ["getFullYear", "getMonth", "getDayOfYear", "getDayOfMonth", "getDate", "getDayOfWeek"]
_CLOCKS = ["getHours", "getMinutes", "getSeconds", "getMilliseconds"]
_FORMATS = [
    "dns1123Label",
    "dns1123Subdomain",
    "dns1035Label",
    "dns1123LabelPrefix",
    "dns1123SubdomainPrefix",
    "dns1035LabelPrefix",
    "qualifiedName",
    "labelValue",
    "uri",
    "uuid",
    "byte",
    "date",
    "datetime",
]
_LANGUAGE = """
!_(bool) -> bool
-_(double) -> double
-_(int) -> int
_==_(A, A) -> bool
_!=_(A, A) -> bool
_?_:_(bool, A, A) -> A
_[_](list(A), int) -> A
_[_](map(A, B), A) -> B
_[_](optional_type(list(A)), int) -> optional_type(A)
_[_](optional_type(map(A, B)), A) -> optional_type(B)
_[?_](list(A), int) -> optional_type(A)
_[?_](optional_type(list(A)), int) -> optional_type(A)
_[?_](map(A, B), A) -> optional_type(B)
_[?_](optional_type(map(A, B)), A) -> optional_type(B)
@in(A, list(A)) -> bool
@in(A, map(A, B)) -> bool
_+_(bytes, bytes) -> bytes
_+_(double, double) -> double
_+_(duration, duration) -> duration
_+_(duration, timestamp) -> timestamp
_+_(timestamp, duration) -> timestamp
_+_(int, int) -> int
_+_(list(A), list(A)) -> list(A)
_+_(string, string) -> string
_+_(uint, uint) -> uint
_-_(double, double) -> double
_-_(duration, duration) -> duration
_-_(int, int) -> int
_-_(timestamp, duration) -> timestamp
_-_(timestamp, timestamp) -> duration
_-_(uint, uint) -> uint
_*_(double, double) -> double
_*_(int, int) -> int
_*_(uint, uint) -> uint
_/_(double, double) -> double
_/_(int, int) -> int
_/_(uint, uint) -> uint
_%_(int, int) -> int
_%_(uint, uint) -> uint
size(bytes) -> int
size(list(A)) -> int
size(map(A, B)) -> int
size(string) -> int
bytes.size() -> int
list(A).size() -> int
map(A, B).size() -> int
string.size() -> int
type(A) -> type(A)
dyn(A) -> dyn
matches(string, string) -> bool
string.contains(string) -> bool
string.endsWith(string) -> bool
string.startsWith(string) -> bool
string.matches(string) -> bool
optional.of(A) -> optional_type(A)
optional.ofNonZeroValue(A) -> optional_type(A)
optional.none() -> optional_type(A)
optional.unwrap(list(optional_type(A))) -> list(A)
optional_type(A).value() -> A
optional_type(A).hasValue() -> bool
optional_type(A).or(optional_type(A)) -> optional_type(A)
optional_type(A).orValue(A) -> A
list(optional_type(A)).unwrapOpt() -> list(A)
list(A).first() -> optional_type(A)
list(A).last() -> optional_type(A)
"""
_TEXTS_AND_LISTS = """
list(A).indexOf(A) -> int
list(A).lastIndexOf(A) -> int
string.charAt(int) -> string
string.indexOf(string) -> int
string.indexOf(string, int) -> int
string.lastIndexOf(string) -> int
string.lastIndexOf(string, int) -> int
string.lowerAscii() -> string
string.upperAscii() -> string
string.replace(string, string) -> string
string.replace(string, string, int) -> string
string.split(string) -> list(string)
string.split(string, int) -> list(string)
string.substring(int) -> string
string.substring(int, int) -> string
string.trim() -> string
string.format(list(dyn)) -> string
strings.quote(string) -> string
list(string).join() -> string
list(string).join(string) -> string
string.find(string) -> string
string.findAll(string) -> list(string)
string.findAll(string, int) -> list(string)
list(A).slice(int, int) -> list(A)
list(list(A)).flatten() -> list(A)
list(dyn).flatten(int) -> list(dyn)
list(A).reverse() -> list(A)
list(A).distinct() -> list(A)
lists.range(int) -> list(int)
sets.contains(list(A), list(A)) -> bool
sets.equivalent(list(A), list(A)) -> bool
sets.intersects(list(A), list(A)) -> bool
"""
_KUBERNETES = """
quantity(string) -> kubernetes.Quantity
isQuantity(string) -> bool
kubernetes.Quantity.isGreaterThan(kubernetes.Quantity) -> bool
kubernetes.Quantity.isLessThan(kubernetes.Quantity) -> bool
kubernetes.Quantity.compareTo(kubernetes.Quantity) -> int
kubernetes.Quantity.asApproximateFloat() -> double
kubernetes.Quantity.asInteger() -> int
kubernetes.Quantity.isInteger() -> bool
kubernetes.Quantity.add(kubernetes.Quantity) -> kubernetes.Quantity
kubernetes.Quantity.add(int) -> kubernetes.Quantity
kubernetes.Quantity.sub(kubernetes.Quantity) -> kubernetes.Quantity
kubernetes.Quantity.sub(int) -> kubernetes.Quantity
sign(kubernetes.Quantity) -> int
semver(string) -> kubernetes.Semver
semver(string, bool) -> kubernetes.Semver
isSemver(string) -> bool
isSemver(string, bool) -> bool
kubernetes.Semver.isGreaterThan(kubernetes.Semver) -> bool
kubernetes.Semver.isLessThan(kubernetes.Semver) -> bool
kubernetes.Semver.compareTo(kubernetes.Semver) -> int
kubernetes.Semver.major() -> int
kubernetes.Semver.minor() -> int
kubernetes.Semver.patch() -> int
url(string) -> kubernetes.URL
isURL(string) -> bool
kubernetes.URL.getScheme() -> string
kubernetes.URL.getHost() -> string
kubernetes.URL.getHostname() -> string
kubernetes.URL.getPort() -> string
kubernetes.URL.getEscapedPath() -> string
kubernetes.URL.getQuery() -> map(string, list(string))
ip(string) -> net.IP
isIP(string) -> bool
ip.isCanonical(string) -> bool
net.IP.family() -> int
net.IP.isUnspecified() -> bool
net.IP.isLoopback() -> bool
net.IP.isLinkLocalMulticast() -> bool
net.IP.isLinkLocalUnicast() -> bool
net.IP.isGlobalUnicast() -> bool
cidr(string) -> net.CIDR
isCIDR(string) -> bool
net.CIDR.containsIP(string) -> bool
net.CIDR.containsIP(net.IP) -> bool
net.CIDR.containsCIDR(string) -> bool
net.CIDR.containsCIDR(net.CIDR) -> bool
net.CIDR.ip() -> net.IP
net.CIDR.prefixLength() -> int
net.CIDR.masked() -> net.CIDR
format.named(string) -> optional_type(kubernetes.NamedFormat)
kubernetes.NamedFormat.validate(string) -> optional_type(list(string))
"""
_DECISIONS = """
kubernetes.authorization.Authorizer.path(string) -> kubernetes.authorization.PathCheck
kubernetes.authorization.Authorizer.group(string) -> kubernetes.authorization.GroupCheck
kubernetes.authorization.Authorizer.serviceAccount(string, string) -> kubernetes.authorization.Authorizer
kubernetes.authorization.GroupCheck.resource(string) -> kubernetes.authorization.ResourceCheck
kubernetes.authorization.ResourceCheck.subresource(string) -> kubernetes.authorization.ResourceCheck
kubernetes.authorization.ResourceCheck.namespace(string) -> kubernetes.authorization.ResourceCheck
kubernetes.authorization.ResourceCheck.name(string) -> kubernetes.authorization.ResourceCheck
kubernetes.authorization.ResourceCheck.fieldSelector(string) -> kubernetes.authorization.ResourceCheck
kubernetes.authorization.ResourceCheck.labelSelector(string) -> kubernetes.authorization.ResourceCheck
kubernetes.authorization.PathCheck.check(string) -> kubernetes.authorization.Decision
kubernetes.authorization.ResourceCheck.check(string) -> kubernetes.authorization.Decision
kubernetes.authorization.Decision.errored() -> bool
kubernetes.authorization.Decision.error() -> string
kubernetes.authorization.Decision.allowed() -> bool
kubernetes.authorization.Decision.reason() -> string
"""
TYPES = frozenset(
    [
        "bool",
        "int",
        "uint",
        "double",
        "string",
        "bytes",
        "list",
        "map",
        "type",
        "null_type",
        "dyn",
        "optional_type",
    ]
)


class Signature(NamedTuple):
    """One way to call a function; a method takes what stands before the dot first."""

    is_method: bool
    arguments: tuple[Type, ...]
    result: Type


@cache
def functions() -> dict[str, list[Signature]]:
    """Every function by its name, with all the ways to call it."""
    found: dict[str, list[Signature]] = {}
    for line in _written():
        name, signature = _read(line)
        found.setdefault(name, []).append(signature)
    return found


def _written() -> list[str]:
    lines = [
        line
        for text in (_LANGUAGE, _TEXTS_AND_LISTS, _KUBERNETES, _DECISIONS)
        for line in text.strip().splitlines()
    ]
    for sign in ("<", "<=", ">", ">="):
        lines += [f"_{sign}_({pair}) -> bool" for pair in _COMPARED]
    lines += [f"{to}({kind}) -> {to}" for to, kinds in _CONVERSIONS.items() for kind in kinds.split()]
    for moment in (*_MOMENTS, *_CLOCKS):
        lines += [f"timestamp.{moment}() -> int", f"timestamp.{moment}(string) -> int"]
    lines += [f"duration.{clock}() -> int" for clock in _CLOCKS]
    lines += [f"format.{name}() -> kubernetes.NamedFormat" for name in _FORMATS]
    for kind in _LISTED:
        lines += [f"list({kind}).isSorted() -> bool", f"list({kind}).sort() -> list({kind})"]
        lines += [f"list({kind}).{name}() -> {kind}" for name in ("min", "max")]
        lines.append(f"list(A).{SORT}(list({kind})) -> list(A)")
    return lines + [f"list({kind}).sum() -> {kind}" for kind in ("int", "uint", "double", "duration")]


# What stands before a dot is a namespace in these, and a value elsewhere.
_NAMESPACES = ("optional", "strings", "lists", "sets", "format", "ip")


def _read(line: str) -> tuple[str, Signature]:
    call, _, result = line.rpartition(" -> ")
    start = _opening(call)
    named, arguments = call[:start], call[start + 1 : -1]
    target, _, name = named.rpartition(".")
    types = read_type(f"of({arguments})").holds
    if target in _NAMESPACES or not target:
        return named, Signature(False, types, read_type(result))
    return name, Signature(True, (read_type(target), *types), read_type(result))


def _opening(call: str) -> int:
    """Where the bracket opens that the last one closes."""
    depth = 0
    for index in range(len(call) - 1, -1, -1):
        depth += (call[index] == ")") - (call[index] == "(")
        if depth == 0:
            return index
    raise ValueError(call)
