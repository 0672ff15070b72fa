"""What Moses was measured at on the same lists, one run each on another machine of two cores.

CPU seconds; `yardstick.py` carries them over to the machine at hand.
"""

MERT_SECONDS = 89.0
MERT_BLEU = 41.03
KBMIRA_SECONDS = 1.3
KBMIRA_BLEU = 40.5
EXTRACTOR_SECONDS = 1.3
"""One list; it was measured on a busy machine."""

KENLM_TEXT_SECONDS = 0.12
"""KenLM's `query` on the training text: reading, splitting, 406,534 queries, printing."""

KENLM_QUERY_SECONDS = 1.0e-7
"""One KenLM query, word ids ready."""

MOSES_TUNING = {
    "mert": (40.9, 40.4, 478.0, 5),
    "pro": (40.3, 40.5, 301.0, 8),
    "kbmira": (40.3, 40.1, 288.0, 8),
}
"""BLEU on val and test 2016, CPU seconds of all iterations on a busy machine, iterations."""

MOSES_DECODING = (
    ("cube pruning, pop 300, stack 100", 92.0, -36.59392),
    ("cube pruning, pop 1,000, stack 100", 34.0, -36.59382),
    ("cube pruning, pop 5,000, stack 1,000", 4.4, -36.59355),
    ("stack search, stack 200", 7.1, -36.59360),
)
"""Sentences per CPU second, model filtered to the test set, and mean model score of 300."""

MOSES_MEMORY = {"filtered": 131e6, "unfiltered": 891e6}
"""Peak with the model filtered to the test set, pop 300, and after loading all of it."""

CDEC_DECODING = (
    (30, 25.0, -3.55716, 54e6),
    (200, 9.2, -3.55658, 102e6),
    (1000, 1.9, -3.55653, 255e6),
)
"""Pop limit, sentences per CPU second, mean model score of 300, peak memory."""

CDEC_FOREST_MERT = (42.5, 40.7)
"""BLEU on val and test 2016 of its hypergraph MERT with its bug mended, two iterations."""
