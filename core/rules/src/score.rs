//! What a table says of each rule: probabilities, lexical weights, counts, orientations.

use tunesmith_align::Link;

use crate::code::FIRST_WORD;
use crate::groups::{Entry, ORIENTATIONS, Total};
use crate::lexical::{Lexicon, NULL};
use crate::phrases::PhraseOptions;
use crate::smoothing::Discount;

/// What the numbers of a column are; a decoder takes the logarithm of probabilities.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scale {
    Probability,
    Count,
    /// To be used as it is.
    Value,
}

impl Scale {
    pub const ALL: [(&'static str, Scale); 3] =
        [("probability", Scale::Probability), ("count", Scale::Count), ("value", Scale::Value)];

    pub fn name(self) -> &'static str {
        Scale::ALL.iter().find(|known| known.1 == self).map_or("value", |known| known.0)
    }
}

/// One number of every entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    pub name: String,
    pub scale: Scale,
}

impl Column {
    pub fn new(name: impl Into<String>, scale: Scale) -> Column {
        Column { name: name.into(), scale }
    }
}

/// A rule with all that was counted.
pub struct Rule<'a> {
    pub source: &'a [u32],
    pub entry: &'a Entry,
    pub by_source: Total,
    pub by_target: Total,
    /// Where the words of the source side occur; zero where that was not counted.
    pub places: u32,
}

/// Turns counts into the columns of a table.
pub trait Scorer: Sync {
    fn columns(&self) -> Vec<Column>;
    fn score(&self, rule: &Rule<'_>, out: &mut Vec<f32>);
}

/// The four scores of Moses, the counts, and orientations where they were counted.
pub struct PhraseScorer<'a> {
    pub lexicon: &'a Lexicon,
    pub discount: Discount,
    pub options: &'a PhraseOptions,
}

/// Added to every count of orientations.
pub const ORIENTATION_SMOOTHING: f64 = 0.5;

pub const PHRASE_COLUMNS: [&str; 4] = ["p(f|e)", "lex(f|e)", "p(e|f)", "lex(e|f)"];
pub const COUNT_COLUMNS: [&str; 3] = ["count(e)", "count(f)", "count(f,e)"];

impl Scorer for PhraseScorer<'_> {
    fn columns(&self) -> Vec<Column> {
        let mut columns: Vec<Column> =
            PHRASE_COLUMNS.map(|name| Column::new(name, Scale::Probability)).into();
        columns.extend(COUNT_COLUMNS.map(|name| Column::new(name, Scale::Count)));
        for (model, _, sides) in models(self.options) {
            columns.extend(orientation_columns(model, sides));
        }
        columns
    }

    fn score(&self, rule: &Rule<'_>, out: &mut Vec<f32>) {
        let entry = rule.entry;
        let (inverse, direct) =
            self.discount.probabilities(entry.count, rule.by_source, rule.by_target);
        let by_target = |source, target| self.lexicon.direct(source, target);
        let direct_lexical = lexical(
            &entry.target,
            entry.links.iter().map(|&(source, target)| (target, rule.source[source as usize])),
            |word, other| by_target(other, word),
        );
        let inverse_lexical = lexical(
            rule.source,
            turned(&entry.inverse)
                .into_iter()
                .map(|(source, target)| (source, entry.target[target as usize])),
            |word, other| self.lexicon.inverse(word, other),
        );
        out.extend([inverse, inverse_lexical as f32, direct, direct_lexical as f32]);
        out.extend([rule.by_target.count, rule.by_source.count, entry.count].map(|n| n as f32));
        for (_, start, sides) in models(self.options) {
            for counts in entry.orientations[start..start + 8].chunks(4) {
                let &[monotone, swap, left, right] = counts else { continue };
                let classes = [monotone, swap, if sides { left } else { left + right }, right];
                let classes = &classes[..if sides { 4 } else { 3 }];
                let total: u32 = counts.iter().sum();
                let whole = f64::from(total) + classes.len() as f64 * ORIENTATION_SMOOTHING;
                let share = |&n: &u32| ((f64::from(n) + ORIENTATION_SMOOTHING) / whole) as f32;
                out.extend(classes.iter().map(share));
            }
        }
    }
}

/// The models of orientation that are asked for, where their counts start, and whether they tell
/// left from right.
fn models(options: &PhraseOptions) -> impl Iterator<Item = (&'static str, usize, bool)> {
    let (half, sides) = (ORIENTATIONS / 2, options.reordering_sides);
    let word = options.reordering.then_some(("word", 0, false));
    let block = options.hierarchical_reordering.then_some(("block", half, sides));
    word.into_iter().chain(block)
}

/// The classes of orientation: three, or four where `sides` are told apart.
pub fn orientation_classes(sides: bool) -> &'static [&'static str] {
    if sides {
        &["monotone", "swap", "left", "right"]
    } else {
        &["monotone", "swap", "discontinuous"]
    }
}

/// The columns of a bidirectional model: to the previous phrase, then to the next.
pub fn orientation_columns(model: &str, sides: bool) -> impl Iterator<Item = Column> + '_ {
    ["previous", "next"].into_iter().flat_map(move |side| {
        orientation_classes(sides)
            .iter()
            .map(move |class| Column::new(format!("{model}-{side}-{class}"), Scale::Probability))
    })
}

fn turned(links: &[Link]) -> Vec<Link> {
    let mut links = links.to_vec();
    links.sort_unstable();
    links
}

/// The product over words of the mean probability given the words they are linked to, or given
/// NULL; what was never linked counts one. Links come as (place, word), sorted by place.
fn lexical(
    words: &[u32],
    links: impl Iterator<Item = (u16, u32)>,
    probability: impl Fn(u32, u32) -> Option<f64>,
) -> f64 {
    let mut links = links.peekable();
    let mut product = 1.0;
    for (at, &word) in words.iter().enumerate() {
        let (mut sum, mut count) = (0.0, 0);
        while let Some((_, other)) = links.next_if(|&(place, _)| usize::from(place) == at) {
            sum += probability(word, other).unwrap_or(1.0);
            count += 1;
        }
        product *= match count {
            0 => probability(word, NULL).unwrap_or(1.0),
            _ => sum / f64::from(count),
        };
    }
    product
}

/// The features of cdec's extractor, and relative frequencies of fractional counts.
pub struct HieroScorer<'a> {
    pub lexicon: &'a Lexicon,
}

pub const CDEC_COLUMNS: [&str; 7] = [
    "EgivenFCoherent",
    "SampleCountF",
    "CountEF",
    "MaxLexFgivenE",
    "MaxLexEgivenF",
    "IsSingletonF",
    "IsSingletonFE",
];
/// The cost of a word that no word of the other side translates.
const NEVER: f64 = 99.0;

impl Scorer for HieroScorer<'_> {
    fn columns(&self) -> Vec<Column> {
        let mut columns: Vec<Column> =
            CDEC_COLUMNS.map(|name| Column::new(name, Scale::Value)).into();
        columns.extend(["p(f|e)", "p(e|f)"].map(|name| Column::new(name, Scale::Probability)));
        columns
    }

    fn score(&self, rule: &Rule<'_>, out: &mut Vec<f32>) {
        let entry = rule.entry;
        let (pair, places) = (entry.count as f64, f64::from(rule.places));
        let (inverse, direct) = self.costs(rule.source, &entry.target);
        let share = |total: u64| entry.weight as f64 / total.max(1) as f64;
        out.extend(
            [
                (places / pair).log10(),
                (1.0 + places).log10(),
                (1.0 + pair).log10(),
                inverse,
                direct,
                f64::from(u8::from(rule.by_source.count == 1)),
                f64::from(u8::from(entry.count == 1)),
                share(rule.by_target.weight),
                share(rule.by_source.weight),
            ]
            .map(|value| value as f32),
        );
    }
}

impl HieroScorer<'_> {
    /// For either side the sum over its words of what their best translation costs. Both sides ask
    /// for the same pairs, so they are looked up once.
    fn costs(&self, source: &[u32], target: &[u32]) -> (f64, f64) {
        let cost = |best: f64| if best > 0.0 { -best.log10() } else { NEVER };
        let mut bests: Vec<f64> =
            words(target).map(|word| self.lexicon.direct(NULL, word).unwrap_or(0.0)).collect();
        let mut inverse = 0.0;
        for word in words(source) {
            let mut best = self.lexicon.inverse(word, NULL).unwrap_or(0.0);
            for (given, other) in words(target).zip(&mut bests) {
                if let Some((one, two)) = self.lexicon.both(word, given) {
                    best = best.max(one);
                    *other = other.max(two);
                }
            }
            inverse += cost(best);
        }
        (inverse, bests.into_iter().map(cost).fold(0.0, |sum, cost| sum + cost))
    }
}

fn words(side: &[u32]) -> impl Iterator<Item = u32> + '_ {
    side.iter().copied().filter(|&code| code >= FIRST_WORD)
}
