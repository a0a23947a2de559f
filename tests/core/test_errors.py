"""Messages of errors, which may quote any file."""

from __future__ import annotations

from fontes.core import FontesError


def test_a_message_is_one_line_without_control_characters() -> None:
    assert str(FontesError("a\nb\x1b[0m\ud800")) == "a b\\x1b[0m\\ud800"
    assert str(FontesError("\n a \t\n \r\n b  c ")) == " a  b  c "
    assert str(FontesError.of_lines(["a\nb", "c"])) == "a b\nc"


def test_many_messages_are_the_first_the_last_and_a_number() -> None:
    assert str(FontesError.of_lines(map(str, range(50)))).split("\n") == [*map(str, range(50))]
    lines = str(FontesError.of_lines(map(str, range(300_000)))).split("\n")
    assert lines == [*map(str, range(48)), "… and 299,951 more", "299999"]


def test_a_long_message_keeps_its_beginning_and_its_end() -> None:
    assert str(FontesError("a" * 2000)) == "a" * 2000
    message = str(FontesError("a" * 1500 + "b" * 1500))
    assert message == "a" * 1000 + " … " + "b" * 997
