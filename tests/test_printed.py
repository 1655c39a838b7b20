from printed import differences


def test_the_last_digit_of_a_number_with_decimals_may_differ() -> None:
    assert differences("97.5 % after 3.20 s", "97.6 % after 3.19 s") == []


def test_anything_else_may_not() -> None:
    assert differences("97.5 %", "97.7 %") == ["'97.5 %', printed '97.7 %'"]
    assert differences("120 updates", "121 updates")
    assert differences("97 %", "97.0 %")
    assert differences("a 1.0", "b 1.0")


def test_a_line_that_is_missing_or_too_many_differs() -> None:
    assert differences("a\nb", "a") == ["'b', printed '(nothing)'"]
    assert differences("a", "a\nb") == ["'(nothing)', printed 'b'"]
