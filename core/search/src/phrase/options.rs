//! All phrases that may be used in one sentence.

use std::ops::Range;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use tunesmith_lm::State;
use tunesmith_rules::Symbol;

use super::decoder::Decoder;
use super::facts::Facts;
use super::future::Future;
use super::model::{CLASSES, SLOTS};
use super::targets::{Target, Targets};
use crate::features::{Rule, Total};
use crate::{Input, Sentence, Spell};

/// A phrase in its place.
#[derive(Debug, Clone)]
pub struct Choice {
    pub start: u16,
    pub end: u16,
    /// Where it comes from: a list of [`Choices::lists`] and a place there.
    pub list: u32,
    pub place: u32,
    pub score: f32,
    pub estimate: f32,
    pub previous: [f32; CLASSES],
    pub next: [f32; CLASSES],
    /// Phrases with the same number have the same orientations to the next one.
    pub class: u32,
    /// Words of the language model, and the scores behind each: a range.
    pub words: u32,
    pub length: u16,
    pub state: State,
}

/// The phrases of a sentence by span, best first.
pub struct Choices<'d> {
    pub decoder: &'d Decoder,
    pub sentence: Sentence<'d>,
    pub list: Vec<Choice>,
    /// By start and length.
    spans: Vec<(u32, u32)>,
    /// The same for the phrases that a search may use.
    open: Vec<(u32, u32)>,
    longest: usize,
    pub lm: Vec<u32>,
    pub inner: Vec<f32>,
    pub lists: Vec<Source>,
    pub future: Future,
    pub walls: Vec<usize>,
    pub zones: Vec<Range<usize>>,
}

/// Translations of one span.
pub struct Source {
    pub span: Range<usize>,
    pub targets: Arc<Targets>,
    pub from: From,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum From {
    /// A node of the table.
    Table(tunesmith_rules::Node),
    /// A word that the table does not translate.
    Unknown,
    /// What the user gave, with its score.
    Given(f32),
}

impl<'d> Choices<'d> {
    pub fn new(decoder: &'d Decoder, input: &Input<'_>) -> Choices<'d> {
        let model = &*decoder.model;
        let mut sentence = Sentence::new(input, &model.table, &model.lexicon, &model.lm);
        let source: Vec<u32> = sentence.source().to_vec();
        let count = source.len();
        // Every word must have some translation of its own.
        let mut alone = vec![false; count];
        let mut lists: Vec<Source> = Vec::new();
        let mut side = Vec::new();
        for (start, alone) in alone.iter_mut().enumerate() {
            let mut node = model.table.root();
            side.clear();
            for end in start + 1..=count.min(start + decoder.settings.phrase_limit.max(1)) {
                if !sentence.is_known(source[end - 1]) {
                    break;
                }
                let symbol = Symbol::Word(source[end - 1]);
                let Some(next) = model.table.child(node, symbol) else { break };
                node = next;
                side.push(symbol);
                if !input.allows(&(start..end)) {
                    continue;
                }
                let is_held = sentence.held(start..end).next().is_some();
                let mut targets = decoder.cache.get(node, || decoder.targets(&side, node));
                if is_held {
                    targets = targets.holding(sentence.held(start..end), start).into();
                }
                if end == start + 1 {
                    *alone = !targets.list.is_empty()
                        || !is_held && model.table.entries(node).next().is_some();
                }
                if !targets.list.is_empty() {
                    lists.push(Source { span: start..end, targets, from: From::Table(node) });
                }
            }
        }
        for given in &input.given {
            let words = given.words.iter().map(|word| sentence.target_id(word)).collect();
            let targets = lone(decoder, &sentence, &source[given.span.clone()], words);
            let span = given.span.clone();
            // Others compete, and a wall may be in the way.
            if given.exclusive {
                alone[span.clone()].fill(true);
            }
            lists.push(Source { span, targets, from: From::Given(given.score) });
        }
        for word in (0..count).filter(|&word| !alone[word]) {
            let is_dropped = decoder.settings.drop_unknown
                && sentence.held(word..word + 1).next().is_none()
                && !input.words[word].contains(|letter: char| letter.is_ascii_digit());
            let target = if is_dropped { Vec::new() } else { vec![sentence.itself(word)] };
            let targets = lone(decoder, &sentence, &source[word..word + 1], target);
            lists.push(Source { span: word..word + 1, targets, from: From::Unknown });
        }
        let laid_out = Choices::laid_out(decoder, sentence, lists);
        Choices { walls: input.walls.clone(), zones: input.zones.clone(), ..laid_out }
    }

    fn laid_out(
        decoder: &'d Decoder,
        sentence: Sentence<'d>,
        mut lists: Vec<Source>,
    ) -> Choices<'d> {
        let words = sentence.source().len();
        lists.sort_by_key(|list| (list.span.start, list.span.end));
        let longest = lists.iter().map(|list| list.span.len()).max().unwrap_or(1);
        let mut choices = Choices {
            decoder,
            sentence,
            list: Vec::new(),
            spans: vec![(0, 0); words * longest],
            open: Vec::new(),
            longest,
            lm: Vec::new(),
            inner: Vec::new(),
            lists: Vec::new(),
            future: Future::new(0, |_, _| None),
            walls: Vec::new(),
            zones: Vec::new(),
        };
        let mut classes: FxHashMap<u64, u32> = FxHashMap::default();
        for (number, list) in lists.iter().enumerate() {
            let start = choices.list.len() as u32;
            for (place, target) in list.targets.list.iter().enumerate() {
                choices.add(number, place, list, target, &mut classes);
            }
            let slot = list.span.start * longest + list.span.len() - 1;
            let span = &mut choices.spans[slot];
            if span.0 == span.1 {
                span.0 = start;
            }
            span.1 = choices.list.len() as u32;
        }
        for &(start, end) in &choices.spans {
            let span = &mut choices.list[start as usize..end as usize];
            if !span.is_sorted_by(|a, b| a.estimate >= b.estimate) {
                span.sort_by(|a, b| b.estimate.total_cmp(&a.estimate));
            }
        }
        choices.lists = lists;
        choices.open = choices.spans.clone();
        choices.future = Future::new(words, |start, end| {
            choices.of(start, end).first().map(|choice| choice.estimate)
        });
        choices
    }

    fn add(
        &mut self,
        number: usize,
        place: usize,
        list: &Source,
        target: &Target,
        classes: &mut FxHashMap<u64, u32>,
    ) {
        let fresh = classes.len() as u32;
        let class = *classes.entry(target.orders.class).or_insert(fresh);
        let range = target.start as usize..(target.start + target.length) as usize;
        let words = self.lm.len() as u32;
        self.lm.extend_from_slice(&list.targets.lm[range.clone()]);
        self.inner.extend_from_slice(&list.targets.inner[range]);
        let weighted = &self.decoder.weighted;
        let mut extra = match list.from {
            From::Table(_) => 0.0,
            From::Unknown => weighted.unknown,
            From::Given(score) => score,
        };
        let places = &self.decoder.model.extras.place;
        if !places.is_empty() {
            let mut total = Total { weights: &weighted.named, sum: 0.0 };
            with_rule(self.decoder, &self.sentence, list, place, |rule| {
                for feature in places {
                    feature.find(rule, &self.sentence, list.span.clone(), &[], &mut total);
                }
            });
            extra += total.sum as f32;
        }
        self.list.push(Choice {
            start: list.span.start as u16,
            end: list.span.end as u16,
            list: number as u32,
            place: place as u32,
            score: target.score + extra,
            estimate: target.estimate + extra,
            previous: target.orders.previous,
            next: target.orders.next,
            class,
            words,
            length: target.length as u16,
            state: target.state,
        });
    }

    /// The words of a string as ids of the sentence.
    pub fn spelled(&mut self, string: &[&str]) -> Vec<u32> {
        string.iter().map(|word| self.sentence.spelled_id(word)).collect()
    }

    /// Leaves a search only the phrases that are a part of a string. What is hoped for of a span
    /// does not change.
    pub fn confine(&mut self, string: &[u32]) {
        for slot in 0..self.spans.len() {
            let (start, end) = self.spans[slot];
            let first = self.list.len() as u32;
            for at in start..end {
                let choice = &self.list[at as usize];
                let words = self.target(choice);
                let is_empty = words.is_empty();
                if is_empty || string.windows(words.len()).any(|window| window == words) {
                    self.list.push(choice.clone());
                }
            }
            self.open[slot] = (first, self.list.len() as u32);
        }
    }

    /// The phrases of a span, best first.
    pub fn of(&self, start: usize, end: usize) -> &[Choice] {
        let (first, last) = self.slot(start, end).map_or((0, 0), |slot| self.spans[slot]);
        &self.list[first as usize..last as usize]
    }

    /// Those that a search may use, as positions in [`list`](Self::list).
    pub fn open(&self, start: usize, end: usize) -> (u32, u32) {
        self.slot(start, end).map_or((0, 0), |slot| self.open[slot])
    }

    fn slot(&self, start: usize, end: usize) -> Option<usize> {
        (end - start <= self.longest).then(|| start * self.longest + end - start - 1)
    }

    /// The most words that a phrase covers.
    pub fn longest(&self) -> usize {
        self.longest
    }

    /// The orientation features of a phrase: to the previous one, then to the next.
    pub fn orders(&self, choice: &Choice) -> &[f32; SLOTS] {
        &self.lists[choice.list as usize].targets.list[choice.place as usize].orders.raw
    }

    /// States of the features of the string, of a phrase by itself.
    pub fn strings(&self, choice: &Choice) -> &[u64] {
        &self.lists[choice.list as usize].targets.list[choice.place as usize].strings
    }

    /// Target words of a phrase, ids of the sentence.
    pub fn target(&self, choice: &Choice) -> &[u32] {
        let targets = &self.lists[choice.list as usize].targets;
        targets.words(&targets.list[choice.place as usize])
    }

    /// Calls `see` with the phrase as features see it.
    pub fn with_rule<T>(&self, choice: &Choice, see: impl FnOnce(&Rule<'_>) -> T) -> T {
        let list = &self.lists[choice.list as usize];
        with_rule(self.decoder, &self.sentence, list, choice.place as usize, see)
    }
}

/// A list of one translation that is not from the table.
fn lone(
    decoder: &Decoder,
    sentence: &Sentence<'_>,
    source: &[u32],
    words: Vec<u32>,
) -> Arc<Targets> {
    let source: Vec<Symbol> = source.iter().map(|&word| Symbol::Word(word)).collect();
    let target: Vec<Symbol> = words.into_iter().map(Symbol::Word).collect();
    let rule = Rule {
        source: &source,
        target: &target,
        links: &links_of(&source, &target),
        scores: &[],
        words: sentence as &dyn Spell,
    };
    let lm_id = |word| sentence.lm_id(word);
    let (model, weighted) = (&decoder.model, &decoder.weighted);
    let facts = Facts::alone(model, &rule, lm_id);
    Targets::new(&facts, model, weighted, &source, sentence, 0, |_| &[]).into()
}

/// A word for a word; nothing is known of longer ones.
fn links_of(source: &[Symbol], target: &[Symbol]) -> Vec<(u16, u16)> {
    if source.len() == 1 && target.len() == 1 { vec![(0, 0)] } else { Vec::new() }
}

fn with_rule<T>(
    decoder: &Decoder,
    sentence: &Sentence<'_>,
    list: &Source,
    place: usize,
    see: impl FnOnce(&Rule<'_>) -> T,
) -> T {
    let source = &sentence.source()[list.span.clone()];
    let source: Vec<Symbol> = source.iter().map(|&word| Symbol::Word(word)).collect();
    let target = &list.targets.list[place];
    let symbols: Vec<Symbol> =
        list.targets.words(target).iter().map(|&word| Symbol::Word(word)).collect();
    let columns = match list.from {
        From::Table(node) => decoder.model.table.entries(node).scores(target.entry as usize),
        _ => None,
    };
    let (links, scores) = (list.targets.links(target), columns.unwrap_or_default());
    see(&Rule { source: &source, target: &symbols, links, scores, words: sentence })
}
