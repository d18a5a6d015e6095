from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ideepdoctor.treatment.shellrc import END, START, has_block, put_block, remove_block

# Real rc files, and texts made of the pieces that could confuse the markers.
PIECES = st.lists(st.sampled_from(["\n", "\r\n", "\r", "a", " ", START, END, "export X=1\n", "\x0c", "é"]), max_size=12)
TEXTS = PIECES.map("".join) | st.text()
BLOCKS = st.lists(st.text(st.characters(exclude_characters="\r\n")), min_size=1, max_size=3).map("\n".join)


@given(TEXTS, BLOCKS, BLOCKS)
@example("", "x", "y")
@example("no newline", "x", "y")
@example("a\r\nb", "x", "y")
@example("a\r", "x", "y")
@example(f"{START}\nleft over", "x", "y")
@example(f"{END}\n", "x", "y")
def test_what_is_put_in_comes_out_again(text, block, other):
    if has_block(text) or START in block + other or END in block + other:
        return
    once = put_block(text, block)
    assert has_block(once)
    assert put_block(once, block) == once
    assert remove_block(once) == text
    assert remove_block(put_block(once, other)) == text


def test_the_block_stands_at_the_end_between_its_markers():
    assert put_block("a=1\n", "x\ny\n") == f"a=1\n{START}\nx\ny\n{END}\n"


def test_crlf_files_stay_crlf_files():
    text = put_block("a=1\r\n", "x\ny")
    assert text.count("\n") == text.count("\r\n") == 5


def test_a_block_is_replaced_where_it_stands():
    text = put_block("before\n", "x") + "after\n"
    assert put_block(text, "y") == f"before\n{START}\ny\n{END}\nafter\n"


def test_lines_that_a_person_added_after_the_block_stay_lines_of_their_own():
    text = put_block("no newline", "x") + "after\n"
    assert remove_block(text) == "no newline\nafter\n"


def test_a_text_without_a_block_is_left_alone():
    assert remove_block(f"{START}\nnever closed\n") == f"{START}\nnever closed\n"


def test_a_block_cannot_hold_its_own_markers():
    with pytest.raises(ValueError, match="markers"):
        put_block("", f"x\n{END}")
