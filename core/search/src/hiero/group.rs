//! The rules of a source side under some weights: scored and sorted once, kept for all sentences.

use tunesmith_align::Link;
use tunesmith_lm::Ends;
use tunesmith_rules::{Node, Symbol};

use super::decoder::Weighted;
use super::model::Model;
use crate::ModelWords;
use crate::cache::Held as Kept;
use crate::features::{Rule, Total};
use crate::words::Held;

/// One rule: words, a gap, words, another gap, words; none of them need be there.
#[derive(Debug, Clone)]
pub struct Entry {
    /// Its place among the rules of the source side.
    pub place: u32,
    /// All that is known without knowing what fills the gaps, the language model's view of its
    /// words included.
    pub score: f32,
    /// What `score` may become when the words behind its gaps are in their context.
    pub hope: f32,
    /// Decimal logarithm that the language model gives to its words, as part of `score`.
    pub lm: f32,
    /// Where runs of words before, between and behind the gaps are in [`Group::runs`], or
    /// [`NO_RUN`].
    runs: [u32; 3],
    /// Whether the second gap comes first on the target side.
    pub swapped: bool,
    /// The target side: a range of [`Group::symbols`].
    start: u32,
    end: u32,
}

const NO_RUN: u32 = u32::MAX;

/// The rules of one source side, highest hope first.
#[derive(Debug, Clone, Default)]
pub struct Group {
    pub gaps: usize,
    pub entries: Vec<Entry>,
    /// Ends of runs of words, packed.
    runs: Vec<u32>,
    symbols: Vec<Symbol>,
}

impl Group {
    /// The best `limit` rules in the table (all if 0).
    pub fn of_node(
        model: &Model,
        weighted: &Weighted,
        source: &[Symbol],
        node: Node,
        limit: usize,
    ) -> Group {
        let mut group = Group::default();
        let words = ModelWords::new(&model.table, &model.lexicon);
        let (mut target, mut links) = (Vec::new(), Vec::new());
        let extras = &model.extras.rule;
        for (place, entry) in model.table.entries(node).enumerate() {
            target.clear();
            target.extend(entry.target());
            links.clear();
            if !extras.is_empty() {
                links.extend(entry.links());
            }
            let gaps = count_gaps(&target);
            // A damaged table must not lead out of bounds.
            let known = |symbol: &Symbol| match symbol {
                Symbol::Word(word) => (*word as usize) < model.table.target_words(),
                Symbol::Gap(gap) => (1..=gaps).contains(&usize::from(*gap)),
            };
            if gaps != count_gaps(source) || target.is_empty() || !target.iter().all(known) {
                continue;
            }
            let columns = weighted.scores.iter().zip(&model.dense.scores);
            let mut score: f32 = columns.map(|(w, (_, column))| w * column.of(entry.scores)).sum();
            let rule = Rule {
                source,
                target: &target,
                links: &links,
                scores: entry.scores,
                words: &words,
            };
            score += extra(model, weighted, &rule);
            score += weighted.arity[gaps];
            group.add(model, weighted, &target, score, place as u32, |word| {
                model.lexicon.lm_id(word)
            });
        }
        if limit > 0 && group.entries.len() > limit {
            let better =
                |a: &Entry, b: &Entry| b.score.total_cmp(&a.score).then(a.place.cmp(&b.place));
            group.entries.sort_unstable_by(better);
            group.entries.truncate(limit);
            group.drop_unused();
        }
        let higher = |a: &Entry, b: &Entry| b.hope.total_cmp(&a.hope).then(a.place.cmp(&b.place));
        group.entries.sort_unstable_by(higher);
        group.entries.shrink_to_fit();
        group.runs.shrink_to_fit();
        group.symbols.shrink_to_fit();
        group
    }

    /// The same with entities where placeholders, symbols of the source side, are translated;
    /// without rules that lose one. `links` are those of all rules of the source side.
    pub fn holding(&self, held: &[(Held, usize)], links: &[Vec<Link>]) -> Group {
        let mut kept = self.clone();
        kept.entries.retain(|entry| {
            let side = &mut kept.symbols[entry.start as usize..entry.end as usize];
            held.iter().all(|(held, symbol)| {
                let found = held.find(*symbol, &links[entry.place as usize], side);
                found.map(|at| side[at] = Symbol::Word(held.entity)).is_some()
            })
        });
        kept
    }

    /// Adds a rule; `score` is what features of its own give.
    pub fn add(
        &mut self,
        model: &Model,
        weighted: &Weighted,
        target: &[Symbol],
        score: f32,
        place: u32,
        lm_id: impl Fn(u32) -> u32,
    ) {
        let start = self.symbols.len() as u32;
        self.symbols.extend_from_slice(target);
        let (mut words, mut unknown, mut lm, mut open) = (0, 0, 0.0, 0.0);
        let mut runs = [NO_RUN; 3];
        let (mut gaps, mut swapped) = (0, false);
        let mut run = Ends::EMPTY;
        for (at, &symbol) in target.iter().enumerate() {
            match symbol {
                Symbol::Gap(number) => {
                    swapped |= gaps == 0 && number == 2;
                    gaps += 1;
                }
                Symbol::Word(word) => {
                    let word = lm_id(word);
                    words += 1;
                    unknown += u32::from(word == 0);
                    lm += model.lm.append(&mut run, word);
                }
            }
            let ends = !matches!(target.get(at + 1), Some(Symbol::Word(_)));
            if ends && !run.is_empty() {
                if gaps > 0 {
                    open -= run.preliminary();
                }
                runs[gaps.min(2)] = self.runs.len() as u32;
                run.pack(&mut self.runs);
                run = Ends::EMPTY;
            }
        }
        self.gaps = gaps;
        let score = score
            + weighted.lm * lm
            + weighted.words * words as f32
            + weighted.lm_unknown * unknown as f32;
        self.entries.push(Entry {
            place,
            score,
            hope: score + weighted.gain * open,
            lm,
            runs,
            swapped,
            start,
            end: self.symbols.len() as u32,
        });
    }

    fn drop_unused(&mut self) {
        let (runs, symbols) = (std::mem::take(&mut self.runs), std::mem::take(&mut self.symbols));
        for entry in &mut self.entries {
            let range = entry.start as usize..entry.end as usize;
            entry.start = self.symbols.len() as u32;
            self.symbols.extend_from_slice(&symbols[range]);
            entry.end = self.symbols.len() as u32;
            for run in entry.runs.iter_mut().filter(|run| **run != NO_RUN) {
                let ends = Ends::unpack(&runs[*run as usize..]);
                *run = self.runs.len() as u32;
                ends.pack(&mut self.runs);
            }
        }
    }

    /// The run of words before (0), between (1) or behind (2) the gaps.
    #[inline]
    pub fn run(&self, entry: &Entry, number: usize) -> Option<Ends> {
        self.runs.get(entry.runs[number] as usize..).map(Ends::unpack)
    }

    pub fn target(&self, entry: usize) -> &[Symbol] {
        let entry = &self.entries[entry];
        &self.symbols[entry.start as usize..entry.end as usize]
    }
}

impl Kept for Group {
    fn bytes(&self) -> usize {
        size_of::<Group>()
            + size_of_val(&self.entries[..])
            + size_of_val(&self.runs[..])
            + size_of_val(&self.symbols[..])
    }
}

fn count_gaps(side: &[Symbol]) -> usize {
    side.iter().filter(|symbol| matches!(symbol, Symbol::Gap(_))).count()
}

/// What the features of a rule beyond the dense ones give.
pub fn extra(model: &Model, weighted: &Weighted, rule: &Rule<'_>) -> f32 {
    let mut total = Total { weights: &weighted.named, sum: 0.0 };
    model.extras.rule.iter().for_each(|feature| feature.find(rule, &mut total));
    total.sum as f32
}
