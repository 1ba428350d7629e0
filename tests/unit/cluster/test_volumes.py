"""What is known of volumes and claims, and what was chosen for them."""

from msgspec.structs import replace
from tests.unit.cluster.volume_objects import make_claim, make_class, make_volume, mounts

from muster.api.storage import PersistentVolume, PersistentVolumeClaim
from muster.cluster.volumes import Choice, VolumeBook, claims_of
from muster.testing.builders import make_pod

KEY = ("default", "c")


def test_the_picture_is_the_same_until_something_changes() -> None:
    book = VolumeBook()
    book.apply(make_claim("c"))
    first = book.freeze()
    assert book.freeze() is first
    book.apply(make_class())
    assert book.freeze() is not first
    assert first.classes == {}


def test_an_older_version_changes_nothing() -> None:
    book = VolumeBook()
    new, old = make_volume("v"), make_volume("v", size="9Gi")
    book.apply(new)
    assert not book.apply(replace(old, metadata=replace(old.metadata, resource_version="4")))
    assert book.freeze().volumes == {"v": new}


def test_a_choice_counts_until_the_claim_has_its_volume() -> None:
    book = VolumeBook()
    book.apply(make_claim("c"))
    book.choose(KEY, Choice("v", ""))
    assert book.freeze().volume_of(make_claim("c")) == "v"
    assert book.freeze().promised == {"v": KEY}
    book.apply(make_claim("c", volume="v"))
    assert book.freeze().choices == {}


def test_a_node_that_is_taken_back_after_it_was_seen_ends_the_choice() -> None:
    book = VolumeBook()
    book.choose(KEY, Choice("", "n1"))
    book.apply(make_claim("c"))  # as it was before our write
    assert KEY in book.freeze().choices
    book.apply(make_claim("c", node="n1"))
    assert KEY in book.freeze().choices
    book.apply(make_claim("c"))
    assert KEY not in book.freeze().choices


def test_a_volume_that_somebody_else_got_is_chosen_no_more() -> None:
    book = VolumeBook()
    book.choose(KEY, Choice("v", ""))
    book.apply(make_volume("v", claim="c"))
    assert KEY in book.freeze().choices
    book.apply(make_volume("v", claim="other"))
    assert KEY not in book.freeze().choices


def test_what_is_gone_is_forgotten_if_it_is_this_very_one() -> None:
    book = VolumeBook()
    book.apply(make_volume("v"))
    assert book.remove(PersistentVolume, ("", "v"), "another") is None
    assert book.remove(PersistentVolume, ("", "v"), "uid-v") is not None
    assert book.freeze().volumes == {}
    book.apply(make_claim("c"))
    book.choose(KEY, Choice("v", ""))
    book.remove(PersistentVolumeClaim, KEY, "uid-c")
    assert book.freeze().choices == {}


def test_a_choice_may_be_given_up() -> None:
    book = VolumeBook()
    book.choose(KEY, Choice("v", ""))
    book.unchoose(KEY)
    assert book.freeze().promised == {}


def test_ephemeral_volumes_have_claims_by_the_pod_s_name() -> None:
    volumes = [*mounts("c"), {"name": "scratch", "ephemeral": {}}, {"name": "x", "emptyDir": {}}]
    assert claims_of(make_pod("p", volumes=volumes)) == ((KEY, False), (("default", "p-scratch"), True))
