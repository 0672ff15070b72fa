//! The rules of a source side under some weights: scored and sorted once, kept for all sentences.

use tunesmith_align::Link;
use tunesmith_lm::Ends;
use tunesmith_rules::Symbol;

use super::decoder::Weighted;
use super::facts::{Facts, Shape, Sides};
use crate::cache::Held as Kept;
use crate::words::Held;

/// One rule.
#[derive(Debug, Clone)]
pub struct Entry {
    /// All that is known without knowing what fills the gaps, the language model's view of its
    /// words included.
    pub score: f32,
    /// What `score` may become when the words behind its gaps are in their context.
    pub hope: f32,
    pub shape: Shape,
}

/// The rules of one source side, highest hope first.
#[derive(Debug, Clone)]
pub struct Group {
    pub gaps: usize,
    pub entries: Vec<Entry>,
    sides: Sides,
}

impl Group {
    /// The best `limit` of the rules that are known (all if 0); `base` is a part of each score.
    pub fn new(facts: &Facts, weighted: &Weighted, base: f32, limit: usize) -> Group {
        let scored = facts.list.iter().zip(facts.scores(weighted, base));
        let mut entries: Vec<Entry> =
            scored.map(|(fact, (score, hope))| Entry { score, hope, shape: fact.shape }).collect();
        let place = |entry: &Entry| entry.shape.place;
        if limit > 0 && entries.len() > limit {
            let better =
                |a: &Entry, b: &Entry| b.score.total_cmp(&a.score).then(place(a).cmp(&place(b)));
            entries.select_nth_unstable_by(limit, better);
            entries.truncate(limit);
            entries.shrink_to_fit();
        }
        let higher = |a: &Entry, b: &Entry| b.hope.total_cmp(&a.hope).then(place(a).cmp(&place(b)));
        entries.sort_unstable_by(higher);
        Group { gaps: facts.gaps, entries, sides: facts.sides.clone() }
    }

    /// The same with entities where placeholders, symbols of the source side, are translated;
    /// without rules that lose one. `links` are those of all rules of the source side.
    pub fn holding(&self, held: &[(Held, usize)], links: &[Vec<Link>]) -> Group {
        let mut kept = self.clone();
        kept.entries.retain(|Entry { shape, .. }| {
            let side = kept.sides.target_mut(shape);
            held.iter().all(|(held, symbol)| {
                let found = held.find(*symbol, &links[shape.place as usize], side);
                found.map(|at| side[at] = Symbol::Word(held.entity)).is_some()
            })
        });
        kept
    }

    /// The run of words before (0), between (1) or behind (2) the gaps.
    #[inline]
    pub fn run(&self, entry: &Entry, number: usize) -> Option<Ends> {
        self.sides.run(&entry.shape, number)
    }

    pub fn target(&self, entry: usize) -> &[Symbol] {
        self.sides.target(&self.entries[entry].shape)
    }
}

impl Kept for Group {
    fn bytes(&self) -> usize {
        size_of::<Group>() + size_of_val(&self.entries[..]) + self.sides.bytes()
    }
}
