"""The account of `deploy/muster.yaml` on a control plane: a way in for `muster run` that may do no more.

`as_deployed(kubeconfig)` makes the account with its rights and writes a kubeconfig with a token of it beside
the admin's.
"""

import json
import time
from pathlib import Path

import yaml
from tests.conformance.https import HttpsTransport
from tests.conformance.server import Api
from tests.controlplane.start import StartError

MANIFEST = Path(__file__).parents[2] / "deploy" / "muster.yaml"
SYSTEM = "namespaces/kube-system"
RIGHTS = "/apis/rbac.authorization.k8s.io/v1"
ACCOUNTS = f"/api/v1/{SYSTEM}/serviceaccounts"
PATHS = {
    "ServiceAccount": ACCOUNTS,
    "ClusterRole": f"{RIGHTS}/clusterroles",
    "ClusterRoleBinding": f"{RIGHTS}/clusterrolebindings",
    "Role": f"{RIGHTS}/{SYSTEM}/roles",
    "RoleBinding": f"{RIGHTS}/{SYSTEM}/rolebindings",
}
TOKEN_S = 24 * 3600
PATIENCE_S = 30.0


def as_deployed(kubeconfig: Path) -> Path:
    """The kubeconfig of the account; `kubeconfig` is the admin's.  Raises StartError, RequestRefused."""
    api = Api(HttpsTransport(kubeconfig))
    end_s = time.monotonic() + PATIENCE_S
    while not api.serves(f"/api/v1/{SYSTEM}"):
        if time.monotonic() > end_s:
            raise StartError(f"no namespace kube-system within {PATIENCE_S:.0f} s")
        time.sleep(0.2)
    for manifest in yaml.safe_load_all(MANIFEST.read_text(encoding="utf-8")):
        if manifest["kind"] in PATHS:
            api.must("POST", PATHS[manifest["kind"]], manifest)
    asked = {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenRequest",
        "spec": {"expirationSeconds": TOKEN_S},
    }
    token = api.must("POST", f"{ACCOUNTS}/muster/token", asked)["status"]["token"]
    config = json.loads(kubeconfig.read_text(encoding="utf-8"))
    config["users"][0]["user"] = {"token": token}
    found = kubeconfig.with_name("muster.kubeconfig")
    found.write_text(json.dumps(config), encoding="utf-8")
    found.chmod(0o600)
    return found
