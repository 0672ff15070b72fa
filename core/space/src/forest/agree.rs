//! What the derivations of a forest agree on: expected counts of n-grams, and the expected length.
//!
//! An n-gram belongs to the way that first puts its words side by side, so nodes are split by the
//! words at both ends of their strings, and counts are sums of the posteriors of ways (DeNero,
//! Chiang & Knight 2009). Exact for what [`ways`] keeps of the forest; a forest of whole hypotheses
//! is kept completely.

use rustc_hash::FxHashMap;
use tunesmith_metric::{Grams, UNSEEN};

use super::unfold::{Unfolded, Way, ways};
use super::{Edge, Forest, Side};
use crate::space::order_of;

/// The longest n-grams.
pub const ORDER: usize = 4;
const EDGE: usize = ORDER - 1;

/// An n-gram: token numbers from 1, zeros behind shorter ones.
pub type Gram = [u32; ORDER];

/// How often n-grams are expected, and how many tokens.
#[derive(Debug, Clone, Default)]
pub struct Agreement {
    pub vocabulary: FxHashMap<String, u32>,
    pub grams: FxHashMap<Gram, f64>,
    pub length: f64,
}

impl Agreement {
    /// Adds the numbers of a text's tokens, which white space separates.
    pub fn tokens(&mut self, text: &str, out: &mut Vec<u32>) {
        for word in text.split_whitespace() {
            let next = self.vocabulary.len() as u32 + 1;
            out.push(*self.vocabulary.entry(word.to_owned()).or_insert(next));
        }
    }

    /// `[length, expected length, matches 1..4, totals 1..4]` of a string: a match is worth what
    /// is expected of it.
    pub fn row(&self, tokens: &[u32]) -> [f64; 2 + 2 * ORDER] {
        let mut row = [0.0; 2 + 2 * ORDER];
        (row[0], row[1]) = (tokens.len() as f64, self.length);
        for (gram, count) in counted(tokens) {
            let order = gram.iter().filter(|&&token| token > 0).count();
            let expected = self.grams.get(&gram).copied().unwrap_or(0.0);
            row[1 + order] += expected.min(f64::from(count));
            row[1 + ORDER + order] += f64::from(count);
        }
        row
    }
}

/// The n-grams of a string up to order `N`, each once, with their counts. Tokens are numbered from
/// 1; zeros stand behind shorter n-grams.
pub fn counted<const N: usize>(tokens: &[u32]) -> Vec<([u32; N], u32)> {
    let mut grams: Vec<[u32; N]> = Vec::with_capacity(tokens.len() * N);
    for start in 0..tokens.len() {
        let mut gram = [0; N];
        for (place, &token) in tokens[start..].iter().take(N).enumerate() {
            gram[place] = token;
            grams.push(gram);
        }
    }
    grams.sort_unstable();
    grams.chunk_by(|a, b| a == b).map(|same| (same[0], same.len() as u32)).collect()
}

/// The words at the ends of an item's string; a short string is its own beginning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
struct Ends {
    left: [u32; EDGE],
    right: [u32; EDGE],
    /// The number of tokens, or one more than an end has.
    length: usize,
}

/// A place of a string that is being put together: a token and the gap it came from, or what the
/// ends of a long string leave out.
type Place = Option<(u32, usize)>;

impl Ends {
    fn of(places: &[Place]) -> Self {
        let mut ends = Ends { length: places.len().min(EDGE + 1), ..Ends::default() };
        let token = |place: &Place| place.map_or(0, |(token, _)| token);
        for (end, place) in ends.left.iter_mut().zip(places) {
            *end = token(place);
        }
        if ends.length > EDGE {
            for (end, place) in ends.right.iter_mut().zip(&places[places.len() - EDGE..]) {
                *end = token(place);
            }
        }
        ends
    }

    fn lay_out(&self, gap: usize, out: &mut Vec<Place>) {
        out.extend(self.left[..self.length.min(EDGE)].iter().map(|&token| Some((token, gap))));
        if self.length > EDGE {
            out.push(None);
            out.extend(self.right.iter().map(|&token| Some((token, gap))));
        }
    }
}

/// Where a token came from that is a word of the rule.
const OWN: usize = usize::MAX;

impl Forest {
    /// What derivations agree on under `p ∝ exp(α s)`; `pops` as in [`ways`].
    pub fn agreement(&self, scores: &[f64], alpha: f64, pops: usize) -> Agreement {
        let mut agreement = Agreement::default();
        let mut tokens: Vec<Vec<u32>> = vec![Vec::new(); self.words.len()];
        for (word, tokens) in self.words.iter().zip(&mut tokens) {
            agreement.tokens(word, tokens);
        }
        let lay_out = |way: &Way, ends: &[Ends]| {
            let mut places: Vec<Place> = Vec::new();
            for symbol in self.side(self.edges[way.edge as usize].rule) {
                match symbol {
                    Side::Word(word) => {
                        places
                            .extend(tokens[word as usize].iter().map(|&token| Some((token, OWN))));
                    }
                    Side::Gap(gap) => ends[way.tails[gap] as usize].lay_out(gap, &mut places),
                }
            }
            places
        };
        let (unfolded, ends) = self.split(scores, pops, lay_out);
        let shares = unfolded.shares(scores, alpha);
        let whole = &shares[shares.len() - unfolded.whole().len()..];
        for (way, posterior) in unfolded.ways().iter().zip(unfolded.posteriors(&shares, whole)) {
            if posterior == 0.0 {
                continue;
            }
            let places = lay_out(way, &ends);
            for start in 0..places.len() {
                let mut gram = [0; ORDER];
                let (mut first, mut new) = (None, false);
                for (n, place) in places[start..].iter().take(ORDER).enumerate() {
                    let Some((token, gap)) = *place else { break };
                    gram[n] = token;
                    // What lies within one gap was counted there.
                    new |= gap == OWN || *first.get_or_insert(gap) != gap;
                    if new {
                        *agreement.grams.entry(gram).or_default() += posterior;
                    }
                    if n == 0 && gap == OWN {
                        agreement.length += posterior;
                    }
                }
            }
        }
        agreement
    }

    /// Nodes split by the ends of strings: the ways, and the ends of each item.
    fn split(
        &self,
        scores: &[f64],
        pops: usize,
        lay_out: impl Fn(&Way, &[Ends]) -> Vec<Place>,
    ) -> (Unfolded, Vec<Ends>) {
        let mut unfolded = Unfolded::default();
        let mut ends: Vec<Ends> = Vec::new();
        // The score and the number of each node's items.
        let mut nodes: Vec<Vec<(f64, u32)>> = Vec::with_capacity(self.nodes());
        for node in 0..self.nodes() {
            let score = |tail: usize, rank: usize| nodes[tail].get(rank).map(|&(score, _)| score);
            let mut items: Vec<(f64, Ends, Vec<Way>)> = Vec::new();
            let mut seen: FxHashMap<Ends, usize> = FxHashMap::default();
            for found in ways(self, node, scores, score, pops) {
                let tails = self.edges[found.edge as usize].tails;
                let number = |gap: usize| match tails[gap] {
                    Edge::NONE => Edge::NONE,
                    tail => nodes[tail as usize][found.ranks[gap] as usize].1,
                };
                let way = Way { edge: found.edge, tails: [number(0), number(1)] };
                let own = if Some(node) == self.goal() {
                    // Nothing follows: all are one.
                    Ends::default()
                } else {
                    Ends::of(&lay_out(&way, &ends))
                };
                let place = *seen.entry(own).or_insert(items.len());
                if place == items.len() {
                    items.push((found.score, own, Vec::new()));
                }
                items[place].0 = items[place].0.max(found.score);
                items[place].2.push(way);
            }
            items.sort_by(|a, b| order_of(b.0, a.0));
            let mut built = Vec::with_capacity(items.len());
            for (score, own, ways) in items {
                built.push((score, unfolded.push(ways)));
                ends.push(own);
            }
            nodes.push(built);
        }
        (unfolded, ends)
    }
}

/// The n-grams that are expected most, as those of a reference.
pub struct Expected<'a> {
    agreement: &'a Agreement,
    longer: FxHashMap<(Option<u32>, u32), u32>,
    limits: Vec<u8>,
    counts: Vec<f64>,
    ends: [usize; ORDER],
}

impl<'a> Expected<'a> {
    /// The `most` with the highest counts; n-grams are never expected more often than the parts
    /// that they begin with, so these are there too.
    pub fn new(agreement: &'a Agreement, most: usize) -> Self {
        let length = |gram: &Gram| gram.iter().filter(|&&token| token > 0).count();
        let mut grams: Vec<(&Gram, f64)> = agreement.grams.iter().map(|(g, &c)| (g, c)).collect();
        grams.sort_by(|a, b| {
            b.1.total_cmp(&a.1).then_with(|| (length(a.0), a.0).cmp(&(length(b.0), b.0)))
        });
        grams.truncate(most);
        grams.sort_by_key(|(gram, _)| (length(gram), **gram));
        let mut expected = Expected {
            agreement,
            longer: FxHashMap::default(),
            limits: Vec::with_capacity(grams.len()),
            counts: Vec::with_capacity(grams.len()),
            ends: [0; ORDER],
        };
        let mut numbers: FxHashMap<Gram, u32> = FxHashMap::default();
        for (gram, count) in grams {
            let last = length(gram) - 1;
            let mut shorter = *gram;
            shorter[last] = 0;
            let before = (last > 0).then(|| numbers.get(&shorter).copied());
            // Rounding may put a part behind the whole.
            if before == Some(None) {
                continue;
            }
            let number = expected.limits.len() as u32;
            numbers.insert(*gram, number);
            expected.longer.insert((before.flatten(), gram[last]), number);
            expected.limits.push(count.ceil().min(255.0) as u8);
            expected.counts.push(count);
            expected.ends[last..].fill(number as usize + 1);
        }
        expected
    }
}

impl Grams for Expected<'_> {
    fn order(&self) -> usize {
        ORDER
    }

    fn tokens(&self, word: &str, out: &mut Vec<u32>) {
        let token = |word| self.agreement.vocabulary.get(word).copied().unwrap_or(UNSEEN);
        out.extend(word.split_whitespace().map(token));
    }

    fn longer(&self, gram: Option<u32>, token: u32) -> Option<u32> {
        self.longer.get(&(gram, token)).copied()
    }

    fn limits(&self) -> &[u8] {
        &self.limits
    }

    fn ends(&self) -> &[usize] {
        &self.ends
    }

    fn matches(&self, counts: &[u8], out: &mut [f64]) {
        let mut start = 0;
        for (sum, &end) in out.iter_mut().zip(&self.ends) {
            let pairs = self.counts[start..end].iter().zip(&counts[start..end]);
            *sum = pairs.map(|(expected, &count)| expected.min(f64::from(count))).sum();
            start = end;
        }
    }

    fn row(&self, length: usize, matches: &[f64], out: &mut [f64]) {
        (out[0], out[1]) = (length as f64, self.agreement.length);
        out[2..2 + ORDER].copy_from_slice(matches);
        for (n, total) in out[2 + ORDER..].iter_mut().enumerate() {
            *total = length.saturating_sub(n) as f64;
        }
    }
}
