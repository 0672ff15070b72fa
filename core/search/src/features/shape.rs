//! The sequence of words and gaps of a rule, with runs of words taken as one (Chiang et al. 2008;
//! Eidelman et al. 2013): `RS:w_[X,1]~[X,1]_w`.

use tunesmith_rules::Symbol;

use super::rule_id::gap;
use super::{OnRule, Rule, Sink};
use crate::Spelling;

static PREFIX: Spelling = Spelling::constant("RS:");
static WORDS: Spelling = Spelling::constant("w");
static BETWEEN_RUNS: Spelling = Spelling::constant("_");
static BETWEEN_SIDES: Spelling = Spelling::constant("~");

pub struct Shape;

impl OnRule for Shape {
    fn find(&self, rule: &Rule<'_>, out: &mut dyn Sink) {
        let mut name = vec![&PREFIX];
        runs(rule.source, &mut name);
        name.push(&BETWEEN_SIDES);
        runs(rule.target, &mut name);
        out.add(&name, 1.0);
    }
}

fn runs(side: &[Symbol], name: &mut Vec<&Spelling>) {
    let word = |symbol: Symbol| matches!(symbol, Symbol::Word(_));
    for (at, run) in side.chunk_by(|&one, &next| word(one) && word(next)).enumerate() {
        if at > 0 {
            name.push(&BETWEEN_RUNS);
        }
        name.push(match run[0] {
            Symbol::Word(_) => &WORDS,
            Symbol::Gap(number) => gap(number),
        });
    }
}
