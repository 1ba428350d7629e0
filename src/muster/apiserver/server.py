"""The API server: a request in, an answer out.  No sockets, no clock, no chance of its own.

`ApiServer.handle` is the one door, for HTTP (`http.py`), controllers and simulations alike.  It finds out
what the path names (`routing.py`), who may ask (`access.py`), and lets `reading.py`, `watching.py`,
`writing.py`, `deleting.py` or a handler of the kind answer.
"""

from collections.abc import Iterable

import numpy as np

from muster.apiserver.access import IMPERSONATION, check_access, impersonated
from muster.apiserver.answers import Form, encoded, form_of, shaped
from muster.apiserver.bodies import read_object
from muster.apiserver.calls import Call
from muster.apiserver.catalog import KINDS, initial_objects
from muster.apiserver.deleting import delete, delete_collection, delete_object
from muster.apiserver.documents import Documents
from muster.apiserver.exchange import Request, Response
from muster.apiserver.kinds import Handler, Kind, Object, Refused
from muster.apiserver.metadata import Chance
from muster.apiserver.options import check_timeout, read_write_options
from muster.apiserver.patching import copied
from muster.apiserver.quoting import warning_headers
from muster.apiserver.reading import get, list_all
from muster.apiserver.routing import Catalog, Route, check_name, verb_of
from muster.apiserver.schemas import load_schemas
from muster.apiserver.statuses import status_of
from muster.apiserver.store import Store
from muster.apiserver.views import view_of
from muster.apiserver.watching import FrameCache, open_watch
from muster.apiserver.writing import admit_namespace, create, patch, store_new, update

DEFAULT_GATES = frozenset(
    {
        "GenericWorkload",
        "TopologyAwareWorkloadScheduling",
        "CompositePodGroup",
        "PodGroupPreemptionPolicy",
        "WorkloadWithJob",
    }
)
GATES = DEFAULT_GATES | {"DRAWorkloadResourceClaims", "DRADerivedAttributes"}  # all that mean something here
_WRITERS = {"create": create, "update": update, "patch": patch}


class ApiServer:
    """A Kubernetes API server over a store in memory.

    `rng` gives uids and generated names; `gates` are the feature gates that are on; `catalog` the kinds
    served, by default all that this package knows.  Start it over HTTP with `http.HttpServer`.
    """

    def __init__(
        self,
        rng: np.random.Generator,
        *,
        gates: frozenset[str] = DEFAULT_GATES,
        catalog: Iterable[Kind] | None = None,
        store: Store | None = None,
        now_s: float = 0.0,
    ) -> None:
        self._chance = Chance(rng)
        self.gates = gates
        self.catalog = Catalog(KINDS if catalog is None else catalog)
        self.store = store if store is not None else Store()
        self.schemas = load_schemas()
        self._documents = Documents(self.catalog, self.schemas)
        self._frames = FrameCache()
        self._create_first_objects(now_s)
        self.store.open()

    def handle(self, request: Request, now_s: float) -> Response:
        """Answer a request; refusals are answers too, nothing is raised for what a client did."""
        call = self.call(request, now_s)
        try:
            response = self._answer(call)
        except Refused as refused:
            response = Response(refused.code, status_of(refused), headers=refused.headers)
        if call.warnings:
            response.headers = response.headers + warning_headers(call.warnings)
        return response

    def call(self, request: Request, now_s: float) -> Call:
        """What answering needs; strategies and handlers see this as `Cluster` and `Access`."""
        return Call(
            request,
            now_s,
            store=self.store,
            catalog=self.catalog,
            schemas=self.schemas,
            chance=self._chance,
            gates=self.gates,
            deleter=delete_object,
        )

    def _create_first_objects(self, now_s: float) -> None:
        """Create the namespaces and priority classes that every cluster has."""
        call = self.call(Request("POST", ""), now_s)
        for name, obj in initial_objects():
            kind = self.catalog.by_name.get(name)
            if kind is not None and self.store.get(kind, "", obj["metadata"]["name"]) is None:
                store_new(call, kind, copied(obj), "")

    def _answer(self, call: Call) -> Response:
        request = call.request
        if not IMPERSONATION.isdisjoint(request.headers):
            request = call.request = impersonated(request)
            call.user = request.user
        parts = [part for part in request.path.split("/") if part]
        check_access(request, parts)
        document = self._documents.find(request, parts)
        if document is not None:
            return document
        route = self.catalog.route(parts)
        if route is None:
            return self._documents.missing(request, parts)
        check_name(route)
        watch = request.method == "GET" and bool(request.query) and read_watch(request)
        verb = verb_of(route, request.method, watch=watch)
        if request.query and verb != "watch":
            check_timeout(request)
        handler = route.sub.handler if route.sub is not None else route.kind.handler
        if handler is not None:
            return self._handled(call, route, handler)
        if verb == "watch":
            return open_watch(call, route, self._frames)
        form = form_of(request, streams=verb == "list")
        if verb == "delete":
            return self._shaped(form, call, route, delete(call, route))
        if verb == "deletecollection":
            return self._shaped(form, call, route, delete_collection(call, route))
        if verb == "get":
            return self._shaped(form, call, route, Response(200, get(call, route)))
        if verb == "list":
            return self._shaped(form, call, route, Response(200, list_all(call, route)))
        code, obj = _WRITERS[verb](call, route)
        return self._shaped(form, call, route, Response(code, view_of(route.kind, route.version, obj)))

    def _handled(self, call: Call, route: Route, handler: Handler) -> Response:
        """Let a kind's or subresource's own handler answer."""
        request = call.request
        body: Object = {}
        if request.method in ("POST", "PUT", "PATCH"):
            options = read_write_options(request, "CreateOptions")
            call.dry_run = options.dry_run
            sub, kind = route.sub, route.kind
            spoken = (kind.group, route.version, kind.kind)
            if sub is not None and sub.kind:
                spoken = (sub.group, sub.version or "v1", sub.kind)
            older = sub.older if sub is not None else ()
            body = read_object(call, *spoken, options.validation, older=older)
            if route.namespace:
                name = route.name or str(body.get("metadata", {}).get("name", ""))
                admit_namespace(call, route.kind, route.namespace, name)
        return handler(request, route.namespace, route.name, body, call)

    def _shaped(self, form: Form, call: Call, route: Route, response: Response) -> Response:
        if form.is_plain or response.object is None:
            if call.request.first("pretty") in ("true", "1") and response.object is not None:
                response.raw = encoded(form, response.object, pretty=True)
            return response
        response.object = shaped(form, call, route.kind, route.version, response.object)
        if form.media != "application/json":
            response.raw = encoded(form, response.object)
            response.content_type = form.media
        return response


def read_watch(request: Request) -> bool:
    """Whether the query asks for a watch."""
    value = request.first("watch")
    return value is not None and value.lower() not in ("false", "0")
