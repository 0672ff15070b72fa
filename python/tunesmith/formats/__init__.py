"""N-best lists, references and weights in common file formats."""

from tunesmith.formats import espnet, fairseq, flat, jsonl, kaldi, nemo  # noqa: F401
from tunesmith.formats.base import (
    Empty,
    End,
    Format,
    Hypothesis,
    Lists,
    Sentence,
    Skipped,
    TextFile,
    find,
    names,
    register,
)
from tunesmith.formats.detect import detect
from tunesmith.formats.nbest import (
    NATIVE,
    Along,
    Nbest,
    NbestWriter,
    Reading,
    read_nbest,
    read_stream,
    write_nbest,
)
from tunesmith.formats.references import References, carried_references, read_references

# The core reads and writes these; registering them makes their names known.
for _name in NATIVE:
    register(Format(_name, columns=True, extra=True))

__all__ = [
    "Along",
    "Empty",
    "End",
    "Format",
    "Hypothesis",
    "Lists",
    "Nbest",
    "NbestWriter",
    "Reading",
    "References",
    "Sentence",
    "Skipped",
    "TextFile",
    "carried_references",
    "detect",
    "find",
    "names",
    "read_nbest",
    "read_references",
    "read_stream",
    "register",
    "write_nbest",
]
