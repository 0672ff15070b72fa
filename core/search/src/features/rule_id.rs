//! A feature for each rule (PT of Green et al. 2013; Eidelman et al. 2013): `PT:das_haus~the_house`.

use tunesmith_rules::Symbol;
use tunesmith_text::Piece;

use super::{OnRule, Rule, Sink};
use crate::Spelling;

static PREFIX: Spelling = Spelling::constant("PT:");
static NOTHING: Spelling = Spelling::constant("");
static BETWEEN_WORDS: Spelling = Spelling::constant("_");
static BETWEEN_SIDES: Spelling = Spelling::constant("~");
static GAPS: [Spelling; 2] = [Spelling::constant("[X,1]"), Spelling::constant("[X,2]")];

pub struct RuleId;

impl OnRule for RuleId {
    fn find(&self, rule: &Rule<'_>, out: &mut dyn Sink) {
        out.add_rule(&PREFIX, rule, 1.0);
    }
}

/// The name of a rule, behind a prefix.
pub(super) fn name<'a>(prefix: &'a Spelling, rule: &Rule<'a>) -> Vec<&'a Spelling> {
    let mut parts = Vec::with_capacity(2 * (rule.source.len() + rule.target.len()) + 1);
    let words = rule.words;
    parts.push(prefix);
    for symbol in rule.source {
        parts.push(part(*symbol, |word| words.source(word)));
        parts.push(&BETWEEN_WORDS);
    }
    // What stands between words stood behind the last one.
    parts.truncate(parts.len() - usize::from(!rule.source.is_empty()));
    parts.push(&BETWEEN_SIDES);
    for symbol in rule.target {
        parts.push(part(*symbol, |word| words.target(word)));
        parts.push(&BETWEEN_WORDS);
    }
    parts.truncate(parts.len() - usize::from(!rule.target.is_empty()));
    parts
}

/// The name of a rule by itself, as far as keys need it.
pub(super) fn piece(rule: &Rule<'_>) -> Piece {
    let parts = name(&NOTHING, rule);
    parts.iter().fold(Piece::EMPTY, |front, part| front.then(part.piece()))
}

fn part<'a>(symbol: Symbol, spell: impl Fn(u32) -> &'a Spelling) -> &'a Spelling {
    match symbol {
        Symbol::Word(word) => spell(word),
        Symbol::Gap(number) => gap(number),
    }
}

/// How a gap is written; rules have two at most.
pub(super) fn gap(number: u8) -> &'static Spelling {
    &GAPS[usize::from(number.clamp(1, 2)) - 1]
}
