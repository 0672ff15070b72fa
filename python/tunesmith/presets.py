"""Every algorithm by name: the only place where one has a name.

A preset is a function of its options that returns a tuner. To add one, write such a function and
decorate it with `@preset`; its keyword arguments become options of `--set`, its docstring the help.
The type of an option says which values are allowed (a `Count` is a whole number from 1 on), what it
means (`Doc`) and which values of another option it needs to have an effect (`OnlyWith`).

A docstring lists where a preset differs from its paper, with the options that are the paper's own,
and ends with one example. `--as PAPER` (`papers.py`) gives all of a paper's settings at once.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal, get_type_hints

from tunesmith import plugins
from tunesmith.errors import InputError
from tunesmith.learn import gains, selectors, updates
from tunesmith.learn.baselines import Grid, RandomSearch
from tunesmith.learn.gains import Gain
from tunesmith.learn.linesearch import LineSearch
from tunesmith.learn.local import ErrorUpdate, MarginUpdate
from tunesmith.learn.losses import Loss
from tunesmith.learn.online import Learner, Online, Regime, Schedule
from tunesmith.learn.options import (
    Amount,
    Bound,
    Count,
    Doc,
    OnlyWith,
    Option,
    Part,
    Positive,
    Range,
    Share,
    Whole,
    allowed,
    idle,
    meaning,
    refuse_idle,
    typed,
)
from tunesmith.learn.ranking import Ramp, Ranking
from tunesmith.learn.risk import Risk
from tunesmith.learn.searchaware import SearchAware
from tunesmith.learn.task import Tuner

# The largest step of the margin tuners, a third of the papers' value: on saved lists the two are
# equal, but with a live decoder one of 0.01 can turn weights so far that only bad hypotheses are
# left to learn from.
C = 0.003

# "All" candidates of a live decoder (Eidelman 2012).
WHOLE = 50_000

PRESETS: dict[str, Callable[..., Tuner]] = {}

# Options that several presets have.
GainName = Annotated[
    Literal["sentence", "background", "context"],
    Doc("what a hypothesis is worth: alone, over a background, or within the corpus"),
]
_BACKGROUND = OnlyWith("gain", ("background",))
Decay = Annotated[
    Share, Doc("what the background is multiplied by after each sentence"), _BACKGROUND
]
History = Annotated[
    Literal["1best", "oracle"],
    Doc("what goes to the background: the model's best, or y+"),
    _BACKGROUND,
]
GainScale = Annotated[
    gains.Scale,
    Doc(
        "what gains are multiplied by: 1, the sentence's length, or that with background; "
        "auto: the last where gains are over a background, else 1"
    ),
]
Average = Annotated[
    Literal["all", "updates", "epoch", "none"],
    Doc(
        "what is proposed: the mean of all steps, of those that changed something, of the last "
        "pass, or the weights as they are"
    ),
]
LargestStep = Annotated[Amount, Doc("C, the largest step; 0: as large as it takes")]
Oracle = Annotated[
    selectors.Oracle, Doc("y+: hope, lowest cost among the k best, lowest cost of all")
]
Prediction = Annotated[selectors.Prediction, Doc("y-: fear, the model's best, highest cost")]
Candidates = Annotated[
    Whole, Doc("candidates of a sentence's list; 0: all of them; forests are searched whole")
]
Unique = Annotated[bool, Doc("candidates are strings, each with its best derivation")]
Take = Annotated[Literal["best", "last"], Doc("the round that counts: the best on lists, or last")]
Spread = Annotated[
    Bound, Doc("B, which scores of a sentence may differ by at most; auto: twice `spread`")
]
ByCost = Annotated[bool, Doc("multiply B by the cost of the candidate that it is about")]
Price = Annotated[Positive, Doc("D, the largest step for the bounds")]
Passes = Annotated[Count, Doc("passes over the sentences at most")]
Patience = Annotated[
    Whole, Doc("end when so many passes in a row scored no better than the best; 0: never")
]
Rounds = Annotated[Count, Doc("rounds at most")]
Shuffle = Annotated[bool, Doc("visit sentences in another order in each pass")]
Moves = Annotated[Count, Doc("moves of each step at most")]
Violation = Annotated[Amount, Doc("violation below which no constraint is added")]
Samples = Annotated[Count, Doc("pairs that are drawn for each sentence")]
Threshold = Annotated[Amount, Doc("least difference in gain of a pair")]
Ridge = Annotated[Amount, Doc("strength of the L2 penalty")]
Eta = Annotated[Positive, Doc("η, the learning rate")]
Rate = Annotated[Positive, Doc("the learning rate")]
_PREFIXES = OnlyWith("prefixes", (True,))
Restarts = Annotated[Whole, Doc("points to search from, around the start and the best so far")]
Directions = Annotated[Whole, Doc("random directions to search along, besides the axes")]
Tolerance = Annotated[Positive, Doc("gain of a round below which a search ends")]
Coarse = Annotated[Amount, Doc("the same on forests and bins, where there are restarts")]
Wide = Annotated[Whole, Doc("more points to search from, drawn from everywhere")]
FirstSamples = Annotated[Count, Doc("pairs that are drawn in the first half of the rounds")]
KeptPairs = Annotated[Count, Doc("the most different pairs, which are kept")]
Interpolate = Annotated[Part, Doc("ψ, how far the weights move towards each round's solution")]
PairGain = Annotated[
    Literal["sentence", "context"],
    Doc("what a hypothesis is worth: alone, or within the corpus"),
]
Size = Annotated[
    Amount,
    Doc(
        "what scores of a sentence spread over in the unit of C, B, D and gains; the spread under "
        "the start weights is measured and counts as this; 0: scores as they are"
    ),
]
Sharpness = Annotated[Positive, Doc("how sharply p ∝ exp(α s) prefers high scores")]
Normalise = Annotated[bool, Doc("count features in units of their spread within lists")]


def preset(make: Callable[..., Tuner]) -> Callable[..., Tuner]:
    """Register a preset under its function's name, underscores as hyphens."""
    PRESETS[make.__name__.strip("_").replace("_", "-")] = make
    return make


@preset
def mert(
    *,
    restarts: Restarts = 30,
    directions: Directions = 0,
    tolerance: Tolerance = 1e-5,
    coarse: Coarse = 1e-3,
    wide: Wide = 0,
) -> Tuner:
    """Minimum error rate training: exact line search over the corpus score.

    Along an axis or a random direction, each hypothesis is a line; envelopes and one sweep give the
    exact best step. From the start weights and `restarts` random points around them and around
    the best so far, and from `wide` points anywhere; on forests from the start weights and from the
    best that lists of their strings lead to, where a round that gains less than `coarse` is the
    last.

    Och 2003; on forests Kumar et al. 2009. Deviation: improving axes are taken one after the other
    in random order instead of only the steepest, which needs fewer searches for the same optimum.
    Restarts are drawn near the start and the best weights (`restarts=0`, `wide=20` draws them
    anywhere, as Moses does): with weights far from those that made the lists, a decoder does not
    reach the score that the lists promise. For short lists that are only re-ranked, a distant
    optimum is as good as any other: `wide=100` finds it.

    >>> mert(restarts=0, wide=20).wide
    20
    """
    return LineSearch(restarts, directions, tolerance, coarse, wide=wide)


@preset
def pro(
    *,
    samples: Samples = 5000,
    first: FirstSamples = 500,
    threshold: Threshold = 0.05,
    keep: KeptPairs = 50,
    rounds: Rounds = 12,
    interpolate: Interpolate = 0.2,
    l2: Ridge = 1e-4,
    gain: PairGain = "context",
    take: Take = "best",
) -> Tuner:
    """Pairwise ranking optimisation: sampled pairs, logistic regression.

    min_w Σ log(1 + exp(-w·(f(a) - f(b)))) over the 50 most different of 5,000 drawn pairs per
    sentence; w <- (1 - ψ)w + ψw*.

    Hopkins & May 2011. Deviations: a pair and its mirror image have the same loss, so only one of
    the two is kept. 12 rounds of ψ = 0.2 stand for many of the paper's ψ = 0.1 with a decoding
    between each (`rounds=1`, `interpolate=0.1`). The first half of the rounds draws 500 pairs only,
    because the most different of 5,000 are too rare a kind for some models (`first=5000`). The best
    round counts, in the paper the last (`take=last`). `gain=context`, because BLEU+1 does not know
    what lengths the corpus needs (`gain=sentence`). `l2` is that of a mean over pairs: the prior of
    the paper's program is about `l2=1e-5` for 1,000 sentences.

    >>> pro(rounds=1, interpolate=0.1, first=5000, take="last", gain="sentence").interpolate
    0.1
    """
    late, early = (
        selectors.Pairs(drawn, threshold, keep) for drawn in (samples, min(first, samples))
    )
    return Ranking(late, rounds, interpolate, l2, gain == "context", early, take)


@preset
def kbmira(
    *,
    c: LargestStep = 0.02,
    passes: Passes = 60,
    decay: Decay = 0.999,
    gain: GainName = "background",
    history: History = "1best",
    gain_scale: GainScale = "background",
    average: Average = "epoch",
    shuffle: Shuffle = True,
) -> Tuner:
    """Batch k-best MIRA: hope/fear passes over all lists, the best pass's average.

    w += min(C, loss/‖Δf‖²)Δf(y+, y-), gains over a background that decays by 0.999, times its
    length; each pass proposes the average of its weights, the one with the best corpus score is
    kept.

    Cherry & Foster 2012. Deviations from Moses' program: C is twice its default (`c=0.01`): on its
    lists that gains 0.2 BLEU in tuning and loses nothing on held-out folds. The model's best goes
    to the background, there the hope (`history=oracle`). The average is that of a pass, there that
    of all updates since the first (`average=updates`). The background begins at the mean of the
    first-ranked hypotheses, there at 1 for each count; it decays with what was added, there before;
    and it follows every sentence, there only those whose hope gains more than the fear. Gains are
    multiplied by the length of sources, there of references.

    >>> kbmira(c=0.01, history="oracle", average="updates").schedule.average
    'updates'
    """
    return Online(
        learner=Learner(
            selector=selectors.HopeFear(),
            update=updates.PassiveAggressive(c),
            gain=Gain(gain, decay, history, gain_scale),
        ),
        schedule=Schedule(passes=passes, shuffle=shuffle, average=average),
        follow=False,
    )


@preset
def sa_mert(
    *,
    restarts: Restarts = 30,
    directions: Directions = 0,
    tolerance: Tolerance = 1e-5,
    coarse: Coarse = 1e-4,
    wide: Wide = 0,
) -> Tuner:
    """Search-aware MERT: the corpus score of the best of every bin, not only of the last.

    max_w BLEU(Σ_x Σ_i b(top_w(B_i(x)))), B_i(x) what the beam holds after i words of x, b the
    statistics of a partial translation with the best monotone translation of the rest
    (`--partial potential`), or of it alone (`--partial bleu`). MERT is the case i = |x|.

    Liu & Huang 2014. Deviations: those of `mert`; the last bin is the list of the 100 best whole
    translations (`--nbest`), where the paper has the beam's; restarts search a fifth of the bins,
    and only the best of them all. `restarts=0`, `wide=20` are Moses', which the paper took.

    >>> sa_mert(restarts=0, wide=20).tuner.wide
    20
    """
    return SearchAware(LineSearch(restarts, directions, tolerance, coarse, wide=wide))


@preset
def sa_mira(
    *,
    c: LargestStep = 0.02,
    passes: Passes = 25,
    decay: Decay = 0.999,
    gain: GainName = "background",
    history: History = "1best",
    gain_scale: GainScale = "background",
    average: Average = "epoch",
    shuffle: Shuffle = True,
) -> Tuner:
    """Search-aware batch MIRA: hope and fear in every bin, |x| updates for a sentence x.

    w += min(C, loss/‖Δf‖²)Δf(d+_i, d-_i) for each bin i, as in `kbmira`; the background follows
    whole translations.

    Liu & Huang 2014. Deviations: those of `kbmira` and `sa-mert`; 25 passes, because each makes |x|
    times as many updates (`passes=60` as in Moses).

    >>> sa_mira(passes=60, c=0.01, history="oracle", average="updates").tuner.schedule.passes
    60
    """
    inner = kbmira(
        c=c,
        passes=passes,
        decay=decay,
        gain=gain,
        history=history,
        gain_scale=gain_scale,
        average=average,
        shuffle=shuffle,
    )
    return SearchAware(inner)


@preset
def sa_pro(
    *,
    shorter: Annotated[
        Whole, Doc("learn from sentences with fewer words than this; 0: from all")
    ] = 10,
    samples: Samples = 5000,
    first: FirstSamples = 500,
    threshold: Threshold = 0.05,
    keep: KeptPairs = 50,
    rounds: Rounds = 12,
    interpolate: Interpolate = 0.2,
    l2: Ridge = 1e-4,
    gain: PairGain = "context",
    take: Take = "best",
) -> Tuner:
    """Search-aware PRO: pairs within every bin, of short sentences.

    As `pro`, with pairs drawn from each bin of sentences of fewer than `shorter` words: on whole
    tuning sets the paper's failed (Nakov et al. 2013 say why).

    Liu & Huang 2014. Deviations: those of `pro` and `sa-mert`; the paper took Moses' program, which
    goes all the way to each solution (`rounds=1`, `interpolate=1`).

    >>> sa_pro(rounds=1, interpolate=1.0, first=5000, take="last", gain="sentence").shorter
    10
    """
    inner = pro(
        samples=samples,
        first=first,
        threshold=threshold,
        keep=keep,
        rounds=rounds,
        interpolate=interpolate,
        l2=l2,
        gain=gain,
        take=take,
    )
    return SearchAware(inner, shorter)


@preset
def mira(
    *,
    c: LargestStep = C,
    oracle: Oracle = "M-C",
    prediction: Prediction = "M+C",
    k: Candidates = 500,
    unique: Unique = True,
    passes: Passes = 20,
    gain: GainName = "context",
    decay: Decay = 0.9,
    history: History = "1best",
    gain_scale: GainScale | None = None,
    spread: Size = 1.0,
    normalise: Normalise = True,
    average: Average = "all",
    shuffle: Shuffle = True,
) -> Tuner:
    """1-best MIRA with every strategy for choosing y+ and y-.

    y+ = argmax γ⁺s - β⁺c, y- = argmax γ⁻s + β⁻c; w += min(C, loss/‖Δf‖²)Δf(y+, y-).
    oracle: M-C, LU, MB; prediction: M+C, PB, MC. k=0 takes all candidates, of a live decoder
    50,000, as MB does.

    C and gains mean something only for scores of a certain size, so scores and features are
    measured under the start weights (`spread`, `normalise`; see `rm`).

    Eidelman 2012; Crammer et al. 2006. Deviations: scale and units (`spread=0`, `normalise=false`);
    C is a third of the paper's (`c=0.01`); one learner sees all sentences, where the paper mixes
    the weights of 20 (`--regime shards=20,mix=1`); what is proposed is the average of all steps
    (`average=none`); sentences are shuffled (`shuffle=false`); gains in context are multiplied by
    the number of sentences, and their context comes from the weights that the last pass proposed.
    With `average=none` a sentence's translation in this pass takes the place of that in the
    context, which the paper leaves alone until the pass has ended.

    >>> mira(c=0.01, spread=0, normalise=False, average="none", shuffle=False).learner.spread
    0
    """
    return Online(
        learner=Learner(
            selector=selectors.HopeFear(oracle, prediction, k, unique=unique, whole_forests=True),
            update=updates.PassiveAggressive(c),
            gain=Gain(gain, decay, history, gain_scale),
            spread=spread,
            normalise=normalise,
        ),
        schedule=Schedule(passes=passes, shuffle=shuffle, average=average),
        k=WHOLE if oracle == "MB" else k or WHOLE,
    )


@preset
def mira_hildreth(
    *,
    c: Annotated[LargestStep, OnlyWith("learner", ("mira",))] = C,
    lists: Annotated[
        Literal["hope-fear", "model-hope-fear"],
        Doc("hopes against fears, or the model's, hopes and fears against the best hope"),
    ] = "hope-fear",
    n: Annotated[Count, Doc("length of the lists of hopes and of fears")] = 1,
    passes: Passes = 10,
    gain: GainName = "context",
    decay: Decay = 0.9,
    history: History = "1best",
    gain_scale: GainScale | None = None,
    spread: Size = 1.0,
    normalise: Normalise = True,
    scale_update: Annotated[
        bool, Doc("multiply steps by the oracle's sentence BLEU"), OnlyWith("learner", ("mira",))
    ] = False,
    rate: Rate | None = None,
    decrease: Annotated[Part, Doc("what the learning rate is multiplied by after each pass")] = 1.0,
    shuffle: Shuffle = True,
    average: Average = "all",
    proposals: Annotated[
        Count, Doc("how often in a pass weights are proposed, for held-out text to choose from")
    ] = 1,
    learner: Annotated[
        Literal["mira", "perceptron"], Doc("the update: MIRA, or a perceptron")
    ] = "mira",
    stop: Annotated[Amount, Doc("end when in three passes no weight moved by more")] = 0.0,
) -> Tuner:
    """k-best MIRA by Hildreth's algorithm, with two or three lists.

    min ½‖w' - w‖² + C Σξ_j subject to w'·Δf_j >= l_j - ξ_j over all pairs of n hopes and n fears,
    or over the model's, hopes' and fears' lists against the best hope. `scale_update` multiplies
    the step by the oracle's plain gain in [0, 1], `decrease` the learning rate after each pass;
    `stop` ends when in three passes no weight moved by more (Moses used 0.01). `learner=perceptron`
    has neither `c` nor `scale_update`; its `rate` is 0.01, MIRA's 1, unless another is given.

    Hasler, Haddow & Koehn 2011. Deviations: hopes and fears are the best of one list or forest of
    the decoder, which in the paper searches for each of them; pairs whose y+ is not the better one
    are left out; scale and units as in `mira`; C (`c=0.01`); gains in the context of the corpus
    (`gain=sentence`); sentences are shuffled (`shuffle=false`); the average is that of all passes
    (`average=epoch`); training does not stop early (`stop=0.01`); one learner sees all sentences
    (`--regime shards=8,mix=5`); the tuning text chooses the weights (`--keep heldout`); start
    weights are the model's own, in the paper all of them are 0.1.

    >>> mira_hildreth(c=0.01, gain="sentence", average="epoch", stop=0.01).schedule.stop
    0.01
    """
    if rate is None:
        rate = 0.01 if learner == "perceptron" else 1.0
    rule = (
        updates.Perceptron(rate, mean=True, when="loss")
        if learner == "perceptron"
        else updates.Hildreth(c, rate, scale_update)
    )
    return Online(
        learner=Learner(
            selector=selectors.Lists(n, lists == "model-hope-fear"),
            update=rule,
            gain=Gain(gain, decay, history, gain_scale),
            spread=spread,
            normalise=normalise,
        ),
        schedule=Schedule(
            passes=passes,
            shuffle=shuffle,
            average=average,
            slow_down=decrease,
            stop=stop,
            proposals=proposals,
        ),
    )


@preset
def mira_cp(
    *,
    c: LargestStep = C,
    k: Candidates = 500,
    unique: Unique = True,
    passes: Passes = 20,
    max_iter: Moves = 100,
    epsilon: Violation = 1e-4,
    gain: GainName = "context",
    decay: Decay = 0.9,
    gain_scale: GainScale | None = None,
    spread: Size = 1.0,
    normalise: Normalise = True,
    average: Average = "all",
    shuffle: Shuffle = True,
) -> Tuner:
    """MIRA with a cutting plane: the most violated hypothesis is added until none is left.

    w = w_t + Σ α_y (f(y+) - f(y)), Σα = C, mass moved between two members at a time.

    Chiang 2012. Deviations: those of `mira`.

    >>> mira_cp(c=0.01, max_iter=10).learner.update.max_iter
    10
    """
    return Online(
        learner=Learner(
            selector=selectors.HopeFear(k=k, unique=unique, whole_forests=True),
            update=updates.CuttingPlane(c, epsilon, max_iter=max_iter),
            gain=Gain(gain, decay, scale=gain_scale),
            spread=spread,
            normalise=normalise,
        ),
        schedule=Schedule(passes=passes, shuffle=shuffle, average=average),
        k=k or WHOLE,
    )


def _bound(name: str, bound: float | None, spread: float) -> float:
    """Return B; raise if it is to be found from a spread that is not measured."""
    if bound is None and spread == 0.0:
        raise InputError(
            f"{name}.bound is auto, but no spread is measured",
            remedy="give bound=NUMBER, or spread=1",
        )
    return 2.0 * spread if bound is None else bound


@preset
def rm(
    *,
    c: LargestStep = C,
    bound: Spread | None = None,
    by_cost: ByCost = False,
    price: Price = C,
    oracle: Oracle = "M-C",
    prediction: Prediction = "M+C",
    k: Candidates = 500,
    unique: Unique = True,
    passes: Passes = 20,
    gain: GainName = "context",
    decay: Decay = 0.9,
    gain_scale: GainScale | None = None,
    spread: Size = 1.0,
    normalise: Normalise = True,
    average: Average = "all",
    shuffle: Shuffle = True,
) -> Tuner:
    """Relative margin, closed form: MIRA's step, then a bound on the spread of scores.

    After the step on (y+, y-): if s(y+) - s(y_w) > B for the lowest-scoring y_w, go back by
    min(D, (Δs - B)/‖Δf‖²); if some s(y) > s(y+) + B, forward likewise. B → ∞ is MIRA.
    C, D and B mean something only for weights of a certain size, which decoding leaves open. So
    the size of scores is measured under the start weights: what they spread over in a sentence, in
    the mean, counts as `spread`. `bound=auto` is twice that; `spread=0` takes scores as they are.
    `normalise` measures features in units of their own, so that a step for a bound does not turn
    the weights towards the features with the largest numbers.

    Eidelman, Marton & Resnik 2013. Both bounds are enforced, as in the paper; `by_cost` is its
    footnote on costs. Deviations: those of `mira`, the paper having 15 learners; the paper has
    C = D = 0.01 (`c=0.01`, `price=0.01`), D = 0.1 for sparse features, and B = 1 whatever the
    weights (`bound=1`, `spread=0`, which shrinks weights whose scores spread further); candidates
    for the bounds are the k best strings, of forests too. With sparse features these defaults do
    not gain over `mira`, as the paper's `rm` does (docs/benchmarks.md).

    >>> rm(c=0.01, bound=1.0, price=0.01, spread=0, normalise=False).learner.selector.bound
    1.0
    """
    return Online(
        learner=Learner(
            selector=selectors.Bounded(
                selectors.HopeFear(oracle, prediction, k, unique=unique, whole_forests=True),
                _bound("rm", bound, spread),
                price,
                k,
                unique,
                by_cost,
            ),
            update=updates.PassiveAggressive(c),
            gain=Gain(gain, decay, scale=gain_scale),
            spread=spread,
            normalise=normalise,
        ),
        schedule=Schedule(passes=passes, shuffle=shuffle, average=average),
        k=WHOLE if oracle == "MB" else k or WHOLE,
    )


@preset
def rm_cp(
    *,
    c: LargestStep = C,
    bound: Spread | None = None,
    by_cost: ByCost = False,
    price: Price = C,
    oracle: Oracle = "M-C",
    prediction: Prediction = "M+C",
    k: Candidates = 500,
    unique: Unique = True,
    passes: Passes = 20,
    max_iter: Moves = 100,
    epsilon: Violation = 1e-4,
    epsilon_bound: Annotated[Amount, Doc("the same for the bounds")] = 1e-4,
    gain: GainName = "context",
    decay: Decay = 0.9,
    gain_scale: GainScale | None = None,
    spread: Size = 1.0,
    normalise: Normalise = True,
    average: Average = "all",
    shuffle: Shuffle = True,
) -> Tuner:
    """Relative margin by cutting planes: three working sets, the largest violation first.

    Sets for the margin and for the upper and the lower bound; each is optimised in turn until the
    weights stop changing. Scale and bounds are those of `rm`.

    Eidelman, Marton & Resnik 2013. Deviations: those of `rm`; a bound's set has a mass of D to
    spend, as its slack in eq. 4 asks, where the paper's Algorithm 2 names no limit; a bound is
    added if it is violated by more than those that are there, where Algorithm 1 compares it with
    nothing.

    >>> rm_cp(bound=1.0, spread=0).learner.update.max_iter
    100
    """
    return Online(
        learner=Learner(
            selector=selectors.Bounded(
                selectors.HopeFear(oracle, prediction, k, unique=unique, whole_forests=True),
                _bound("rm-cp", bound, spread),
                price,
                k,
                unique,
                by_cost,
            ),
            update=updates.CuttingPlane(c, epsilon, epsilon_bound, max_iter),
            gain=Gain(gain, decay, scale=gain_scale),
            spread=spread,
            normalise=normalise,
        ),
        schedule=Schedule(passes=passes, shuffle=shuffle, average=average),
        k=WHOLE if oracle == "MB" else k or WHOLE,
    )


@preset
def adagrad(
    *,
    loss: Annotated[
        Literal["logistic", "hinge", "expected"], Doc("of pairs, or the expected gain")
    ] = "logistic",
    eta: Eta = 0.02,
    l1: Annotated[Amount, Doc("λ of the L1 penalty, which makes weights zero")] = 0.1,
    shrink: Annotated[
        updates.Shrink,
        Doc("L1 after every step, late as in Phrasal, or only of what a step touches"),
    ] = "exact",
    l2: Ridge = 0.0,
    samples: Annotated[Samples, OnlyWith("loss", ("logistic", "hinge"))] = 5000,
    threshold: Annotated[Threshold, OnlyWith("loss", ("logistic", "hinge"))] = 0.05,
    pairs: Annotated[
        Count, Doc("pairs that are kept of each sentence"), OnlyWith("loss", ("logistic", "hinge"))
    ] = 15,
    k: Annotated[Count, Doc("length of the lists of a live decoder")] = 200,
    passes: Passes = 10,
    patience: Patience = 0,
    alpha: Annotated[Sharpness, OnlyWith("loss", ("expected",))] = 1.0,
    gain: GainName = "context",
    average: Average = "none",
    shuffle: Shuffle = True,
) -> Tuner:
    """AdaGrad on sampled pairs with L1 by FOBOS: for very many sparse features.

    Per coordinate G += g², w -= ηg/√G, w <- sign(w)[|w| - λη/√G]₊, on Σ log(1 + exp(-w·x)) over
    15 pairs of each of 20 sentences. Idle features cost nothing. `loss=expected` follows the
    gradient of the expected gain instead of pairs. A live decoder makes lists of `k`.

    Green et al. 2013; Duchi et al. 2011. Deviations: `gain=context`, with which the hierarchical
    model ends 0.2 BLEU higher than with the paper's `sentence`. 5,000 pairs are drawn, by the
    paper's program 500 (`samples=500`). Ten passes, where the paper goes on until convergence
    (`passes=50`, `patience=3`). Batches come one after the other, where the paper's threads are
    late (`--regime batch=20,delay=15,ordered=false`). Start weights are the model's own. L1 is
    exact, as if applied after each step, as the paper says; its program reads weights unshrunk
    between steps that touch them, and counts each pair twice (`shrink=phrasal`).
    `shrink=touched` shrinks only the weights that a step touches, all once after a pass: it keeps
    rare features that the other two remove.

    >>> adagrad(gain="sentence", samples=500, shrink="phrasal").learner.update.shrink
    'phrasal'
    """
    name: Loss = "linear" if loss == "expected" else loss
    selector = (
        selectors.Expected(alpha)
        if loss == "expected"
        else selectors.Pairs(samples, threshold, pairs)
    )
    return Online(
        learner=Learner(
            selector=selector,
            update=updates.AdaGrad(name, eta, l1, l2, shrink),
            gain=Gain(gain),
        ),
        schedule=Schedule(passes=passes, shuffle=shuffle, average=average, patience=patience),
        regime=Regime(batch=20),
        k=k,
    )


@preset
def arow(
    *,
    r: Annotated[Positive, Doc("how slowly confidence grows")] = 30.0,
    variance: Annotated[Positive, Doc("of weights at the start")] = 1.0,
    rate: Rate = 1.0,
    linear: Annotated[bool, Doc("the linearised form")] = False,
    passes: Passes = 20,
    gain: GainName = "context",
    decay: Decay = 0.9,
    gain_scale: GainScale | None = None,
    average: Average = "all",
    shuffle: Shuffle = True,
) -> Tuner:
    """Adaptive regularisation of weights: hope/fear with a confidence per weight.

    v = xᵀΣx, β = 1/(v + r): w += β·loss·Σx, Σ -= β(Σx)², Σ diagonal.

    Crammer, Kulesza & Dredze 2009; Chiang 2012 for translation; linearised form: Green et al. 2013,
    eq. 11. Deviations: the margin asked for is the difference of the gains, not 1; what is proposed
    is the average of all steps (`average=none`).

    >>> arow(r=10.0, average="none").learner.update.r
    10.0
    """
    return Online(
        learner=Learner(
            selector=selectors.HopeFear(),
            update=updates.Arow(r, rate, variance, linear),
            gain=Gain(gain, decay, scale=gain_scale),
        ),
        schedule=Schedule(passes=passes, shuffle=shuffle, average=average),
    )


@preset
def perceptron(
    *,
    rate: Rate = 0.003,
    oracle: Oracle = "M-C",
    beta: Annotated[
        Positive,
        Doc("β, how much gains count beside scores where hopes are chosen"),
        OnlyWith("oracle", ("M-C",)),
    ] = 0.4,
    prediction: Prediction = "PB",
    passes: Passes = 20,
    gain: GainName = "context",
    average: Average = "all",
    shuffle: Shuffle = True,
) -> Tuner:
    """The averaged structured perceptron: w += η(f(y+) - f(ŷ)) when the model's best is worse.

    y+ = argmax s + βG. The size of a step depends on the difference of the features, not of the
    gains, so hopes should lie near the model's best. The lower β, the closer a step comes to the
    gradient of the gain (McAllester, Hazan & Keshet 2010), and the fewer steps there are. With
    β = 1 a live decoder can diverge in the first pass.

    Collins 2002; Liang et al. 2006 on hopes near the model's best. Deviations: y+ is a hope, where
    Collins has the reference itself; batches add the mean of their steps.

    >>> perceptron(oracle="LU").learner.selector.oracle
    'LU'
    """
    return Online(
        learner=Learner(
            selector=selectors.HopeFear(oracle, prediction, beta=beta),
            update=updates.Perceptron(rate, mean=True),
            gain=Gain(gain),
        ),
        schedule=Schedule(passes=passes, shuffle=shuffle, average=average),
    )


@preset
def maxforce(
    *,
    update: Annotated[
        selectors.Fix, Doc("the step of the search that is corrected")
    ] = "max-violation",
    learner: Annotated[
        Literal["perceptron", "mira", "kbest-mira"],
        Doc("the update: a perceptron, MIRA on the best of the beam, or on the k best"),
    ] = "perceptron",
    rate: Annotated[Rate, OnlyWith("learner", ("perceptron",))] = 0.001,
    c: Annotated[LargestStep, OnlyWith("learner", ("mira", "kbest-mira"))] = 0.001,
    margin: Annotated[
        Positive,
        Doc("what gold is to win by"),
        OnlyWith("learner", ("mira", "kbest-mira")),
    ] = 1.0,
    k: Annotated[
        Count,
        Doc("derivations of the beam that gold is to beat"),
        OnlyWith("learner", ("kbest-mira",)),
    ] = 10,
    future: Annotated[bool, Doc("compare scores with what is hoped for the rest")] = False,
    prefixes: Annotated[
        bool, Doc("learn from the longest part of a reference that cannot be reached")
    ] = True,
    least: Annotated[Count, Doc("words that such a part must have"), _PREFIXES] = 5,
    passes: Passes = 10,
    average: Average = "all",
    shuffle: Shuffle = True,
) -> Tuner:
    """Violation-fixing learning from forced decoding, where the beam loses the reference.

    w += η(f(d⁺_i) - f(d⁻_i)): d⁺_i is the best derivation that covers i words and leads to the
    reference, d⁻_i the best in the beam, i the step at which d⁺_i falls behind by most
    (`update=max-violation`), the first at which the beam has lost all gold derivations (`early`),
    or the last (`standard`). Updates are made only where d⁻_i scores as high as d⁺_i, except with
    `update=unchecked`. MIRA asks for w·(f(d⁺_i) - f(d⁻_i)) >= margin with the smallest change, up
    to steps of C. Of a batch, MIRA solves one quadratic program, and the perceptron adds the mean.
    Each reference makes a pair of its own with the sentence. Needs a phrase-based decoder.

    Yu et al. 2013; Huang, Fayong & Guo 2012; Zhao & Huang 2013 for batches; references as in Liu &
    Huang 2014, figure 6. Deviations: learning starts from given weights, so `rate` is small; which
    references can be reached is found anew at each visit, because the table limit depends on the
    weights. Voted weights are not offered: hardly any weights survive a visit, and votes of a few
    were worse than the average (docs/maxforce.md), which weighs each by how long it survived, as
    the vote does (Freund & Schapire 1999; Collins 2002).

    >>> maxforce(update="early", learner="mira", c=0.01).learner.update.c
    0.01
    """
    rule: updates.Update = (
        updates.Perceptron(rate, mean=True, when="always" if update == "unchecked" else "wrong")
        if learner == "perceptron"
        else updates.Hildreth(c)
    )
    return Online(
        learner=Learner(
            selector=selectors.Violations(
                update,
                k if learner == "kbest-mira" else 1,
                future,
                least if prefixes else None,
                margin,
            ),
            update=rule,
            # Constraints ask for a margin, whatever the metric says of partial translations.
            gain=Gain(),
        ),
        schedule=Schedule(passes=passes, shuffle=shuffle, average=average),
    )


@preset
def rampion(
    *,
    rounds: Rounds = 10,
    passes: Annotated[Whole, Doc("passes over the fears in each round")] = 5,
    eta: Eta = 1e-4,
    l2: Ridge = 1e-3,
    cost: Annotated[Positive, Doc("α, what costs are multiplied by")] = 1.0,
    gain_scale: GainScale = "one",
    take: Take = "best",
) -> Tuner:
    """Ramp loss: hopes fixed, sub-gradient passes over the fears, repeated.

    min_w Σ -max(s - αc) + max(s + αc) + l2/2 ‖w - w0‖² by the concave-convex procedure.

    Gimpel & Smith 2012. Deviations: costs count as they are, in cdec's program ten times
    (`cost=10`); the best round counts, in the paper the last (`take=last`). cdec's program pulls
    the weights towards zero.

    >>> rampion(cost=10.0, take="last").gain.times
    10.0
    """
    return Ramp(rounds, passes, eta, l2, Gain(scale=gain_scale, times=cost), take)


@preset
def risk(
    *,
    alpha: Sharpness = 1.0,
    # Beyond these α is no number any more.
    anneal: Annotated[
        float, Range(1, 10), Doc("what alpha is multiplied by after each step")
    ] = 2.0,
    steps: Annotated[int, Range(1, 100), Doc("values of alpha, one after the other")] = 8,
    iterations: Annotated[Count, Doc("steps of L-BFGS at each alpha at most")] = 30,
    l2: Ridge = 1e-4,
    objective: Annotated[
        Literal["sentence", "corpus"], Doc("mean gain of sentences, or gain of the corpus")
    ] = "corpus",
) -> Tuner:
    """Minimum risk: maximise the expected gain under p ∝ exp(α s), α annealed.

    Smith & Eisner 2006. Deviations: α is multiplied by `anneal` at each step, and no entropy is
    asked for; `objective=corpus` is the metric of the expected statistics, where the paper expands
    the logarithm of BLEU; L2 pulls towards the weights before the step.

    >>> risk(objective="sentence").steps
    8
    """
    return Risk(alpha, anneal, steps, iterations, l2, objective)


@preset
def mbuu(
    *,
    strength: Annotated[Amount, Doc("λ, how much the loss counts; 0 changes nothing")] = 0.018,
    normalise: Normalise = False,
    tolerance: Annotated[Positive, Doc("duality gap to stop at, relative to the loss")] = 1e-3,
) -> Tuner:
    """Margin based ultraconservative update: weights for one sentence, near those of all.

    min ½‖W - W_b‖² + λ/K Σ_j max_n (l_jn - W·Δh_jn) over K lists, W_b the start weights; exact
    dual with a simplex of mass λ/K for each list.

    Liu et al. 2012. Deviations: the weights are scaled so that the mean standard deviation of
    scores within a list is 1, because λ depends on their size; l_jn is the difference of sentence
    gains (BLEU+1) alone, where the paper's follow a background; the oracle is the best gain of the
    list, among equals the model's best.

    >>> mbuu(strength=0.018)
    MarginUpdate(strength=0.018, normalise=False, tolerance=0.001, passes=100)
    """
    return MarginUpdate(strength, normalise, tolerance)


@preset
def ebuu(
    *,
    strength: Annotated[Amount, Doc("λ, how much the error counts; 0 changes nothing")] = 2.0,
    alpha: Sharpness = 1.0,
    normalise: Normalise = False,
    tolerance: Annotated[Positive, Doc("move to stop at, relative to the largest")] = 1e-2,
) -> Tuner:
    """Error rate based ultraconservative update: weights for one sentence, near those of all.

    min ½‖W - W_b‖² + λ/K Σ_j Σ_e Err(e) P_α(e | f_j; W) over K lists, P_α ∝ exp(α W·h), W_b the
    start weights, Err = -gain (BLEU+1).

    Liu et al. 2012. Deviations: the scale of the weights as in `mbuu`; spectral projected gradient
    where the paper has gradient descent, with the same starting point, W_b. λ = 2 was chosen on
    development text; the paper's 0.06, in the scale of its weights, would hardly move ours. The
    paper does not give its α.

    >>> ebuu(strength=0.06).strength
    0.06
    """
    return ErrorUpdate(strength, alpha, normalise, tolerance)


@preset
def random(
    *,
    tries: Annotated[Count, Doc("random points")] = 1000,
) -> Tuner:
    """Random search: a baseline.

    >>> random(tries=10).tries
    10
    """
    return RandomSearch(tries)


@preset
def grid(
    *,
    points: Annotated[int, Range(2), Doc("values to try for each weight")] = 11,
    budget: Annotated[Whole, Doc("points of a whole grid at most")] = 5000,
    rounds: Rounds = 5,
) -> Tuner:
    """Grid search: a baseline; one weight at a time where the whole grid is too large.

    >>> grid(points=3).points
    3
    """
    return Grid(points, budget, rounds)


def preset_names() -> list[str]:
    """Return the names of all presets, those of installed packages too."""
    plugins.load("presets")
    return list(PRESETS)


def find_preset(name: str) -> Callable[..., Tuner]:
    """Return the function behind a preset's name; raise if there is none."""
    if name not in PRESETS and name not in preset_names():
        raise InputError(f"no tuner named {name!r}", remedy=f"choose one of {', '.join(PRESETS)}")
    return PRESETS[name]


def make_tuner(name: str, options: Mapping[str, Any] | None = None) -> Tuner:
    """Return the preset's tuner; text options are read as the types that the preset declares.

    Refuses unknown presets, unknown options, values of the wrong kind or out of range, naming what
    there is, and options that have no effect beside the others.
    """
    make = find_preset(name)
    known = preset_options(name)
    hints = get_type_hints(make, include_extras=True)
    given = {}
    for key, value in (options or {}).items():
        field = key.replace("-", "_")
        if field not in known:
            remedy = f"it has {', '.join(known) or 'none'}"
            if field in get_type_hints(Regime):
                remedy = f"choose a regime with --regime {field}={value}"
            raise InputError(f"{name} has no option {key!r}", remedy=remedy)
        given[field] = typed(f"{name}.{key}", value, hints[field])
    refuse_idle(name, hints, known, given)
    return make(**given)


def idle_options(name: str, options: Mapping[str, Any]) -> set[str]:
    """Return the options that have no effect beside the others."""
    hints = get_type_hints(find_preset(name), include_extras=True)
    return {key for key, _, _ in idle(hints, preset_options(name), options)}


def preset_options(name: str) -> dict[str, Any]:
    """Return the options of a preset with their defaults."""
    parameters = inspect.signature(find_preset(name)).parameters
    return {key: parameter.default for key, parameter in parameters.items()}


def explained(name: str) -> dict[str, Option]:
    """Return the options of a preset with their defaults, allowed values and meanings.

    >>> explained("mira")["decay"].allowed
    'a number from 0 up to 1'
    """
    hints = get_type_hints(find_preset(name), include_extras=True)
    known = preset_options(name)
    return {
        key: Option(default, allowed(hints[key]), meaning(hints[key]))
        for key, default in known.items()
    }
