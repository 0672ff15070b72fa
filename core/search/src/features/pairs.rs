//! Words that a rule translates, leaves out or adds.
//!
//! [`Pairs`] and [`Deletions`] are AL of Green et al. 2013; [`Pairs`] and [`Insertions`] are the
//! word pair and insertion features of Eidelman 2012.

use super::{OnRule, Rule, Sink, word};
use crate::Spelling;

static PAIR: Spelling = Spelling::constant("WP:");
static DELETION: Spelling = Spelling::constant("WD:");
static INSERTION: Spelling = Spelling::constant("WI:");
static BETWEEN: Spelling = Spelling::constant("~");

/// Linked words: `WP:haus~house`.
pub struct Pairs;

impl OnRule for Pairs {
    fn find(&self, rule: &Rule<'_>, out: &mut dyn Sink) {
        for (from, to) in rule.pairs() {
            out.add(&[&PAIR, rule.words.source(from), &BETWEEN, rule.words.target(to)], 1.0);
        }
    }
}

/// Source words without a link: `WD:ja`.
pub struct Deletions;

impl OnRule for Deletions {
    fn find(&self, rule: &Rule<'_>, out: &mut dyn Sink) {
        for from in rule.free_source() {
            out.add(&[&DELETION, rule.words.source(from)], 1.0);
        }
    }
}

/// Target words without a link, each with every source word of the rule: `WI:haus~the`.
pub struct Insertions;

impl OnRule for Insertions {
    fn find(&self, rule: &Rule<'_>, out: &mut dyn Sink) {
        for to in rule.free_target() {
            for from in (0..rule.source.len()).filter_map(|at| word(rule.source, at)) {
                let name = [&INSERTION, rule.words.source(from), &BETWEEN, rule.words.target(to)];
                out.add(&name, 1.0);
            }
        }
    }
}
