//! Small corpora, tables of them, and what is in them by plain enumeration.
#![allow(dead_code)] // each file of tests uses a part

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use proptest::prelude::*;
use tunesmith_rules::{
    Corpus, HieroOptions, Lexicon, Made, Making, Node, PhraseOptions, Precision, Reading,
    Smoothing, Symbol, Table, hiero_table, phrase_table,
};
use tunesmith_text::Watch;

pub type Pair = (Vec<String>, Vec<String>);
/// Source words, target words, links.
pub type Sentence = (Vec<u8>, Vec<u8>, BTreeSet<(usize, usize)>);
/// Scores and links of all rules.
pub type Rules = BTreeMap<Pair, (Vec<f32>, Vec<(u16, u16)>)>;

/// Sentences over few words, with links.
#[derive(Debug, Clone)]
pub struct Text(pub Vec<Sentence>);

pub fn texts(sentences: usize, words: usize) -> impl Strategy<Value = Text> {
    let sentence = (1..words, 1..words).prop_flat_map(|(source, target)| {
        (
            proptest::collection::vec(0u8..4, source),
            proptest::collection::vec(0u8..4, target),
            proptest::collection::btree_set((0..source, 0..target), 0..8),
        )
    });
    proptest::collection::vec(sentence, 1..sentences).prop_map(Text)
}

pub fn words(side: &[u8], letter: char) -> Vec<String> {
    side.iter().map(|word| format!("{letter}{word}")).collect()
}

impl Text {
    pub fn corpus(&self, folder: &Path) -> Corpus {
        let [mut source, mut target, mut links] = [const { String::new() }; 3];
        for (one, two, pairs) in &self.0 {
            source += &format!("{}\n", words(one, 's').join(" "));
            target += &format!("{}\n", words(two, 't').join(" "));
            let pairs: Vec<_> = pairs.iter().map(|(a, b)| format!("{a}-{b}")).collect();
            links += &format!("{}\n", pairs.join(" "));
        }
        let path = |name: &str, text: &str| {
            fs::write(folder.join(name), text).unwrap();
            folder.join(name)
        };
        let paths = [path("s", &source), path("t", &target), path("a", &links)];
        Corpus::read(&paths[0], &paths[1], &paths[2], &Reading::default()).unwrap()
    }
}

pub fn shown(table: &Table, symbol: Symbol, source: bool) -> String {
    match symbol {
        Symbol::Gap(number) => format!("[{number}]"),
        Symbol::Word(id) if source => table.source_word(id).unwrap().to_owned(),
        Symbol::Word(id) => table.target_word(id).unwrap().to_owned(),
    }
}

/// All rules of a table with their scores and links.
pub fn rules(table: &Table) -> Rules {
    fn go(table: &Table, node: Node, path: &mut Vec<String>, out: &mut Rules) {
        for entry in table.entries(node) {
            let target: Vec<String> = entry.target().map(|s| shown(table, s, false)).collect();
            assert_eq!(target.len(), entry.target_length());
            let value = (entry.scores.to_vec(), entry.links().collect());
            assert!(out.insert((path.clone(), target), value).is_none());
        }
        for (symbol, child) in table.children(node) {
            assert_eq!(table.child(node, symbol), Some(child));
            path.push(shown(table, symbol, true));
            go(table, child, path, out);
            path.pop();
        }
    }
    let mut out = BTreeMap::new();
    go(table, table.root(), &mut Vec::new(), &mut out);
    assert_eq!(out.len() as u64, table.entry_count());
    out
}

pub fn column(table: &Table, name: &str) -> usize {
    table.columns().iter().position(|column| column.name == name).unwrap()
}

pub fn make_phrases(corpus: &Corpus, path: &Path, memory: usize, smoothing: Smoothing) -> Made {
    let lexicon = Lexicon::estimate(corpus, Precision::SevenDecimals);
    let options =
        PhraseOptions { max_length: 3, hierarchical_reordering: true, ..PhraseOptions::default() };
    let making = Making { memory, ..Making::default() };
    phrase_table(corpus, &lexicon, &options, smoothing, &making, path, &Watch::default()).unwrap()
}

pub fn make_hiero(corpus: &Corpus, path: &Path, memory: usize, options: &HieroOptions) -> Made {
    let lexicon = Lexicon::estimate(corpus, Precision::Exact);
    let making = Making { memory, ..Making::default() };
    hiero_table(corpus, &lexicon, options, &making, path, &Watch::default()).unwrap()
}

/// Spans of a sentence pair that agree with its links, by trying all of them.
pub fn blocks(
    (source, target, links): &Sentence,
    max: usize,
    tight: bool,
) -> Vec<((usize, usize), (usize, usize))> {
    let mut found = Vec::new();
    for first in 0..source.len() {
        for last in first..source.len().min(first + max) {
            for start in 0..target.len() {
                for end in start..target.len().min(start + max) {
                    let (rows, columns) = (first..=last, start..=end);
                    let inside: Vec<_> = links
                        .iter()
                        .filter(|l| rows.contains(&l.0) && columns.contains(&l.1))
                        .collect();
                    let touched = links
                        .iter()
                        .filter(|l| rows.contains(&l.0) || columns.contains(&l.1))
                        .count();
                    let edges = [first, last].iter().all(|at| inside.iter().any(|l| l.0 == *at))
                        && [start, end].iter().all(|at| inside.iter().any(|l| l.1 == *at));
                    if !inside.is_empty() && inside.len() == touched && (edges || !tight) {
                        found.push(((first, last), (start, end)));
                    }
                }
            }
        }
    }
    found
}

/// Every rule of a sentence pair: phrases, with every choice of up to two phrases taken out.
pub fn all_rules(sentence: &Sentence, options: &HieroOptions) -> Vec<(Pair, f64, Vec<usize>)> {
    let phrases = blocks(sentence, options.max_span, options.tight);
    let (source, target, links) = sentence;
    let mut rules = Vec::new();
    for &whole in &phrases {
        let mut own = Vec::new();
        let within = |part: &&((usize, usize), (usize, usize))| {
            whole.0.0 <= part.0.0
                && part.0.1 <= whole.0.1
                && whole.1.0 <= part.1.0
                && part.1.1 <= whole.1.1
        };
        let inner: Vec<_> = phrases.iter().filter(within).copied().collect();
        let mut choices = vec![Vec::new()];
        choices.extend(inner.iter().map(|&one| vec![one]));
        for &one in &inner {
            for &two in &inner {
                // In source order, with a word between them, apart on the target side.
                if one.0.1 + 1 < two.0.0 && (one.1.1 < two.1.0 || two.1.1 < one.1.0) {
                    choices.push(vec![one, two]);
                }
            }
        }
        for gaps in choices {
            let side = |words: &[String], whole: (usize, usize), spans: Vec<(usize, usize)>| {
                let mut out = Vec::new();
                let mut at = whole.0;
                while at <= whole.1 {
                    match spans.iter().position(|span| span.0 == at) {
                        Some(gap) => {
                            out.push(format!("[{}]", gap + 1));
                            at = spans[gap].1;
                        }
                        None => out.push(words[at].clone()),
                    }
                    at += 1;
                }
                out
            };
            let sources: Vec<_> = gaps.iter().map(|gap| gap.0).collect();
            let targets: Vec<_> = gaps.iter().map(|gap| gap.1).collect();
            let covered = |at: usize| sources.iter().any(|s| (s.0..=s.1).contains(&at));
            let linked = (whole.0.0..=whole.0.1)
                .any(|at| !covered(at) && links.iter().any(|link| link.0 == at));
            let places = (whole.0.0..=whole.0.1).filter(|&at| !covered(at)).collect();
            let left = side(&words(source, 's'), whole.0, sources.clone());
            if linked && left.len() <= options.max_symbols {
                own.push(((left, side(&words(target, 't'), whole.1, targets)), places));
            }
        }
        let share = 1.0 / own.len() as f64;
        rules.extend(
            own.into_iter().map(|(rule, places): (Pair, Vec<usize>)| (rule, share, places)),
        );
    }
    rules
}

/// Where the words of a source side occur, gaps inside it being any words.
pub fn places(text: &Text, source: &[String], span: usize) -> usize {
    fn go(words: &[String], pattern: &[String]) -> usize {
        match pattern.split_first() {
            None => 1,
            Some((gap, rest)) if gap.starts_with('[') => {
                (1..=words.len()).map(|skip| go(&words[skip..], rest)).sum()
            }
            Some((word, rest)) => match words.split_first() {
                Some((first, others)) if first == word => go(others, rest),
                _ => 0,
            },
        }
    }
    let word = |symbol: &String| !symbol.starts_with('[');
    let first = source.iter().position(word).unwrap();
    let last = source.iter().rposition(word).unwrap();
    let within = |words: &[String]| -> usize {
        let starts = 0..words.len();
        starts.map(|at| go(&words[at..words.len().min(at + span)], &source[first..=last])).sum()
    };
    text.0.iter().map(|sentence| within(&words(&sentence.0, 's'))).sum()
}
