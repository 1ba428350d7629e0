"""The types of the API as the schema files tell them."""

from muster.apiserver.schemas import ListOf, MapOf, Record, Scalar, load_schemas

SCHEMAS = load_schemas()


def test_every_record_that_a_record_names_is_there() -> None:
    todo, seen = [SCHEMAS.record("core.v1/Pod"), SCHEMAS.record("batch.v1/Job")], set()
    while todo:
        record = todo.pop()
        if record.name in seen:
            continue
        seen.add(record.name)
        for field in record.fields.values():
            type_ = field.type
            while isinstance(type_, ListOf | MapOf):
                type_ = type_.item
            if isinstance(type_, Record):
                todo.append(type_)
    assert "core.v1/TopologySpreadConstraint" in seen
    assert "scheduling.v1alpha3/WorkloadPodGroupSchedulingPolicy" in seen


def test_conditions_are_merged_by_type_and_tolerations_are_not_merged() -> None:
    assert SCHEMAS.record("core.v1/PodStatus").fields["conditions"].merge_key == "type"
    assert SCHEMAS.record("core.v1/PodSpec").fields["tolerations"].merge_key is None


def test_finalizers_are_merged_as_a_set() -> None:
    assert SCHEMAS.record("meta.v1/ObjectMeta").fields["finalizers"].merge_key == ""


def test_a_pointer_keeps_its_zero_and_a_plain_number_loses_it() -> None:
    assert not SCHEMAS.record("core.v1/PodSpec").fields["priority"].drop_zero
    assert SCHEMAS.record("core.v1/ContainerPort").fields["hostPort"].drop_zero


def test_a_named_text_type_keeps_its_go_name_for_errors() -> None:
    field = SCHEMAS.record("core.v1/PodSpec").fields["restartPolicy"]
    assert field.type == Scalar("string", "v1.RestartPolicy")


def test_fields_of_embedded_types_are_their_holders_with_a_path_of_numbers() -> None:
    assert SCHEMAS.record("core.v1/Volume").fields["emptyDir"].number == (2, 2)


def test_what_is_not_in_the_files_is_not_there() -> None:
    assert SCHEMAS.has("core.v1/Pod")
    assert not SCHEMAS.has("core.v1/Secret")
    assert not SCHEMAS.has("apps.v1/Deployment")
