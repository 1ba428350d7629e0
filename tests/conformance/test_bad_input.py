"""Bad input at every door of `muster up`: one clear error, and nothing acknowledged is lost."""

import http.client
import json
import socket
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import pytest
from tests.conformance.cluster_process import MUSTER, ClusterProcess, run

Object = dict[str, Any]
JSON = "application/json"
YAML = "application/yaml"
MERGE = "application/merge-patch+json"
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
PODS = "/api/v1/namespaces/default/pods"
GROUPS = "/apis/scheduling.k8s.io/v1beta1/namespaces/default/podgroups"
MIB = 1024 * 1024


class Answer(NamedTuple):
    """Status code and the object that came with it."""

    code: int
    object: Object


class Client:
    """Sends bytes as they are, sensible or not."""

    def __init__(self, cluster: ClusterProcess) -> None:
        config = json.loads(cluster.kubeconfig.read_text())
        self._address = urlsplit(config["clusters"][0]["cluster"]["server"])
        self._token = config["users"][0]["user"]["token"]
        self._tls = ssl.create_default_context()
        self._tls.check_hostname, self._tls.verify_mode = False, ssl.CERT_NONE

    def send(self, method: str, path: str, body: bytes | Object | None = None, content: str = JSON) -> Answer:
        data = json.dumps(body).encode() if isinstance(body, dict) else body
        connection = http.client.HTTPSConnection(
            self._address.hostname or "", self._address.port, timeout=60, context=self._tls
        )
        headers = {"Authorization": f"Bearer {self._token}", "Content-Type": content}
        try:
            connection.request(method, path, data, headers)
            response = connection.getresponse()
            raw = response.read()
        finally:
            connection.close()
        return Answer(response.status, json.loads(raw))


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ClusterProcess]:
    with ClusterProcess(tmp_path_factory.mktemp("bad-input"), "--nodes", "2") as running:
        yield running
        stopped = running.stop()
        assert (stopped.code, stopped.err) == (0, ""), "it should have lived, and said nothing on stderr"


@pytest.fixture
def client(cluster: ClusterProcess) -> Iterator[Client]:
    """A client; after each test the cluster must still keep what it acknowledges."""
    speaks = Client(cluster)
    yield speaks
    assert cluster.is_alive
    kept = speaks.send("PUT", f"{CONFIG_MAPS}/kept", config_map("kept"))
    if kept.code == 404:
        kept = speaks.send("POST", CONFIG_MAPS, config_map("kept"))
    assert kept.code in (200, 201), kept
    assert speaks.send("GET", f"{CONFIG_MAPS}/kept").object["data"] == {"a": "b"}


def config_map(name: str, data: Object | None = None) -> Object:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data or {"a": "b"}}


def pod(name: str, request: Any = "1", **metadata: Any) -> Object:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": request}}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, **metadata},
        "spec": {"containers": [container], "schedulerName": "muster", "terminationGracePeriodSeconds": 0},
    }


# ── bodies ───────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("body", "content", "code"),
    [
        pytest.param(b"{", JSON, 400, id="broken-json"),
        pytest.param(b"", JSON, 400, id="empty"),
        pytest.param(b"[]", JSON, 400, id="a-list"),
        pytest.param(b"null", JSON, 422, id="null"),
        pytest.param(b"a: [", YAML, 400, id="broken-yaml"),
        pytest.param(b"\xff\xfe", JSON, 400, id="no-text"),
        pytest.param(b"[" * 100_000, JSON, 400, id="nested-beyond-reason"),
        pytest.param(b"{}", "text/plain", 415, id="another-content-type"),
        pytest.param(b"k8s\0garbage", "application/vnd.kubernetes.protobuf", 400, id="broken-protobuf"),
    ],
)
def test_a_body_that_is_no_object_gets_a_status(client: Client, body: bytes, content: str, code: int) -> None:
    answer = client.send("POST", CONFIG_MAPS, body, content)
    assert (answer.code, answer.object["kind"], answer.object["status"]) == (code, "Status", "Failure")
    assert answer.object["message"]


def test_a_body_beyond_one_mebibyte_is_refused_by_the_kind(client: Client) -> None:
    answer = client.send("POST", CONFIG_MAPS, config_map("big", {"a": "x" * (MIB + 1)}))
    assert (answer.code, answer.object["reason"]) == (422, "Invalid")
    assert "Too long: may not be more than 1048576 bytes" in answer.object["message"]


def test_a_body_at_the_limit_of_the_kind_is_kept_whole(client: Client) -> None:
    text = "x" * MIB
    assert client.send("POST", CONFIG_MAPS, config_map("large", {"a": text})).code == 201
    assert client.send("GET", f"{CONFIG_MAPS}/large").object["data"]["a"] == text


def test_a_body_of_four_mebibytes_is_too_large(client: Client) -> None:
    answer = client.send("POST", CONFIG_MAPS, config_map("huge", {"a": "x" * (4 * MIB)}))
    assert (answer.code, answer.object["reason"]) == (413, "RequestEntityTooLarge")


@pytest.mark.parametrize(
    "patch", [b"{", b"[]", b'"text"', b"[{}]"], ids=["broken", "list", "text", "empty-step"]
)
@pytest.mark.parametrize("kind", ["merge", "json", "strategic-merge"])
def test_a_patch_that_is_none_gets_a_status(client: Client, patch: bytes, kind: str) -> None:
    client.send("POST", CONFIG_MAPS, config_map("patched"))
    answer = client.send("PATCH", f"{CONFIG_MAPS}/patched", patch, f"application/{kind}-patch+json")
    if kind == "json" and patch == b"[]":
        assert answer.code == 200  # no steps: nothing to do
    else:
        assert answer.code in (400, 422), answer
        assert answer.object["status"] == "Failure"
    assert client.send("GET", f"{CONFIG_MAPS}/patched").object["data"] == {"a": "b"}


# ── values ───────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("quantity", ["", "many", "1e", "--1", "1 Gi", "0x10", "NaN", "1ki", [], {}, True])
def test_what_is_no_quantity_is_refused(client: Client, quantity: Any) -> None:
    answer = client.send("POST", PODS, pod("absurd", quantity))
    assert answer.code in (400, 422), answer
    assert answer.object["status"] == "Failure"


@pytest.mark.parametrize(
    "quantity",
    ["9223372036854775807", "9223372036854775808", "1e400", "99999999999999999999999E"],
    ids=["largest", "one-more", "exponent", "suffix"],
)
def test_an_absurd_amount_saturates_and_fits_nowhere(
    client: Client, cluster: ClusterProcess, quantity: str
) -> None:
    name = f"vast-{len(quantity)}"
    assert client.send("POST", PODS, pod(name, quantity)).code == 201
    wait = (
        "wait",
        "--for=jsonpath={.status.conditions[0].reason}=Unschedulable",
        f"pod/{name}",
        "--timeout=20s",
    )
    assert cluster.kubectl(*wait).code == 0
    found = client.send("GET", f"{PODS}/{name}").object
    assert "nodeName" not in found["spec"]
    assert client.send("DELETE", f"{PODS}/{name}").code == 200


def test_a_list_of_ten_thousand_owners_is_answered(client: Client) -> None:
    owners = [
        {"apiVersion": "v1", "kind": "ConfigMap", "name": f"c{number}", "uid": f"u{number}"}
        for number in range(10_000)
    ]
    answer = client.send("POST", PODS, pod("owned", ownerReferences=owners))
    assert answer.code in (201, 413, 422)


def test_ten_thousand_containers_are_answered(client: Client) -> None:
    many = pod("crowd")
    many["spec"]["containers"] = [{"name": f"c{number}", "image": "i"} for number in range(10_000)]
    assert client.send("POST", PODS, many).code == 201
    assert client.send("DELETE", f"{PODS}/crowd").code == 200


def test_ten_thousand_labels_of_a_group_are_answered(client: Client) -> None:
    labels = {f"l{number}": "v" for number in range(10_000)}
    group = {"metadata": {"name": "labelled", "labels": labels}, "spec": {"schedulingPolicy": {"basic": {}}}}
    assert client.send("POST", GROUPS, group).code == 201
    assert len(client.send("GET", f"{GROUPS}/labelled").object["metadata"]["labels"]) == 10_000


def test_owners_in_a_circle_end(client: Client, cluster: ClusterProcess) -> None:
    first = client.send("POST", CONFIG_MAPS, config_map("circle-a")).object
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "circle-a", "uid": first["metadata"]["uid"]}
    second = config_map("circle-b")
    second["metadata"]["ownerReferences"] = [owner]
    second = client.send("POST", CONFIG_MAPS, second).object
    back = owner | {"name": "circle-b", "uid": second["metadata"]["uid"]}
    closed = client.send("PATCH", f"{CONFIG_MAPS}/circle-a", {"metadata": {"ownerReferences": [back]}}, MERGE)
    assert closed.code == 200
    options = {"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Foreground"}
    assert client.send("DELETE", f"{CONFIG_MAPS}/circle-b", options).code == 200
    for name in ("circle-a", "circle-b"):
        gone = cluster.kubectl("wait", "--for=delete", f"configmap/{name}", "--timeout=20s")
        assert gone.code == 0, gone.err


# ── requests ─────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("method", "path", "code"),
    [
        pytest.param("GET", "/api/v1/nopes", 404, id="unknown-kind"),
        pytest.param("PUT", PODS, 405, id="verb-that-a-list-has-not"),
        pytest.param("GET", f"{PODS}?limit=many", 400, id="limit-that-is-no-number"),
        pytest.param("GET", f"{PODS}?labelSelector=%2C%2C", 400, id="broken-label-selector"),
        pytest.param("GET", f"{PODS}?fieldSelector=spec.nope%3Da", 400, id="unknown-field-selector"),
        pytest.param("GET", f"{PODS}?continue=zzz", 400, id="broken-continue-token"),
        pytest.param("GET", f"{PODS}?watch=1&resourceVersion=old", 500, id="watch-from-no-version"),
        pytest.param("POST", f"{PODS}?dryRun=Some", 422, id="unknown-dry-run"),
    ],
)
def test_a_request_that_makes_no_sense_gets_a_status(
    client: Client, method: str, path: str, code: int
) -> None:
    answer = client.send(method, path, pod("senseless") if method in ("POST", "PUT") else None)
    assert (answer.code, answer.object["kind"]) == (code, "Status"), answer


def test_noise_on_the_port_harms_nobody(client: Client, cluster: ClusterProcess) -> None:
    address = urlsplit(cluster.ready["server"])
    for noise in (b"GET / HTTP/1.1\r\n\r\n", b"\x16\x03\x01" + b"\xff" * 300, b""):
        with socket.create_connection((address.hostname, address.port), timeout=10) as connection:
            connection.sendall(noise)


# ── the command's own doors ──────────────────────────────────────────────────────────────────────


def start(folder: Path, *words: str) -> tuple[int, str]:
    """Run `muster up` where it must refuse to start."""
    ran = run([*MUSTER, "up", "--kubeconfig-out", str(folder / "kubeconfig"), *words])
    assert ran.out == ""
    assert not (folder / "kubeconfig").exists()
    return ran.code, ran.err


def test_a_port_in_use_is_told(cluster: ClusterProcess, tmp_path: Path) -> None:
    port = urlsplit(cluster.ready["server"]).port
    code, said = start(tmp_path, "--port", str(port))
    assert code == 2
    assert said == (
        f"muster: --port {port}: 127.0.0.1:{port} is in use\n"
        "hint: choose another port, or --port 0 for a free one\n"
    )


def test_an_address_that_is_not_ours_is_told(tmp_path: Path) -> None:
    code, said = start(tmp_path, "--listen", "203.0.113.1")
    assert code == 2
    assert said.startswith("muster: --listen 203.0.113.1: ")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        pytest.param("a: [", "nodes.yaml: line 2, column 1: ", id="broken-yaml"),
        pytest.param(
            "apiVersion: v1\nkind: Node\nmetadata: {name: a}\nstatus: {capacity: {cpus: 1}}\n",
            "$.status.capacity.cpus: no such resource: 'cpus'\nhint: did you mean 'cpu'?",
            id="typo",
        ),
        pytest.param(
            "apiVersion: v1\nkind: Node\nmetadata: {name: A_B}\n",
            "nodes.yaml: node 'A_B': Node \"A_B\" is invalid: metadata.name: Invalid value",
            id="name-that-the-api-refuses",
        ),
    ],
)
def test_a_node_file_with_a_mistake_is_told(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "nodes.yaml").write_text(text)
    code, err = start(tmp_path, "--nodes", str(tmp_path / "nodes.yaml"))
    assert code == 2
    assert said in err
    assert err.count("\n") <= 2


def test_a_bad_shape_is_told(tmp_path: Path) -> None:
    said = (
        "muster: --node-shape: cpu: not a quantity: 'lots'\n"
        "hint: a number with an optional suffix: 8, 500m, 64Gi\n"
    )
    assert start(tmp_path, "--node-shape", "cpu=lots") == (2, said)


@pytest.mark.parametrize(
    ("kubeconfig", "said"),
    [
        pytest.param("{", "kubeconfig", id="broken"),
        pytest.param('{"current-context": "nobody"}', "kubeconfig", id="no-such-context"),
    ],
)
def test_a_kubeconfig_that_lies_is_told(tmp_path: Path, kubeconfig: str, said: str) -> None:
    file = tmp_path / "kubeconfig"
    file.write_text(kubeconfig)
    ran = run([*MUSTER, "explain", "default/a", "--kubeconfig", str(file)])
    assert ran.code == 2
    assert said in ran.err
    assert "Traceback" not in ran.err


def test_a_kubeconfig_that_leads_nowhere_is_told(cluster: ClusterProcess, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    config = json.loads(cluster.kubeconfig.read_text())
    config["clusters"][0]["cluster"]["server"] = f"https://127.0.0.1:{port}"
    (tmp_path / "kubeconfig").write_text(json.dumps(config))
    ran = run([*MUSTER, "explain", "default/a", "--kubeconfig", str(tmp_path / "kubeconfig")])
    assert ran.code == 1
    assert "connection refused" in ran.err
    assert ran.err.count("\n") == 1


def test_stopping_by_signal_is_clean(tmp_path: Path) -> None:
    with ClusterProcess(tmp_path, "--nodes", "1") as running:
        watch = running.start_kubectl("get", "pods", "--watch-only")
        running.kubectl("get", "nodes")
        stopped = running.stop()
        watch.kill()
        watch.communicate()
    assert (stopped.code, stopped.out, stopped.err) == (0, "", "")
