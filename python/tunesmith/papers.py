"""The settings of the papers, all of them at once: `--as PAPER`.

A preset's defaults are what served best on our own development text. A paper's settings are its
own: options of the tuner, lengths of lists, the regime, which weights are kept, and the limits of
a phrase-based search. What a paper leaves open stays at our defaults; `Paper.open` says what.
docs/papers.md says of each setting whether the paper's own text or a program was its source.

>>> settings_of("eidelman2012", "mira").regime
'shards=20,mix=1'
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from tunesmith.errors import InputError
from tunesmith.learn.online import with_regime
from tunesmith.learn.task import Tuner
from tunesmith.presets import idle_options, make_tuner
from tunesmith.weights import Weights


@dataclass(frozen=True, kw_only=True)
class Settings:
    """How a paper ran a tuner; None stands for what it does not say."""

    options: Mapping[str, Any] = field(default_factory=dict)
    """Options of the preset."""
    lists: Mapping[str, Any] = field(default_factory=dict)
    """Options that differ for saved lists, where no decoding comes between the rounds."""
    regime: str | None = None
    iterations: int | None = None
    """Decodings of a batch tuner, passes of an online one."""
    nbest: int | None = None
    space: Literal["list", "forest", "bins"] | None = None
    keep: Literal["best", "last", "heldout"] | None = None
    start: Literal["equal"] | float | None = None
    """Start weights: of equal size with the signs of the model's own, or all this number."""
    search: Mapping[str, float] = field(default_factory=dict)
    """Limits of a phrase-based search."""

    def on_lists(self) -> Settings:
        """Return the settings for saved lists, which nothing can be late for."""
        parts = (self.regime or "").split(",")
        kept = [part for part in parts if not part.startswith(("delay", "ordered", "stale"))]
        regime = ",".join(kept) or None
        return Settings(options={**self.options, **self.lists}, regime=regime, keep=self.keep)

    def start_of(self, own: Weights, fixed: Mapping[str, float]) -> Weights:
        """Return the paper's start weights for a model with weights of its own."""
        if self.start is None:
            return own
        return own.uniform(fixed, None if self.start == "equal" else self.start)

    def with_options(self, preset: str, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return the given options and those of the paper's that still have an effect."""
        options = {**self.options, **given}
        lost = idle_options(preset, options)
        return {key: value for key, value in options.items() if key in given or key not in lost}

    def tuner(self, preset: str, given: Mapping[str, Any] | None = None) -> Tuner:
        """Return the paper's tuner; the given options replace some of the paper's."""
        return with_regime(make_tuner(preset, self.with_options(preset, given or {})), self.regime)


@dataclass(frozen=True)
class Paper:
    """A paper and how it ran each of its tuners, the one it proposes first."""

    reference: str
    tuners: Mapping[str, Settings]
    open: str
    """What the paper leaves open, and what stands in for it."""


def _pro(psi: float, l2: float, nbest: int, iterations: int | None = None) -> Settings:
    """Return PRO with one solution for each decoding, moved towards by ψ."""
    return Settings(
        options={
            "samples": 5000,
            "first": 5000,
            "threshold": 0.05,
            "keep": 50,
            "rounds": 1,
            "interpolate": psi,
            "l2": l2,
            "gain": "sentence",
            "take": "last",
        },
        lists={"rounds": 30} if psi < 1.0 else {},
        nbest=nbest,
        iterations=iterations,
        keep="last",
    )


# A prior of precision 1 on a sum over 100 examples of each of about 1,000 sentences.
_MEGAM = 1e-5
_HOPKINS = _pro(0.1, _MEGAM, 1500, 30)

_RAMPION = Settings(
    options={"rounds": 10, "passes": 5, "eta": 1e-4, "l2": 1e-3, "cost": 10.0, "take": "last"},
    iterations=20,
    nbest=500,
    keep="last",
)

_KBMIRA = {
    "c": 0.01,
    "passes": 60,
    "decay": 0.999,
    "gain": "background",
    "history": "oracle",
    "gain_scale": "background",
    "average": "updates",
}

_MERT = {"restarts": 0, "wide": 20}

# Margin learners of Eidelman: C, lists, gains in context; the learners' weights are averaged once
# a pass, and nothing else is; sentences come in order.
_MARGIN = {
    "c": 0.01,
    "k": 500,
    "unique": True,
    "gain": "context",
    "average": "none",
    "spread": 0.0,
    "normalise": False,
    "shuffle": False,
}
_BOUNDS = {**_MARGIN, "bound": 1.0, "price": 0.01}
_GREEN_SEARCH = {"distortion_limit": 5, "phrase_limit": 7}


def _liu(options: Mapping[str, Any], iterations: int | None = None) -> Settings:
    """Return a tuner of Moses as Liu & Huang ran it."""
    search = {"stack": 30, "distortion_limit": 6, "phrase_limit": 7}
    return Settings(options=options, nbest=100, iterations=iterations, keep="last", search=search)


_MOSES_PRO = _pro(1.0, _MEGAM, 100).options

PAPERS: dict[str, Paper] = {
    "och2003": Paper(
        "Och 2003, Minimum error rate training in statistical machine translation",
        {"mert": Settings(options=_MERT)},
        "The length of lists and the number of random starts; 20 starts are what Moses takes.",
    ),
    "hopkins2011": Paper(
        "Hopkins & May 2011, Tuning as ranking",
        {"pro": _HOPKINS},
        "The prior of the logistic regression: that of MegaM, 1, for about 1,000 sentences.",
    ),
    "hasler2011": Paper(
        "Hasler, Haddow & Koehn 2011, Margin infused relaxed algorithm for Moses",
        {
            "mira-hildreth": Settings(
                options={
                    "c": 0.01,
                    "lists": "hope-fear",
                    "n": 1,
                    "gain": "sentence",
                    "spread": 0.0,
                    "normalise": False,
                    "rate": 1.0,
                    "decrease": 1.0,
                    "scale_update": False,
                    "shuffle": False,
                    "average": "epoch",
                    "stop": 0.01,
                    "passes": 10,
                },
                regime="shards=8,mix=5",
                keep="heldout",
                start=0.1,
            )
        },
        "How often within a pass the development test set is translated (--set proposals=N). "
        "0.1 is the weight of our features: `words` counts up where the penalty of Moses counts "
        "down, and `unknown` is one of them, which Moses leaves at -100.",
    ),
    "eidelman2012": Paper(
        "Eidelman 2012, Optimization strategies for online large-margin learning",
        {
            "mira": Settings(options=_MARGIN, regime="shards=20,mix=1"),
            "mert": Settings(space="forest"),
        },
        "The number of passes and which of them counts: 20, the best on the tuning set. How large "
        "a gain in context is: times the number of sentences. The context of a pass follows its "
        "translations, where the paper's is that of the pass before.",
    ),
    "cherry2012": Paper(
        "Cherry & Foster 2012, Batch tuning strategies for statistical machine translation",
        {"kbmira": Settings(options=_KBMIRA)},
        "The length of lists and the number of decodings, which are ours.",
    ),
    "gimpel2012": Paper(
        "Gimpel & Smith 2012, Structured ramp loss minimization for machine translation",
        {"rampion": _RAMPION},
        "Nothing that concerns the tuner; its C of 1 is divided by about 1,000 sentences.",
    ),
    "liu2012": Paper(
        "Liu et al. 2012, Locally training the log-linear model",
        {
            "ebuu": Settings(options={"strength": 0.06, "normalise": False}),
            "mbuu": Settings(options={"strength": 0.018, "normalise": False}),
        },
        "The scale of the weights, on which λ depends, and α: ours are docs/local.md's.",
    ),
    "eidelman2013": Paper(
        "Eidelman, Marton & Resnik 2013, Online relative margin maximization",
        {
            "rm": Settings(options=_BOUNDS, regime="shards=15,mix=1"),
            "rm-cp": Settings(options={**_BOUNDS, "max_iter": 100}, regime="shards=15,mix=1"),
            "mira": Settings(options=_MARGIN, regime="shards=15,mix=1"),
            "mert": Settings(space="forest"),
            "pro": _HOPKINS,
            "rampion": _RAMPION,
        },
        "The scale of the start weights, on which B depends. With sparse features D was 0.1 "
        "(--set price=0.1). The prior of PRO, which was tuned (--set l2=…).",
    ),
    "green2013": Paper(
        "Green et al. 2013, Fast and adaptive online training of feature-rich models",
        {
            "adagrad": Settings(
                options={
                    "eta": 0.02,
                    "l1": 0.1,
                    "samples": 500,
                    "pairs": 15,
                    "k": 200,
                    "gain": "sentence",
                    "shrink": "phrasal",
                    "average": "none",
                    "passes": 50,
                    "patience": 3,
                },
                regime="batch=20,delay=15,ordered=false,stale=gradient",
                start="equal",
                search=_GREEN_SEARCH,
            ),
            "mert": Settings(options=_MERT, nbest=200, start="equal", search=_GREEN_SEARCH),
            # σ = 0.1 for 1,717 sentences.
            "pro": replace(_pro(1.0, 6e-4, 200), search=_GREEN_SEARCH),
            "kbmira": Settings(options=_KBMIRA, nbest=200, search=_GREEN_SEARCH),
        },
        "When a run has converged: after three passes that are no better, at most 50. Results "
        "depend on the order in which gradients arrive; --regime batch=20 repeats them.",
    ),
    "liu2014": Paper(
        "Liu & Huang 2014, Search-aware tuning for machine translation",
        {
            "sa-mert": _liu(_MERT),
            "sa-mira": _liu(_KBMIRA, 25),
            "sa-pro": _liu({"shorter": 10, **_MOSES_PRO}, 25),
            "maxforce": Settings(
                options={"update": "max-violation"}, keep="last", search=_liu({}).search
            ),
            "mert": _liu(_MERT),
            "kbmira": _liu(_KBMIRA, 25),
            "pro": _liu(_MOSES_PRO, 25),
        },
        "The length of lists, which is that of Moses; what bins are ranked by (--ranked). Its "
        "BLEU has the average length of references: --metric bleu:length=average.",
    ),
}


def find_paper(name: str) -> Paper:
    """Return a paper; raise if there is none of the name."""
    if name not in PAPERS:
        raise InputError(f"no paper named {name!r}", remedy=f"choose one of {', '.join(PAPERS)}")
    return PAPERS[name]


def settings_of(name: str, preset: str) -> Settings:
    """Return how a paper ran a tuner; raise if it did not."""
    paper = find_paper(name)
    if preset not in paper.tuners:
        raise InputError(
            f"{name} has no settings for {preset}",
            remedy=f"choose one of {', '.join(paper.tuners)}, or leave the paper out",
        )
    return paper.tuners[preset]
