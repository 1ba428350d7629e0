"""The rows of the catalog."""

import pytest

from muster.apiserver.catalog import KINDS, initial_objects
from muster.apiserver.schemas import load_schemas

BY_NAME = {kind.name: kind for kind in KINDS}


def test_no_two_rows_share_a_path() -> None:
    paths = [(kind.group, version, kind.resource) for kind in KINDS for version in kind.versions]
    assert len(paths) == len(set(paths))


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_every_row_has_its_types(kind: object) -> None:
    schemas = load_schemas()
    row = BY_NAME[kind.name]  # type: ignore[attr-defined]
    for version in row.versions:
        package = f"{row.group.partition('.')[0] or 'core'}.{version}"
        assert schemas.has(f"{package}/{row.kind}")


def test_a_view_shows_a_row_that_is_there() -> None:
    views = [kind for kind in KINDS if kind.stored_as]
    assert [view.name for view in views] == ["events.events.k8s.io"]
    for view in views:
        assert view.stored_as in BY_NAME
        assert view.to_view is not None
        assert view.from_view is not None


def test_the_first_objects_are_of_rows_that_are_there() -> None:
    names = [(name, obj["metadata"]["name"]) for name, obj in initial_objects()]
    assert ("namespaces", "default") in names
    assert ("priorityclasses.scheduling.k8s.io", "system-node-critical") in names
    assert {name for name, _ in names} <= BY_NAME.keys()


@pytest.mark.parametrize(
    ("name", "short_names", "categories"),
    [
        ("pods", ("po",), ("all",)),
        ("nodes", ("no",), ()),
        ("podgroups.scheduling.k8s.io", (), ()),
        ("jobs.batch", (), ("all",)),
        ("priorityclasses.scheduling.k8s.io", ("pc",), ()),
        ("poddisruptionbudgets.policy", ("pdb",), ()),
    ],
)
def test_names_are_those_of_the_stock_server(name: str, short_names: object, categories: object) -> None:
    assert (BY_NAME[name].short_names, BY_NAME[name].categories) == (short_names, categories)


def test_a_row_that_only_answers_stores_nothing() -> None:
    asked = [kind.kind for kind in KINDS if kind.handler is not None]
    assert asked == ["Binding", "SelfSubjectReview", "SelfSubjectAccessReview", "SelfSubjectRulesReview"]
    assert all(kind.verbs == ("create",) for kind in KINDS if kind.handler is not None)
