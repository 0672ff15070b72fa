"""Sections and feature options of a Moses configuration: supported, ignored or refused."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

OFF = frozenset({"no", "n", "false", "0"})
"""The values that Moses reads as false, in lower case."""
ON = frozenset({"yes", "y", "true", "1"})
OUT = "take the section out"


@dataclass(frozen=True)
class Section:
    """How a section is treated.

    `honoured` sections are read in `moses`; `ignored` ones cannot change a translation; `refused`
    ones would, unless all their values are among `harmless`.
    """

    use: Literal["honoured", "ignored", "refused"]
    harmless: frozenset[str] = frozenset()
    remedy: str = OUT


_HONOURED = Section("honoured")
_IGNORED = Section("ignored")


def _flag(remedy: str = OUT) -> Section:
    return Section("refused", OFF, remedy)


def _unless(harmless: str, remedy: str = OUT) -> Section:
    return Section("refused", frozenset({harmless}), remedy)


def _refused(remedy: str) -> Section:
    return Section("refused", remedy=remedy)


def _all(names: str, section: Section) -> dict[str, Section]:
    return dict.fromkeys(names.split(), section)


_FACTORS = "factors are not supported: train a model on plain words with tunesmith train"
_MBR = f"{OUT} and translate with --mbr bleu --nbest 200 --alpha 1"
_DETAILS = f"{OUT}; --explain and --json show phrases, alignments and unknown words"
_LIST = f"{OUT}; --nbest K --nbest-out FILE writes lists"
_OLD = "write the model in [feature] and [weight], as Moses 1.0 and later do"
_INLINE = f"{OUT} and write its lines into [feature] and [weight]"
LATTICES = "only plain text is translated: write 0, and give one sentence per line"
HIERARCHICAL = (
    "train such a model with tunesmith train --kind hiero, or give its rules as a grammar of cdec "
    "with --cdec-grammar"
)

SECTIONS: Mapping[str, Section] = {
    **_all(
        "feature weight weight-file mapping search-algorithm stack beam-threshold "
        "cube-pruning-pop-limit distortion-limit max-phrase-length ttable-limit "
        "max-trans-opt-per-coverage xml-input drop-unknown",
        _HONOURED,
    ),
    # Speed, logging, servers, notes.
    **_all(
        "config verbose version threads no-cache clean-lm-cache minphr-memory minlexr-memory "
        "description server daemon server-port server-log serial server-maxconn "
        "server-maxconn-backlog server-keepalive-maxconn server-keepalive-timeout server-timeout "
        "session-timeout session-cache-size references",
        _IGNORED,
    ),
    # Ties in a search: our decoder breaks them in a fixed order anyway.
    "cube-pruning-deterministic-search": _IGNORED,
    # Our decoder always treats entities in tags as placeholders.
    "placeholder-factor": _IGNORED,
    # Options of refused sections; they do nothing by themselves.
    **_all(
        "labeled-n-best-list n-best-trees n-best-factor report-all-factors-in-n-best "
        "include-segmentation-in-n-best print-alignment-info-in-n-best print-passthrough-in-n-best "
        "start-translation-id unpruned-search-graph include-lhs-in-search-graph "
        "sort-word-alignment unknown-word-prefix unknown-word-suffix mbr-size mbr-scale lmbr-p "
        "lmbr-r lmbr-thetas lmbr-map-weight lmbr-pruning-factor lattice-hypo-set link-param-count "
        "recover-input-path max-chart-span non-terminals rule-limit source-label-overlap "
        "unknown-lhs default-non-term-for-empty-range-only s2t-parsing-algorithm context-string "
        "context-weights context-window distortion",
        _IGNORED,
    ),
    # Input.
    "input-factors": _unless("0", _FACTORS),
    "output-factors": _unless("0", _FACTORS),
    "factor-delimiter": _unless("|", f"{OUT}: words are not split here"),
    "inputtype": _unless("0", LATTICES),
    "input-file": _refused(f"{OUT} and name the file with --input"),
    "xml-brackets": _unless("< >", f"{OUT} and mark the text with < and >"),
    "alternate-weight-setting": _refused(f"{OUT}, and give one set of weights at a time"),
    **_all("spe-src spe-trg spe-aln", _refused(OUT)),
    # Search.
    **_all("time-out segment-time-out", Section("refused", frozenset({"0", "-1"}))),
    **_all(
        "early-discarding-threshold stack-diversity translation-option-threshold "
        "cube-pruning-diversity decoding-graph-backoff",
        _unless("0"),
    ),
    "max-partial-trans-opt": _unless("10000"),
    **_all(
        "disable-discarding phrase-drop-allowed monotone-at-punctuation early-distortion-cost "
        "cube-pruning-lazy-scoring always-create-direct-transopt mira show-weights",
        _flag(),
    ),
    **_all("minimum-bayes-risk lminimum-bayes-risk consensus-decoding", _flag(_MBR)),
    "lmodel-oov-feature": _flag("take the section out, and the second weight of the model"),
    # Output.
    "mark-unknown": _flag(_DETAILS),
    # Any value turns these two on.
    **_all("report-segmentation report-segmentation-enriched", _refused(_DETAILS)),
    **_all("print-alignment-info output-hypo-score print-all-derivations", _flag(_DETAILS)),
    **_all("print-id print-passthrough", _flag()),
    "report-all-factors": _flag(_FACTORS),
    **_all(
        "output-unknowns alignment-output-file translation-details tree-translation-details "
        "translation-all-details",
        _refused(_DETAILS),
    ),
    **_all("n-best-list lattice-samples", _refused(_LIST)),
    **_all(
        "output-search-graph output-search-graph-extended output-search-graph-slf "
        "output-search-graph-pb output-search-graph-hypergraph output-word-graph",
        _refused(_LIST),
    ),
    # Features and weights outside [feature] and [weight].
    **_all(
        "feature-add feature-overwrite feature-name-overwrite weight-add weight-overwrite",
        _refused(_INLINE),
    ),
    **_all(
        "weight-slm weight-bl weight-d weight-dlm weight-lr weight-generation weight-i weight-l "
        "weight-lex weight-glm weight-wt weight-pp weight-pb weight-t weight-p weight-w weight-u "
        "weight-e text-type input-scores dlm-model generation-file global-lexical-file glm-feature "
        "lmodel-file lmodel-dub slmodel-file slmodel-factor slmodel-beam ttable-file "
        "phrase-pair-feature phrase-boundary-source-feature phrase-boundary-target-feature "
        "phrase-length-feature target-word-insertion-feature source-word-deletion-feature "
        "word-translation-feature distortion-file",
        _refused(_OLD),
    ),
}
"""Every section that Moses knows."""

SHORT: Mapping[str, str] = {
    "f": "config",
    "i": "input-file",
    "v": "verbose",
    "fd": "factor-delimiter",
    "b": "beam-threshold",
    "edt": "early-discarding-threshold",
    "s": "stack",
    "sd": "stack-diversity",
    "wf": "weight-file",
    "tot": "translation-option-threshold",
    "dd": "disable-discarding",
    "da": "phrase-drop-allowed",
    "th": "threads",
    "dl": "distortion-limit",
    "mp": "monotone-at-punctuation",
    "edc": "early-distortion-cost",
    "cbp": "cube-pruning-pop-limit",
    "cbd": "cube-pruning-diversity",
    "cbls": "cube-pruning-lazy-scoring",
    "cbds": "cube-pruning-deterministic-search",
    "mbr": "minimum-bayes-risk",
    "lmbr": "lminimum-bayes-risk",
    "con": "consensus-decoding",
    "du": "drop-unknown",
    "mu": "mark-unknown",
    "xi": "xml-input",
    "xb": "xml-brackets",
    "aws": "alternate-weight-setting",
    "T": "translation-details",
    "owg": "output-word-graph",
    "Ttree": "tree-translation-details",
    "t": "report-segmentation",
    "tt": "report-segmentation-enriched",
    "Tall": "translation-all-details",
    "osg": "output-search-graph",
    "osgx": "output-search-graph-extended",
    "usg": "unpruned-search-graph",
    "slf": "output-search-graph-slf",
    "lhssg": "include-lhs-in-search-graph",
    "pb": "output-search-graph-pb",
    "dpb": "decoding-graph-backoff",
    "r": "recover-input-path",
}
"""Names of command-line options. Moses accepts them in a file, but ignores them."""

PENALTIES = ("UnknownWordPenalty", "WordPenalty", "PhrasePenalty", "Distortion")
TABLES = (
    "PhraseDictionaryMemory",
    "PhraseDictionaryBinary",
    "PhraseDictionaryCompact",
    "PhraseDictionaryOnDisk",
)
"""Binary tables; the text file that they were made from is read instead."""
LANGUAGE_MODELS = ("KENLM", "SRILM", "IRSTLM")
REORDERING = tuple(
    f"{start}msd-bidirectional-fe{end}"
    for start in ("wbe-", "phrase-", "")
    for end in ("", "-allff")
)
"""Moses' names for the same model."""
SUPPORTED = (*PENALTIES, "PhraseDictionaryMemory", "LexicalReordering", "KENLM")

_ANY: frozenset[str] = frozenset()
_ZERO = frozenset({"0"})
_COMMON = {
    "name": _ANY,
    "num-features": _ANY,
    "tuneable": ON | OFF,
    "tuneable-components": _ANY,
    "verbosity": _ANY,
    "filterable": _ANY,
    "require-sorting-after-source-context": OFF,
}
_TABLE = {
    "path": _ANY,
    "table-limit": _ANY,
    "cache-size": _ANY,
    "input-factor": _ZERO,
    "output-factor": _ZERO,
}
_LM = {
    "path": _ANY,
    "factor": _ZERO,
    "order": _ANY,
    "lazyken": _ANY,
    "load": _ANY,
    "oov-feature": OFF,
}
OPTIONS: Mapping[str, Mapping[str, frozenset[str]]] = {
    "UnknownWordPenalty": _COMMON,
    "WordPenalty": _COMMON,
    "PhrasePenalty": {**_COMMON, "per-phrase-table": OFF},
    "Distortion": {**_COMMON, "sparse": OFF},
    "LexicalReordering": {
        **_COMMON,
        "type": frozenset(REORDERING),
        "path": _ANY,
        "input-factor": _ZERO,
        "output-factor": _ZERO,
    },
    **{key: {**_COMMON, **_TABLE} for key in TABLES},
    **{key: {**_COMMON, **_LM} for key in LANGUAGE_MODELS},
}
"""The supported features, their options, and the allowed values (none: any)."""

OPTION_REMEDIES: Mapping[str, str] = {
    "type": f"those supported are {' and '.join(REORDERING[:2])}, and their older names",
    "input-factor": _FACTORS,
    "output-factor": _FACTORS,
    "factor": _FACTORS,
    "oov-feature": "take it out, and the second weight of the model",
}
