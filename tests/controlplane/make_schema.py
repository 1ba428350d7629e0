"""Write src/muster/apiserver/schema/*.json: the fields of every served API type, from Kubernetes' Go types.

    tests/controlplane/make_schema.py

Reads the Go modules k8s.io/api and k8s.io/apimachinery of the version that go.mod beside this file names
(`go mod download` fetches them).  The Go types say what the OpenAPI document leaves out: which fields are
always printed, which are pointers, field numbers.

One file a package, `<group>.<version>.json`: {"types": {TYPE: {FIELD: "NUMBER GO_TYPE FLAGS…"}}, "names":
{NAMED_TYPE: GO_TYPE}}.  Go types are written as in Go, types of another package as `package/Type`.  Flags:
`omit` (omitempty), `zero` (omitzero); `merge`, `merge=KEY`, `retain`, `replace` (strategic merge);
`list=KIND`, `keys=A,B` (server-side apply); `need` (required in OpenAPI).  Embedded types are flattened;
NUMBER is then a path (`2.1`).
"""

import json
import pathlib
import re
import subprocess

PACKAGES = {
    "core.v1": ("api", "core/v1"),
    "events.v1": ("api", "events/v1"),
    "batch.v1": ("api", "batch/v1"),
    "scheduling.v1": ("api", "scheduling/v1"),
    "scheduling.v1beta1": ("api", "scheduling/v1beta1"),
    "scheduling.v1alpha3": ("api", "scheduling/v1alpha3"),
    "policy.v1": ("api", "policy/v1"),
    "node.v1": ("api", "node/v1"),
    "storage.v1": ("api", "storage/v1"),
    "resource.v1": ("api", "resource/v1"),
    "coordination.v1": ("api", "coordination/v1"),
    "authentication.v1": ("api", "authentication/v1"),
    "authorization.v1": ("api", "authorization/v1"),
    "meta.v1": ("machinery", "pkg/apis/meta/v1"),
}
ROOTS = {
    "core.v1": [
        *("Namespace", "Node", "Pod", "Event", "ConfigMap", "Binding"),
        *("PersistentVolume", "PersistentVolumeClaim"),
    ],
    "events.v1": ["Event"],
    "batch.v1": ["Job"],
    "scheduling.v1": ["PriorityClass"],
    "scheduling.v1beta1": ["Workload", "PodGroup"],
    "scheduling.v1alpha3": ["Workload", "PodGroup", "CompositePodGroup"],
    "policy.v1": ["PodDisruptionBudget", "Eviction"],
    "node.v1": ["RuntimeClass"],
    "storage.v1": ["StorageClass", "CSINode", "CSIDriver", "CSIStorageCapacity"],
    "resource.v1": ["ResourceSlice", "DeviceClass", "ResourceClaim", "ResourceClaimTemplate"],
    "coordination.v1": ["Lease"],
    "authentication.v1": ["SelfSubjectReview"],
    "authorization.v1": ["SelfSubjectAccessReview", "SelfSubjectRulesReview"],
    "meta.v1": ["DeleteOptions", "ObjectMeta", "Status", "ListMeta"],
}
# Types with a text form of their own.
SCALARS = {
    "meta.v1/Time": "time",
    "meta.v1/MicroTime": "microtime",
    "meta.v1/FieldsV1": "object",
    "resource/Quantity": "quantity",
    "intstr/IntOrString": "intstr",
    "runtime/RawExtension": "object",
}
FIELD = re.compile(r"^\t(?:(\w+) )?([\w.*\[\]]+) `([^`]*)`", re.M)
IMPORT = re.compile(r'^\t(?:(\w+) )?"k8s.io/([^"]+)"', re.M)


class Package:
    """The types of one Go package, read from its types*.go files."""

    def __init__(self, name: str, directory: pathlib.Path) -> None:
        self.name = name
        self.structs: dict[str, list[tuple[str, str, str, str]]] = {}
        self.names: dict[str, str] = {}
        self.imports: dict[str, str] = {}
        for path in sorted(directory.glob("*.go")):
            if path.name.startswith(("zz_", "generated")) or path.name.endswith("_test.go"):
                continue
            self.read(path.read_text())

    def read(self, text: str) -> None:
        for alias, path in IMPORT.findall(text):
            last = path.split("/")[-1]
            parts = path.split("/")
            name = f"{parts[-2]}.{last}" if re.fullmatch(r"v\d\w*", last) else last
            self.imports[alias or last] = name
        for match in re.finditer(r"^type (\w+) struct \{\n(.*?)^\}", text, re.M | re.S):
            self.structs[match[1]] = list(self.fields(match[2]))
        for name, type_ in re.findall(r"^type (\w+) ([\w.*\[\]]+)(?: *//.*)?$", text, re.M):
            if type_ not in ("struct", "interface"):
                self.names[name] = self.full(type_)

    def fields(self, body: str):
        start = 0
        for match in FIELD.finditer(body):
            comment = body[start : match.start()]
            start = match.end()
            yield match[1] or "", self.full(match[2]), match[3], comment

    def full(self, type_: str) -> str:
        """`[]metav1.Time` → `[]meta.v1/Time`; types of this package keep their bare name."""
        return re.sub(r"(\w+)\.(\w+)", lambda m: f"{self.imports.get(m[1], m[1])}/{m[2]}", type_)


def flags_of(tag: str, comment: str) -> tuple[str, list[str]]:
    """The JSON name of a field and its flags."""
    name, *options = re.search(r'json:"([^"]*)"', tag)[1].split(",")
    number = re.search(r'protobuf:"\w+,(\d+)', tag)
    flags = [number[1] if number else "0"]
    flags += ["omit"] if "omitempty" in options else []
    flags += ["zero"] if "omitzero" in options else []
    strategy = re.search(r'patchStrategy:"([^"]*)"', tag)
    key = re.search(r'patchMergeKey:"([^"]*)"', tag)
    if strategy and "merge" in strategy[1].split(","):
        flags.append(f"merge={key[1]}" if key else "merge")
    flags += ["retain"] if strategy and "retainKeys" in strategy[1] else []
    kind = re.findall(r"\+listType=(\w+)", comment)
    flags += [f"list={kind[-1]}"] if kind else []
    keys = re.findall(r"\+listMapKey=(\w+)", comment)
    flags += [f"keys={','.join(keys)}"] if keys else []
    flags += ["map=atomic"] if "+mapType=atomic" in comment or "+structType=atomic" in comment else []
    if strategy and strategy[1] == "replace":
        flags.append("replace")
    required = re.search(r"\+required", comment)
    if required or (not re.search(r"\+(k8s:)?optional", comment) and "omitempty" not in options):
        flags.append("need")
    return name, flags


def qualified(type_: str, package: str, known: dict[str, Package]) -> str:
    """The type with bare names of its own package qualified, and text types named."""

    def full(match: re.Match) -> str:
        name = match[0]
        if name in ("map", "string", "bool", "int", "int32", "int64", "uint8", "byte", "float64", "any"):
            return name
        name = name if "/" in name else f"{package}/{name}"
        name = name.replace("types/UID", "string").replace("types/NodeName", "string")
        return SCALARS.get(name, name)

    return re.sub(r"[\w.]+/\w+|\w+", full, type_)


def collect(packages: dict[str, Package]) -> dict[str, dict]:
    """Every type reachable from the roots, by package."""
    out: dict[str, dict] = {name: {"names": {}, "types": {}} for name in packages}
    todo = [f"{package}/{root}" for package, roots in ROOTS.items() for root in roots]
    seen = set()
    while todo:
        full = todo.pop()
        if full in seen:
            continue
        seen.add(full)
        package, name = full.split("/")
        if package not in packages:
            raise SystemExit(f"{full}: package {package} is not known")
        source = packages[package]
        if name in source.names:
            type_ = qualified(source.names[name], package, packages)
            out[package]["names"][name] = type_
            todo += re.findall(r"[\w.]+/\w+", type_)
        elif name in source.structs:
            fields = flatten(source, name, packages)
            out[package]["types"][name] = fields
            todo += [t for field in fields.values() for t in re.findall(r"[\w.]+/\w+", field)]
        else:
            raise SystemExit(f"{full}: no such type")
    return out


def flatten(source: Package, name: str, packages: dict[str, Package]) -> dict[str, str]:
    fields: dict[str, str] = {}
    for _, type_, tag, comment in source.structs[name]:
        if 'json:"' not in tag:
            continue
        json_name, (number, *flags) = flags_of(tag, comment)
        full = qualified(type_, source.name, packages)
        if json_name == "-":
            continue
        if json_name == "":  # embedded: its fields are ours
            package, inner = full.lstrip("*").split("/")
            for key, value in flatten(packages[package], inner, packages).items():
                # On the wire it is a message of its own, at `number`; TypeMeta is not there at all.
                fields[key] = f"0 {value.split(' ', 1)[1]}" if inner == "TypeMeta" else f"{number}.{value}"
            continue
        fields[json_name] = " ".join([number, full, *flags])
    return fields


def module_directory(module: str) -> pathlib.Path:
    """Where Go keeps the source of a module."""
    command = ["go", "list", "-m", "-f", "{{.Dir}}", module]
    here = pathlib.Path(__file__).parent
    found = subprocess.run(command, cwd=here, check=True, capture_output=True, text=True).stdout.strip()
    if not found:
        raise SystemExit(f"{module} is not there; run `go mod download` in {here}")
    return pathlib.Path(found)


def main() -> None:
    base = {"api": module_directory("k8s.io/api"), "machinery": module_directory("k8s.io/apimachinery")}
    packages = {name: Package(name, base[module] / path) for name, (module, path) in PACKAGES.items()}
    target = pathlib.Path(__file__).parents[2] / "src/muster/apiserver/schema"
    for name, content in collect(packages).items():
        lines = []
        for part in ("names", "types"):
            rows = [f"  {json.dumps(k)}: {json.dumps(v)}" for k, v in sorted(content[part].items())]
            lines.append(f' "{part}": {{\n' + ",\n".join(rows) + "\n }")
        (target / f"{name}.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
