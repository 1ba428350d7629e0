"""A server named by a kubeconfig, spoken to over one kept connection, and the real clock.

Understands a token or a client certificate, inline or as files.
"""

import http.client
import json
import ssl
import tempfile
import time
import urllib.parse
from base64 import b64decode
from pathlib import Path
from typing import Any

import yaml
from tests.conformance.server import JSON, Answer, Object

_TIMEOUT_S = 60


class RealClock:
    """Seconds as they pass."""

    def now_s(self) -> float:
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)


class HttpsTransport:
    """One connection to the API server of the current context of a kubeconfig."""

    def __init__(self, kubeconfig: Path) -> None:
        config = yaml.safe_load(kubeconfig.read_text(encoding="utf-8"))
        context = _named(config["contexts"], config["current-context"])["context"]
        cluster = _named(config["clusters"], context["cluster"])["cluster"]
        user = _named(config.get("users") or [], context["user"]).get("user") or {}
        self._address = urllib.parse.urlsplit(cluster["server"])
        self._headers = {"Accept": JSON}
        if "token" in user:
            self._headers["Authorization"] = f"Bearer {user['token']}"
        self._tls = _tls_of(cluster, user) if self._address.scheme == "https" else None
        self._connection: http.client.HTTPConnection | None = None

    def call(self, method: str, path: str, body: Object | None = None, content_type: str = JSON) -> Answer:
        """Send; a connection that broke while idle is made again once."""
        data = None if body is None else json.dumps(body).encode()
        headers = self._headers | ({"Content-Type": content_type} if data is not None else {})
        try:
            return self._exchange(method, path, data, headers)
        except (http.client.HTTPException, OSError):
            self._connection = None
            return self._exchange(method, path, data, headers)

    def _exchange(self, method: str, path: str, data: bytes | None, headers: dict[str, str]) -> Answer:
        if self._connection is None:
            self._connection = self._connect()
        self._connection.request(method, path, data, headers)
        response = self._connection.getresponse()
        raw = response.read()
        try:
            found = json.loads(raw)
        except ValueError:
            found = {"message": raw.decode(errors="replace")}
        return Answer(response.status, found)

    def _connect(self) -> http.client.HTTPConnection:
        host, port = self._address.hostname or "localhost", self._address.port
        if self._tls is None:
            return http.client.HTTPConnection(host, port, timeout=_TIMEOUT_S)
        return http.client.HTTPSConnection(host, port, timeout=_TIMEOUT_S, context=self._tls)


def _tls_of(cluster: Object, user: Object) -> ssl.SSLContext:
    context = ssl.create_default_context()
    if cluster.get("insecure-skip-tls-verify"):
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    elif authority := _bytes_of(cluster, "certificate-authority"):
        context.load_verify_locations(cadata=authority.decode())
    certificate, key = _bytes_of(user, "client-certificate"), _bytes_of(user, "client-key")
    if certificate and key:
        with tempfile.NamedTemporaryFile() as pair:  # the ssl module reads keys from files only
            pair.write(certificate + b"\n" + key)
            pair.flush()
            context.load_cert_chain(pair.name)
    return context


def _bytes_of(holder: Object, word: str) -> bytes | None:
    """What `word` names: inline data, else the content of a file, else None."""
    if f"{word}-data" in holder:
        return b64decode(holder[f"{word}-data"])
    return Path(holder[word]).read_bytes() if word in holder else None


def _named(entries: list[Any], name: str) -> Object:
    found: Object = next((entry for entry in entries if entry["name"] == name), {})
    return found
