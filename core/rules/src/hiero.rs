//! Hierarchical rules of a sentence as records (Chiang 2007): phrase pairs with up to two gaps.

use std::hash::{Hash, Hasher};

use rustc_hash::{FxHashSet, FxHasher};
use tunesmith_align::Link;

use crate::bitext::Sentence;
use crate::blocks::Grid;
use crate::code::{FIRST_WORD, put};
use crate::links::put_links;

/// Which rules to extract.
#[derive(Debug, Clone)]
pub struct HieroOptions {
    /// Words that an initial phrase has on either side at most.
    pub max_span: usize,
    /// Words and gaps on the source side at most.
    pub max_symbols: usize,
    pub max_gaps: usize,
    /// Source words under a gap at least.
    pub min_gap: usize,
    /// Whether two gaps may touch on the source side.
    pub adjacent_gaps: bool,
    /// Leave words without links out at the edges of phrases and gaps.
    pub tight: bool,
}

impl Default for HieroOptions {
    fn default() -> Self {
        HieroOptions {
            max_span: 10,
            max_symbols: 5,
            max_gaps: 2,
            min_gap: 1,
            adjacent_gaps: false,
            tight: true,
        }
    }
}

type Span = (usize, usize);

/// Extracts from one sentence after another, keeping its buffers.
pub struct HieroExtractor<'o> {
    options: &'o HieroOptions,
    /// Target spans of the phrase pairs, sorted by their source spans.
    phrases: Vec<(Span, Span)>,
    /// Where the phrases of a source span start, by its first word and length.
    starts: Vec<u32>,
    rules: Rules,
}

/// What the rules of one sentence are made into.
#[derive(Default)]
struct Rules {
    bytes: Vec<u8>,
    /// End of each record, the phrase that it comes from, and whether it counts.
    ends: Vec<(usize, u32, bool)>,
    /// How many rules each phrase gives.
    counts: Vec<u32>,
    /// Rules that may come more than once, by their bytes and the places of their words.
    seen: FxHashSet<u64>,
    links: Vec<Link>,
}

/// The source side so far: codes, and for each word of the span its place in the rule.
struct Partial {
    start: usize,
    codes: Vec<u32>,
    places: Vec<u16>,
    gaps: Vec<(Span, Span)>,
    /// The places of its words in the sentence.
    words: Vec<usize>,
    linked: bool,
}

impl<'o> HieroExtractor<'o> {
    pub fn new(options: &'o HieroOptions) -> Self {
        HieroExtractor { options, phrases: Vec::new(), starts: Vec::new(), rules: Rules::default() }
    }

    /// Calls `emit` with the record of every rule. The last number of a record is twice the number
    /// of rules that share the phrase it comes from, and with it that phrase's count of one; and
    /// one more where the same words have not given the same rule before: a gap at the edge may
    /// reach over more or fewer words, a loose phrase too.
    pub fn extract(&mut self, sentence: Sentence<'_>, mut emit: impl FnMut(&[u8])) {
        let grid = Grid::new(sentence);
        self.index(&grid);
        let mut rules = std::mem::take(&mut self.rules);
        rules.bytes.clear();
        rules.ends.clear();
        rules.seen.clear();
        rules.counts.clear();
        rules.counts.resize(self.phrases.len(), 0);
        let mut partial = Partial {
            start: 0,
            codes: Vec::new(),
            places: vec![0; self.options.max_span + 1],
            gaps: Vec::new(),
            words: Vec::new(),
            linked: false,
        };
        for start in 0..sentence.source.len() {
            if self.options.tight && !grid.source_linked(start) {
                continue;
            }
            partial.start = start;
            self.extend(&grid, start, &mut partial, &mut rules);
        }
        let mut record = Vec::new();
        let mut begin = 0;
        for &(end, phrase, new) in &rules.ends {
            record.clear();
            record.extend_from_slice(&rules.bytes[begin..end]);
            put(2 * rules.counts[phrase as usize] + u32::from(new), &mut record);
            emit(&record);
            begin = end;
        }
        self.rules = rules;
    }

    fn index(&mut self, grid: &Grid<'_>) {
        let phrases = &mut self.phrases;
        let span = self.options.max_span;
        phrases.clear();
        grid.blocks((span, span), self.options.tight, |block| {
            phrases.push((block.source, block.target));
        });
        phrases.sort_unstable();
        self.starts.clear();
        self.starts.resize(grid.sentence.source.len() * span + 1, 0);
        for ((first, last), _) in phrases.iter() {
            self.starts[first * span + (last - first) + 1] += 1;
        }
        for at in 1..self.starts.len() {
            self.starts[at] += self.starts[at - 1];
        }
    }

    fn phrases(&self, first: usize, last: usize) -> std::ops::Range<usize> {
        let at = first * self.options.max_span + (last - first);
        self.starts[at] as usize..self.starts[at + 1] as usize
    }

    /// Goes on at source word `at`: the rule may end before it, take the word, or a gap from it.
    fn extend(&self, grid: &Grid<'_>, at: usize, partial: &mut Partial, rules: &mut Rules) {
        let start = partial.start;
        if at > start && partial.linked {
            for phrase in self.phrases(start, at - 1) {
                self.finish(grid, phrase, partial, rules);
            }
        }
        let limit = grid.sentence.source.len().min(start + self.options.max_span);
        if at >= limit || partial.codes.len() == self.options.max_symbols {
            return;
        }
        let before = partial.linked;
        partial.places[at - start] = partial.codes.len() as u16;
        partial.codes.push(grid.sentence.source[at]);
        partial.words.push(at);
        partial.linked |= grid.source_linked(at);
        self.extend(grid, at + 1, partial, rules);
        partial.codes.pop();
        partial.words.pop();
        partial.linked = before;
        let touches = partial.gaps.last().is_some_and(|(source, _)| source.1 + 1 == at);
        if partial.gaps.len() >= self.options.max_gaps || touches && !self.options.adjacent_gaps {
            return;
        }
        for last in at + self.options.min_gap.max(1) - 1..limit {
            for phrase in self.phrases(at, last) {
                partial.gaps.push(self.phrases[phrase]);
                partial.codes.push(partial.gaps.len() as u32);
                self.extend(grid, last + 1, partial, rules);
                partial.codes.pop();
                partial.gaps.pop();
            }
        }
    }

    fn finish(&self, grid: &Grid<'_>, phrase: usize, partial: &Partial, rules: &mut Rules) {
        let (start, end) = self.phrases[phrase].1;
        // Loose phrases: a gap may reach beyond this phrase or into the other gap.
        let apart = match partial.gaps[..] {
            [(_, one), (_, two)] => one.1 < two.0 || two.1 < one.0,
            _ => true,
        };
        let inside = partial.gaps.iter().all(|(_, gap)| start <= gap.0 && gap.1 <= end);
        if !apart || !inside {
            return;
        }
        let begin = rules.bytes.len();
        let bytes = &mut rules.bytes;
        partial.codes.iter().for_each(|&code| put(code, bytes));
        bytes.push(0);
        rules.links.clear();
        let mut length = 0;
        let mut at = start;
        while at <= end {
            match partial.gaps.iter().position(|(_, gap)| gap.0 == at) {
                Some(gap) => {
                    put(gap as u32 + 1, bytes);
                    at = partial.gaps[gap].1.1;
                }
                None => {
                    put(grid.sentence.target[at], bytes);
                    let place = |source: usize| partial.places[source - partial.start];
                    rules.links.extend(grid.sources(at).map(|source| (place(source), length)));
                }
            }
            length += 1;
            at += 1;
        }
        bytes.push(0);
        let edge = |at: usize| partial.codes.get(at).is_some_and(|&code| code < FIRST_WORD);
        let once = self.options.tight && !edge(0) && !edge(partial.codes.len() - 1);
        let new = once || {
            let mut hasher = FxHasher::default();
            bytes[begin..].hash(&mut hasher);
            partial.words.hash(&mut hasher);
            rules.seen.insert(hasher.finish())
        };
        put_links(&rules.links, partial.codes.len(), length as usize, bytes);
        rules.ends.push((bytes.len(), phrase as u32, new));
        rules.counts[phrase] += 1;
    }
}
