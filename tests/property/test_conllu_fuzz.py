"""Any file is read as CoNLL-U or refused with file and line; what is read comes back."""

from __future__ import annotations

from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tunesmith import InputError
from tunesmith.structured import read_conllu

IDS = st.sampled_from(["1", "2", "3", "1-2", "2-3", "1.1", "0.1", "x", "0", ""])
CELLS = st.sampled_from(["_", "a", "0", "1", "2", "é", " ", "\u2028", "1.5", "-1", ""])
ROWS = st.tuples(IDS, st.lists(CELLS, min_size=8, max_size=10)).map(
    lambda row: "\t".join((row[0], *row[1]))
)
LINES = st.one_of(ROWS, st.sampled_from(["", "# note", " ", "\t"]))
FILES = st.one_of(
    st.binary(max_size=200), st.lists(LINES, max_size=8).map(lambda rows: "\n".join(rows).encode())
)


@given(content=FILES)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=200)
def test_any_file_is_read_or_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "text"
    path.write_bytes(content)
    try:
        found = list(read_conllu(path))
        for sentence in found:
            sentence.has_tags("upos")
            sentence.heads()
    except InputError as error:
        assert error.file == str(path)
        assert error.remedy
        return
    again = tmp_path / "again"
    again.write_text("".join(sentence.text() for sentence in found), encoding="utf-8", newline="")
    assert [s.text() for s in read_conllu(again)] == [s.text() for s in found]
