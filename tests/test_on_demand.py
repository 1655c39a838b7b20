import pytest

from asyncfeded.core.errors import SettingError
from asyncfeded.learning.datasets import TensorExamples, data_of
from asyncfeded.on_demand import ClientNames, OnDemand, each, names_of


def test_names_are_counted_and_not_stored() -> None:
    names = ClientNames(100_000)
    assert len(names) == 100_000
    assert (names[0], names[-1], names[2:4]) == (
        "client-0",
        "client-99999",
        ["client-2", "client-3"],
    )
    assert names.index("client-77") == 77
    assert list(ClientNames(3)) == ["client-0", "client-1", "client-2"]


@pytest.mark.parametrize(
    "name",
    [
        *("client-3", "client--1", "client-02", "client-", "3", "Client-1", "client-²"),
        *("client-" + "9" * 5000, 1, None),
    ],
)
def test_what_is_no_name_is_not_among_them(name: object) -> None:
    assert name not in ClientNames(3)
    with pytest.raises(ValueError, match="is not one of 3 clients"):
        ClientNames(3).index(name)  # type: ignore[arg-type]


def test_things_are_made_when_they_are_asked_for() -> None:
    made = []

    def make(name: str) -> str:
        made.append(name)
        return name.upper()

    things = OnDemand(["a", "b", "c"], make, keep=2)
    assert (len(things), list(things), "b" in things, "z" in things) == (
        3,
        ["a", "b", "c"],
        True,
        False,
    )
    assert made == []
    assert [things[name] for name in "abbacba"] == list("ABBACBA")
    assert made == ["a", "b", "c", "b", "a"]  # of three only the two last used are kept
    with pytest.raises(KeyError):
        things["z"]


def test_of_a_dict_all_is_made_at_once_and_of_another_mapping_nothing() -> None:
    assert each({"a": 1, "b": 2}, str) == {"a": "1", "b": "2"}
    names = ClientNames(10)
    later = each(OnDemand(names, len), str)
    assert not isinstance(later, dict)
    assert names_of(later) is names
    assert later["client-7"] == "8"


def test_a_name_is_found_as_fast_in_a_list_of_many() -> None:
    class Counted(list[str]):
        looked = 0

        def __contains__(self, name: object) -> bool:
            Counted.looked += 1
            return super().__contains__(name)

    things = OnDemand(Counted(["a", "b"]), str.upper)
    assert (things["b"], "z" in things) == ("B", False)
    assert Counted.looked == 0


def test_what_making_raises_is_not_taken_for_an_unknown_name() -> None:
    columns: dict[str, TensorExamples] = {}
    things = OnDemand(ClientNames(2), lambda _: columns["age"])
    with pytest.raises(SettingError, match="client 'client-2' has no data"):
        data_of(things, "client-2")
    with pytest.raises(KeyError, match="age"):
        data_of(things, "client-1")
