"""Processes that wait for each other."""

import pytest

from .played import COUNT, Played, play


def test_the_first_then_the_first_of_each_machine_then_the_rest() -> None:
    events: list[str] = []

    def act(processes: Played) -> None:
        with processes.first_before_others():
            events.append(f"{processes.rank} comes")
            events.append(f"{processes.rank} leaves")

    assert play(act) == dict.fromkeys(range(COUNT), "continued")
    assert events[:4] == ["0 comes", "0 leaves", "2 comes", "2 leaves"]
    assert sorted(events[4:]) == ["1 comes", "1 leaves", "3 comes", "3 leaves"]


@pytest.mark.parametrize("fails", [0, 2])
def test_if_one_fails_the_others_end(fails: int) -> None:
    came: list[int] = []

    def act(processes: Played) -> None:
        with processes.first_before_others():
            came.append(processes.rank)
            if processes.rank == fails:
                raise ValueError("no such text")

    ends = play(act)
    assert ends.pop(fails) == "ValueError('no such text')"
    assert set(ends.values()) == {"SystemExit(1)"}
    assert not {1, 3} & set(came)


def test_all_processes_must_have_the_same_data() -> None:
    same, other = "ab" * 32, "ba" * 32
    assert set(play(lambda processes: processes.check_same(same, "dev text")).values()) == {"continued"}
    ends = play(lambda processes: processes.check_same(same if processes.rank else other, "dev text"))
    assert len(ends) == COUNT
    assert all("Not all processes have the same dev text" in end for end in ends.values())
