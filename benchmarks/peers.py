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
