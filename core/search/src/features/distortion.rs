//! Whether what fills a gap is moved, by its number of words (structural distortion of Chiang et
//! al. 2008; Eidelman et al. 2013): `SD:moved:3`, `SD:kept:10+`.

use std::ops::Range;

use tunesmith_rules::Symbol;

use super::{OnPlace, Rule, Sink};
use crate::{Sentence, Spelling};

static KEPT: Spelling = Spelling::constant("SD:kept:");
static MOVED: Spelling = Spelling::constant("SD:moved:");
/// From one word on; the last is for all longer spans.
static SIZES: [Spelling; 10] = [
    Spelling::constant("1"),
    Spelling::constant("2"),
    Spelling::constant("3"),
    Spelling::constant("4"),
    Spelling::constant("5"),
    Spelling::constant("6"),
    Spelling::constant("7"),
    Spelling::constant("8"),
    Spelling::constant("9"),
    Spelling::constant("10+"),
];

pub struct Distortion;

impl OnPlace for Distortion {
    fn find(
        &self,
        rule: &Rule<'_>,
        _: &Sentence<'_>,
        _: Range<usize>,
        gaps: &[Range<usize>],
        out: &mut dyn Sink,
    ) {
        for (number, span) in (1..).zip(gaps) {
            let size = &SIZES[span.len().clamp(1, SIZES.len()) - 1];
            out.add(&[if is_moved(rule, number) { &MOVED } else { &KEPT }, size], 1.0);
        }
    }
}

/// Whether the gap lies before a word or gap on one side and behind it on the other.
fn is_moved(rule: &Rule<'_>, number: u8) -> bool {
    let Some((from, to)) = places(rule, number) else { return false };
    let links = rule.links.iter().map(|&(from, to)| (usize::from(from), usize::from(to)));
    let others = [1, 2].into_iter().filter_map(|other| places(rule, other));
    links.chain(others).any(|link| (link.0 < from && link.1 > to) || (link.0 > from && link.1 < to))
}

fn places(rule: &Rule<'_>, number: u8) -> Option<(usize, usize)> {
    let place = |side: &[Symbol]| side.iter().position(|&symbol| symbol == Symbol::Gap(number));
    Some((place(rule.source)?, place(rule.target)?))
}
