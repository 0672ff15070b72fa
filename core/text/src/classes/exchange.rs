//! Classes that make the best bigram model of a text (Kneser & Ney 1993; Martin, Liermann & Ney
//! 1998): each word moves to the class where the likelihood is highest, until none moves.
//!
//! With counts N of words, classes and pairs of neighbouring classes, the likelihood is, up to what
//! does not depend on the classes, Σ N(g,h) log N(g,h) - 2 Σ N(g) log N(g).

use std::path::Path;

use rustc_hash::FxHashMap;

use crate::{Classes, Error, Lines, Names, Result, utf8};

/// How to cluster.
#[derive(Debug, Clone, Copy)]
pub struct Clustering {
    pub classes: usize,
    /// Rounds over all words at most, after a first one that gives each its class.
    pub rounds: usize,
}

impl Default for Clustering {
    fn default() -> Self {
        Clustering { classes: 50, rounds: 20 }
    }
}

impl Clustering {
    /// The classes of all words of a text, one sentence on each line, numbered from zero. The
    /// result depends on the text and the options alone. Refuses a text without words.
    pub fn of_file(&self, path: impl AsRef<Path>) -> Result<Classes> {
        let mut lines = Lines::open(path)?;
        let file = lines.file().to_owned();
        let mut text = Text::default();
        let mut line = 0;
        while let Some(bytes) = lines.next()? {
            line += 1;
            text.add(utf8(bytes, &file, line)?);
        }
        if text.words.is_empty() {
            let remedy = "give text with one sentence on each line";
            return Err(Error::new("there are no words to cluster").at(file, None).remedy(remedy));
        }
        self.of_text(text)
    }

    fn of_text(&self, text: Text) -> Result<Classes> {
        if self.classes == 0 {
            return Err(Error::new("no classes are asked for").remedy("ask for at least one"));
        }
        let graph = Graph::new(&text);
        let mut exchange = Exchange::new(&graph, self.classes);
        exchange.round();
        for _ in 0..self.rounds {
            if !exchange.round() {
                break;
            }
        }
        let mut classes = Classes::default();
        for (word, class) in graph.order.iter().zip(&exchange.of) {
            classes.put(text.words.name(*word).unwrap_or_default(), &class.to_string());
        }
        Ok(classes)
    }
}

/// Counts of words and of neighbours. Sentences begin and end with [`EDGE`].
#[derive(Default)]
struct Text {
    words: Names,
    counts: Vec<u64>,
    pairs: FxHashMap<(u32, u32), u64>,
}

const EDGE: u32 = u32::MAX;
/// A word without a class as yet.
const NONE: u32 = u32::MAX;

impl Text {
    fn add(&mut self, sentence: &str) {
        let mut last = EDGE;
        for word in sentence.split([' ', '\t']).filter(|word| !word.is_empty()) {
            let id = self.words.intern(word);
            self.counts.resize(self.words.len(), 0);
            self.counts[id as usize] += 1;
            *self.pairs.entry((last, id)).or_default() += 1;
            last = id;
        }
        if last != EDGE {
            *self.pairs.entry((last, EDGE)).or_default() += 1;
        }
    }
}

/// Words by falling frequency, with their neighbours; the last one is the edge of sentences.
struct Graph {
    /// The ids that the words had.
    order: Vec<u32>,
    counts: Vec<u64>,
    /// How often a word follows itself.
    doubles: Vec<u64>,
    before: Neighbours,
    behind: Neighbours,
}

#[derive(Default)]
struct Neighbours {
    ends: Vec<usize>,
    list: Vec<(u32, u64)>,
}

impl Neighbours {
    /// `pairs`: a word, a neighbour and a count, sorted.
    fn new(words: usize, pairs: &[(u32, u32, u64)]) -> Neighbours {
        let mut ends = vec![0; words];
        pairs.iter().for_each(|&(word, ..)| ends[word as usize] += 1);
        let mut sum = 0;
        ends.iter_mut().for_each(|end| {
            sum += *end;
            *end = sum;
        });
        Neighbours { ends, list: pairs.iter().map(|&(_, other, count)| (other, count)).collect() }
    }

    fn of(&self, word: usize) -> &[(u32, u64)] {
        &self.list[word.checked_sub(1).map_or(0, |last| self.ends[last])..self.ends[word]]
    }
}

impl Graph {
    fn new(text: &Text) -> Graph {
        let name = |id: u32| text.words.name(id).unwrap_or_default();
        let count = |id: u32| text.counts[id as usize];
        let mut order: Vec<u32> = (0..text.words.len() as u32).collect();
        order.sort_unstable_by(|&a, &b| count(b).cmp(&count(a)).then_with(|| name(a).cmp(name(b))));
        let words = order.len();
        let mut rank = vec![0; words];
        order.iter().enumerate().for_each(|(place, &id)| rank[id as usize] = place as u32);
        let place = |id: u32| if id == EDGE { words as u32 } else { rank[id as usize] };
        let mut doubles = vec![0; words];
        let mut pairs = Vec::with_capacity(text.pairs.len());
        for (&(left, right), &count) in &text.pairs {
            if left == right {
                doubles[place(left) as usize] = count;
            } else {
                pairs.push((place(left), place(right), count));
            }
        }
        pairs.sort_unstable();
        let behind = Neighbours::new(words + 1, &pairs);
        pairs.iter_mut().for_each(|(left, right, _)| std::mem::swap(left, right));
        pairs.sort_unstable();
        let before = Neighbours::new(words + 1, &pairs);
        let counts = order.iter().map(|&id| count(id)).collect();
        Graph { order, counts, doubles, before, behind }
    }
}

/// Counts of classes for the assignment of the moment; the class behind the last is the edge.
struct Exchange<'g> {
    graph: &'g Graph,
    classes: usize,
    of: Vec<u32>,
    sizes: Vec<u64>,
    /// By first and by second class; both, so that what is read lies together.
    pairs: Vec<u64>,
    turned: Vec<u64>,
    terms: Terms,
}

/// One word's neighbours by class.
#[derive(Default)]
struct Around {
    before: Vec<(u32, u64)>,
    behind: Vec<(u32, u64)>,
}

impl<'g> Exchange<'g> {
    fn new(graph: &'g Graph, classes: usize) -> Exchange<'g> {
        let width = classes + 1;
        Exchange {
            graph,
            classes,
            of: vec![NONE; graph.order.len()],
            sizes: vec![0; classes],
            pairs: vec![0; width * width],
            turned: vec![0; width * width],
            terms: Terms::new(),
        }
    }

    /// Moves each word to its best class; whether any moved. The first time words find their
    /// classes one after the other, the most frequent in classes of their own.
    fn round(&mut self) -> bool {
        let mut moved = false;
        let mut sums = vec![0; self.classes + 1];
        let mut around = Around::default();
        for word in 0..self.of.len() {
            self.gather(self.graph.before.of(word), &mut sums, &mut around.before);
            self.gather(self.graph.behind.of(word), &mut sums, &mut around.behind);
            let old = self.of[word];
            let class = if old != NONE {
                self.shift(word, old as usize, &around, u64::wrapping_sub);
                self.best(word, old as usize, &around)
            } else if word < self.classes {
                word
            } else {
                self.best(word, 0, &around)
            };
            self.shift(word, class, &around, u64::wrapping_add);
            self.of[word] = class as u32;
            moved |= class as u32 != old;
        }
        moved
    }

    /// The class in which a word that has none is best put.
    fn best(&self, word: usize, start: usize, around: &Around) -> usize {
        let begun = self.gain(word, start, around);
        // Ties, and what rounding makes of them, are no reason to move: rounds end.
        let least = 1e-9 * begun.abs().max(1.0);
        let mut best = (begun, start);
        for class in (0..self.classes).filter(|&class| class != start) {
            let gain = self.gain(word, class, around);
            if gain > best.0 + least {
                best = (gain, class);
            }
        }
        best.1
    }

    fn gather(&self, neighbours: &[(u32, u64)], sums: &mut [u64], out: &mut Vec<(u32, u64)>) {
        for &(word, count) in neighbours {
            if let Some(class) = self.class(word) {
                sums[class] += count;
            }
        }
        out.clear();
        if neighbours.len() < sums.len() {
            for &(word, _) in neighbours {
                if let Some(class) = self.class(word)
                    && sums[class] > 0
                {
                    out.push((class as u32, std::mem::take(&mut sums[class])));
                }
            }
        } else {
            let taken = sums.iter_mut().map(std::mem::take).enumerate();
            out.extend(taken.filter(|&(_, sum)| sum > 0).map(|(class, sum)| (class as u32, sum)));
        }
    }

    fn class(&self, word: u32) -> Option<usize> {
        match self.of.get(word as usize) {
            Some(&NONE) => None,
            Some(&class) => Some(class as usize),
            None => Some(self.classes),
        }
    }

    /// Adds a word's counts to a class, or takes them off.
    fn shift(&mut self, word: usize, class: usize, around: &Around, change: fn(u64, u64) -> u64) {
        let width = self.classes + 1;
        let double = self.graph.doubles[word];
        let sides = [(class, class, double)].into_iter();
        let before = around.before.iter().map(|&(other, count)| (other as usize, class, count));
        let behind = around.behind.iter().map(|&(other, count)| (class, other as usize, count));
        for (left, right, count) in sides.chain(before).chain(behind) {
            let (pair, turned) = (left * width + right, right * width + left);
            self.pairs[pair] = change(self.pairs[pair], count);
            self.turned[turned] = change(self.turned[turned], count);
        }
        self.sizes[class] = change(self.sizes[class], self.graph.counts[word]);
    }

    /// What the likelihood gains when a word that has no class is put into one.
    fn gain(&self, word: usize, class: usize, around: &Around) -> f64 {
        let row = class * (self.classes + 1)..(class + 1) * (self.classes + 1);
        let (behind, before) = (&self.pairs[row.clone()], &self.turned[row]);
        let mut within = self.graph.doubles[word];
        let mut sum = 0.0;
        for (others, counts) in [(&around.before, before), (&around.behind, behind)] {
            for &(other, count) in others {
                if other as usize == class {
                    within += count;
                } else {
                    sum += self.terms.change(counts[other as usize], count);
                }
            }
        }
        sum += self.terms.change(behind[class], within);
        sum - 2.0 * self.terms.change(self.sizes[class], self.graph.counts[word])
    }
}

/// n log n, looked up where n is small.
struct Terms(Vec<f64>);

impl Terms {
    fn new() -> Terms {
        Terms((0..1 << 14).map(term).collect())
    }

    #[inline]
    fn of(&self, count: u64) -> f64 {
        self.0.get(count as usize).copied().unwrap_or_else(|| term(count))
    }

    #[inline]
    fn change(&self, count: u64, more: u64) -> f64 {
        self.of(count + more) - self.of(count)
    }
}

fn term(count: u64) -> f64 {
    let count = count as f64;
    if count > 0.0 { count * count.ln() } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;

    fn text(sentences: &[Vec<u8>]) -> Text {
        let mut text = Text::default();
        for sentence in sentences {
            let words: Vec<String> = sentence.iter().map(|word| format!("w{word}")).collect();
            text.add(&words.join(" "));
        }
        text
    }

    /// The likelihood from the text itself.
    fn likelihood(sentences: &[Vec<u8>], class: impl Fn(u8) -> u32) -> f64 {
        let mut pairs: HashMap<(u32, u32), u64> = HashMap::new();
        let mut sizes: HashMap<u32, u64> = HashMap::new();
        for sentence in sentences.iter().filter(|sentence| !sentence.is_empty()) {
            let mut last = EDGE;
            for &word in sentence {
                *pairs.entry((last, class(word))).or_default() += 1;
                *sizes.entry(class(word)).or_default() += 1;
                last = class(word);
            }
            *pairs.entry((last, EDGE)).or_default() += 1;
        }
        let sum = |counts: Vec<u64>| counts.into_iter().map(term).sum::<f64>();
        sum(pairs.into_values().collect()) - 2.0 * sum(sizes.into_values().collect())
    }

    fn class_of(classes: &Classes, word: u8) -> u32 {
        classes.of(&format!("w{word}")).unwrap().parse().unwrap()
    }

    proptest! {
        #[test]
        fn no_single_move_makes_it_better(
            sentences in prop::collection::vec(prop::collection::vec(0..8u8, 0..7), 1..20),
            classes in 1..5usize,
        ) {
            prop_assume!(sentences.iter().any(|sentence| !sentence.is_empty()));
            let clustering = Clustering { classes, rounds: 1000 };
            let found = clustering.of_text(text(&sentences)).unwrap();
            let best = likelihood(&sentences, |word| class_of(&found, word));
            for moved in sentences.iter().flatten().copied() {
                for class in 0..classes as u32 {
                    let other = likelihood(&sentences, |word| {
                        if word == moved { class } else { class_of(&found, word) }
                    });
                    prop_assert!(other <= best + 1e-6 * best.abs().max(1.0));
                }
            }
        }

        #[test]
        fn counts_stay_those_of_the_text(
            sentences in prop::collection::vec(prop::collection::vec(0..8u8, 0..7), 1..20),
            classes in 1..5usize,
        ) {
            let text = text(&sentences);
            let graph = Graph::new(&text);
            let mut exchange = Exchange::new(&graph, classes);
            exchange.round();
            exchange.round();
            let class = |word: u8| {
                let id = text.words.id(&format!("w{word}")).unwrap();
                exchange.of[graph.order.iter().position(|&other| other == id).unwrap()]
            };
            let counted = exchange.pairs.iter().map(|&count| term(count)).sum::<f64>()
                - 2.0 * exchange.sizes.iter().map(|&count| term(count)).sum::<f64>();
            prop_assert!((counted - likelihood(&sentences, class)).abs() < 1e-6);
        }
    }

    #[test]
    fn words_that_stand_alike_share_a_class() {
        let mut text = Text::default();
        for article in ["the", "a"] {
            for noun in ["dog", "cat", "house"] {
                for verb in ["sees", "has"] {
                    text.add(&format!("{article} {noun} {verb} {article} {noun}"));
                }
            }
        }
        let classes = Clustering { classes: 3, rounds: 20 }.of_text(text).unwrap();
        for (one, other) in [("the", "a"), ("dog", "cat"), ("cat", "house"), ("sees", "has")] {
            assert_eq!(classes.of(one), classes.of(other), "{one} {other}");
        }
        assert_ne!(classes.of("dog"), classes.of("sees"));
        assert_ne!(classes.of("dog"), classes.of("the"));
    }
}
