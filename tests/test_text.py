from credro._text import percent, text_table


def test_table_is_aligned():
    text = text_table([["a", "1.5", "x"], ["bcd", "-", "yz"]], ["name", "a long-number", "word"], widest=6)
    assert text.splitlines() == [
        "           a",
        "       long-",
        "name  number  word",
        "----  ------  ----",
        "a        1.5  x",
        "bcd        -  yz",
    ]
    assert text_table([], ["a"]).splitlines() == ["a", "-"]


def test_per_cent():
    assert [percent(v) for v in (0.12345, 1.0, 0.0, float("nan"))] == ["12.35", "100.00", "0.00", "-"]
    assert percent(0.5, 0) == "50"
