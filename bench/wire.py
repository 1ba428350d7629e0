"""One client of a Kubernetes API server for the benchmark: JSON over loopback TLS, watches, metrics.

Knows nothing of Muster, so that the null gang binder may use it.  In comes a kubeconfig as the control plane
writes it (JSON, a token); out come bytes, decoded watch lines and samples of /metrics pages.
"""

import base64
import json
import re
import ssl
from collections.abc import AsyncIterator
from pathlib import Path
from types import TracebackType
from typing import NamedTuple

import aiohttp

JSON = "application/json"
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
ANSWER_S = 60.0

_SAMPLE = re.compile(r"^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? ([^ ]+)$")
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')


class Refused(Exception):
    """The server did not do what was asked."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(f"HTTP {code}: {text[:300]}")
        self.code = code


class Sample(NamedTuple):
    """One line of a /metrics page."""

    name: str
    labels: dict[str, str]
    value: float


class Api:
    """A connection pool; an async context manager."""

    def __init__(self, kubeconfig: Path, *, connections: int = 64) -> None:
        config = json.loads(kubeconfig.read_text())
        cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
        self._server: str = cluster["server"]
        self._tls = ssl.create_default_context()
        if authority := cluster.get("certificate-authority-data"):
            self._tls.load_verify_locations(cadata=base64.b64decode(authority).decode())
        self._headers = {"Authorization": f"Bearer {user['token']}", "Accept": JSON}
        self._connections = connections
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> "Api":
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=self._connections + 8, ssl=self._tls),
            headers=self._headers,
            timeout=aiohttp.ClientTimeout(total=ANSWER_S),
            read_bufsize=1 << 20,
        )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._session is not None:
            await self._session.close()

    @property
    def session(self) -> aiohttp.ClientSession:
        if self._session is None:
            raise RuntimeError("an Api is used inside `async with`")
        return self._session

    async def call(self, method: str, path: str, body: bytes = b"", content_type: str = JSON) -> bytes:
        """Send one request.  Raises Refused."""
        headers = {"Content-Type": content_type} if body else {}
        url = self._server + path
        async with self.session.request(method, url, data=body or None, headers=headers) as answer:
            raw = await answer.read()
            if answer.status >= 300:
                raise Refused(answer.status, raw.decode(errors="replace"))
            return raw

    async def watch(self, path: str, version: str) -> AsyncIterator[list[bytes]]:
        """The lines of a watch that came together, until the server ends it."""
        separator = "&" if "?" in path else "?"
        url = f"{self._server}{path}{separator}watch=1&timeoutSeconds=3000&resourceVersion={version}"
        timeout = aiohttp.ClientTimeout(total=None)
        async with self.session.get(url, timeout=timeout) as answer:
            if answer.status >= 300:
                raise Refused(answer.status, await answer.text())
            rest = b""
            async for chunk in answer.content.iter_any():
                *whole, rest = (rest + chunk).split(b"\n")
                if whole:
                    yield [line for line in whole if line]


async def read_metrics(session: aiohttp.ClientSession, url: str, token: str = "") -> list[Sample]:
    """Read a /metrics page; the server's certificate, made by itself, is not checked."""
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    async with session.get(url, headers=headers, ssl=False) as answer:
        if answer.status != 200:
            raise Refused(answer.status, await answer.text())
        return parse_metrics(await answer.text())


def parse_metrics(text: str) -> list[Sample]:
    """The samples of a Prometheus page; comments are left out."""
    samples = []
    for line in text.splitlines():
        match = _SAMPLE.match(line)
        if match:
            labels = dict(_LABEL.findall(match[2] or ""))
            samples.append(Sample(match[1], labels, float(match[3])))
    return samples


def total(samples: list[Sample], name: str, **labels: str) -> float:
    """The sum of a metric over all samples that carry these labels."""
    return sum(
        sample.value
        for sample in samples
        if sample.name == name and all(sample.labels.get(key) == value for key, value in labels.items())
    )
