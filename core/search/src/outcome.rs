//! What both decoders offer: results that can be read off, and forests.

use std::ops::Range;

use tunesmith_space::{
    Derivation, Edge, FeatureSum, Forest, Rows, Side, Skeleton, SkeletonBuilder,
};
use tunesmith_text::Names;

use crate::features::Collected;
use crate::phrase::Contest;
use crate::{Input, Weights};

/// One rule of a derivation, as a person sees it.
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    /// The words of the sentence that it covers.
    pub span: Range<usize>,
    /// Where each symbol of the source side stands in the sentence; `None` for a gap.
    pub places: Vec<Option<usize>>,
    /// The target side; gaps are `[X,1]` and `[X,2]`.
    pub target: Vec<String>,
    /// Between places on the two sides.
    pub links: Vec<(u16, u16)>,
    pub origin: Origin,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    Table,
    /// A word that the model does not know.
    Unknown,
    /// What the user gave.
    Given,
    /// What holds the parts together.
    Glue,
}

impl Origin {
    pub fn name(self) -> &'static str {
        match self {
            Origin::Table => "table",
            Origin::Unknown => "unknown",
            Origin::Given => "given",
            Origin::Glue => "glue",
        }
    }
}

/// Everything that was found for a sentence.
pub trait Outcome: Send {
    /// The model's score of the best translation; `None` if there is no translation.
    fn score(&self) -> Option<f64>;

    /// The best translation; empty if there is none.
    fn text(&self) -> String;

    /// All that was found, without features, and the score of every edge. Labels of edges are for
    /// [`step`](Self::step) and [`features`](Self::features).
    fn skeleton(&self) -> (Skeleton, Vec<f64>);

    /// Tells the features of edges.
    fn features<'f>(&'f self, collected: &mut Collected) -> Box<dyn Features + 'f>;

    /// What the edges with a label did; `None` where it is nothing to show.
    fn step(&self, label: u32) -> Option<Step>;

    /// Labels are below this number.
    fn labels(&self) -> u32;

    /// The partial translations that the search kept, bin by bin, best score first; each with at
    /// most so many ways to it. The last bin holds whole ones. How many bins there are depends on
    /// the sentence and the settings, not on the weights, so that those of several searches lie
    /// side by side; some may be empty.
    fn bins(&self, ways: usize, collected: &mut Collected) -> Option<Vec<Vec<Partial>>> {
        let _ = (ways, collected);
        None
    }
}

/// The features of edges by their labels, told to the [`Collected`] that this was made with.
pub trait Features {
    /// Those of the edge's rule.
    fn rule(&self, label: u32, out: &mut Collected);

    /// What the edge adds to them.
    fn own(&self, label: u32, out: &mut Collected);
}

/// What is wanted of the bins of a search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Beam {
    /// Ways to each hypothesis, best first; those that a better one with the same future hides
    /// count, too.
    pub ways: usize,
    /// Length of the last bin: the list of whole translations, unique by string.
    pub list: usize,
}

/// A translation of some words of a sentence, as a bin of the search holds it.
#[derive(Debug, Clone, PartialEq)]
pub struct Partial {
    /// The words that it covers: spans from left to right that do not touch.
    pub covered: Vec<Range<usize>>,
    /// What stands before it in a whole translation; nothing in a search from left to right.
    pub before: String,
    pub text: String,
    /// What is hoped for the rest, as it would stand behind it.
    pub after: String,
    pub score: f32,
    /// The score with what is hoped for the rest.
    pub estimate: f32,
    /// Of the score.
    pub features: Vec<(u32, f32)>,
    /// Of the difference between the two.
    pub future: Vec<(u32, f32)>,
}

impl Partial {
    /// Puts whole translations before it, and others behind what is hoped for; so many words of the
    /// sentence come before its own.
    fn join(&mut self, before: &[&Partial], behind: &[&Partial], offset: usize) {
        let texts = |all: &[&Partial]| joined(all.iter().map(|one| one.text.as_str()));
        let sum = |own: &mut Vec<(u32, f32)>, all: &[&Partial]| {
            let mut sum = FeatureSum::default();
            sum.extend(own.drain(..));
            all.iter().for_each(|one| sum.extend(one.features.iter().copied()));
            *own = sum.total().to_vec();
        };
        for span in &mut self.covered {
            *span = span.start + offset..span.end + offset;
        }
        match self.covered.first_mut() {
            Some(first) if first.start == offset => first.start = 0,
            _ if offset > 0 => self.covered.insert(0, 0..offset),
            _ => {}
        }
        match self.before.is_empty() {
            true => self.text = joined([texts(before).as_str(), &self.text]),
            false => self.before = joined([texts(before).as_str(), &self.before]),
        }
        self.after = joined([self.after.as_str(), &texts(behind)]);
        sum(&mut self.features, before);
        sum(&mut self.future, behind);
        let known: f32 = before.iter().map(|one| one.score).sum();
        self.score += known;
        self.estimate += known + behind.iter().map(|one| one.score).sum::<f32>();
    }

    /// The whole translation that it may become.
    pub fn whole(&self) -> String {
        joined([self.before.as_str(), &self.text, &self.after])
    }
}

/// Texts with spaces between them, without the empty ones.
pub(crate) fn joined<'t>(texts: impl IntoIterator<Item = &'t str>) -> String {
    texts.into_iter().filter(|text| !text.is_empty()).collect::<Vec<_>>().join(" ")
}

/// A decoder with its weights; may be shared between threads.
pub trait Decode: Send + Sync {
    fn decode<'d>(&'d self, input: &Input<'_>) -> Box<dyn Outcome + 'd>;

    /// The derivations of a reference and no others, or if there are none some of the longest part
    /// of it that can be reached from its beginning; `None` for decoders that cannot be forced.
    fn force<'d>(
        &'d self,
        _input: &Input<'_>,
        _reference: &[&str],
    ) -> Option<(Box<dyn Outcome + 'd>, Reached)> {
        None
    }

    /// The gold derivations of a reference against the beam; `None` for decoders that cannot be
    /// forced. See [`Contest`].
    fn contest<'d>(
        &'d self,
        _input: &Input<'_>,
        _reference: &[&str],
        _least: usize,
    ) -> Option<Contest<'d>> {
        None
    }

    fn weights(&self) -> &Weights;

    /// The same decoder with a few other weights, given by name. The others stay shared, and so
    /// does what is known of rules whatever the weights are.
    fn with_changes(&self, changes: &[(String, f64)]) -> Box<dyn Decode>;

    /// Longer sentences are translated in pieces.
    fn max_words(&self) -> usize;
}

/// Translates a sentence of any length.
pub fn decode<'d>(decoder: &'d dyn Decode, input: &Input<'_>) -> Translated<'d> {
    let pieces = match input.stop.is_asked() {
        // Of many sentences those that are left take no time.
        true => vec![Input::default()],
        false => input.pieces(decoder.max_words()),
    };
    let mut offset = 0;
    let parts = pieces.iter().map(|piece| {
        let start = offset;
        offset += piece.words.len();
        (decoder.decode(piece), start)
    });
    Translated { parts: parts.collect(), decoder }
}

/// How far a search came that was forced to a reference.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Reached {
    /// Words of the reference, from its beginning.
    pub words: usize,
    /// The reference is a translation of the whole sentence.
    pub is_whole: bool,
    /// Hypotheses that lead there; those that cannot be told apart by what comes later count once.
    pub states: usize,
    /// Ways there.
    pub derivations: f64,
    /// Why nothing is known for sure, if so: there may be more.
    pub given_up: Option<GivenUp>,
}

/// Why a forced search was given up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GivenUp {
    /// It looked at too many cells.
    Work,
    /// The sentence is translated in pieces.
    Length,
}

/// See [`Decode::force`].
pub fn force<'d>(
    decoder: &'d dyn Decode,
    input: &Input<'_>,
    reference: &[&str],
) -> Option<(Translated<'d>, Reached)> {
    let (found, reached) = decoder.force(input, reference)?;
    Some((Translated { parts: vec![(found, 0)], decoder }, reached))
}

/// What was found for a sentence, or for the pieces of a long one.
pub struct Translated<'d> {
    parts: Vec<(Box<dyn Outcome + 'd>, usize)>,
    decoder: &'d dyn Decode,
}

impl Translated<'_> {
    /// The number of pieces that the sentence was cut into.
    pub fn pieces(&self) -> usize {
        self.parts.len()
    }

    pub fn score(&self) -> Option<f64> {
        self.parts.iter().map(|(part, _)| part.score()).sum()
    }

    pub fn text(&self) -> String {
        let texts: Vec<String> = self.parts.iter().map(|(part, _)| part.text()).collect();
        joined(texts.iter().map(String::as_str))
    }

    /// All that was found, for the pieces one after the other, and the score of every edge.
    pub fn skeleton(&self) -> (Skeleton, Vec<f64>) {
        if let [(only, _)] = &self.parts[..] {
            return only.skeleton();
        }
        let mut builder = SkeletonBuilder::default();
        let mut scores = Vec::new();
        let mut before: Option<u32> = None;
        let mut labels = 0;
        let both = builder.rule([Side::Gap(0), Side::Gap(1)]);
        for (part, _) in &self.parts {
            let (skeleton, own) = part.skeleton();
            let Some(goal) = builder.graft(&skeleton, labels) else {
                return Default::default();
            };
            scores.extend(own);
            labels += part.labels();
            before = Some(match before {
                None => goal,
                Some(left) => {
                    let node = builder.node();
                    builder.edge(Edge { tails: [left, goal], rule: both, label: u32::MAX });
                    scores.push(0.0);
                    node
                }
            });
        }
        (builder.finish(), scores)
    }

    /// All that was found. Its features have ids of `collected`.
    pub fn forest(&self, collected: &mut Collected) -> Forest {
        let (skeleton, _) = self.skeleton();
        let features = self.features(collected);
        // A rule's features are those of any edge with it.
        let mut labels = vec![u32::MAX; skeleton.rules()];
        skeleton.edges().iter().for_each(|edge| labels[edge.rule as usize] = edge.label);
        let (mut rules, mut own) = (Rows::default(), Rows::default());
        for label in labels {
            features.rule(label, collected);
            rules.push(collected.take());
        }
        for edge in skeleton.edges() {
            features.own(edge.label, collected);
            own.push(collected.take());
        }
        drop(features);
        Forest::new(skeleton, rules, own)
    }

    /// Tells the features of the edges of all pieces.
    pub fn features<'f>(&'f self, collected: &mut Collected) -> impl Features + use<'f> {
        Pieces(
            self.parts.iter().map(|(part, _)| (part.features(collected), part.labels())).collect(),
        )
    }

    /// The bins of the search; see [`Outcome::bins`]. Those of a piece stand behind the best of the
    /// pieces before it, and the last one is the list that [`best`](Self::best) gives. `None` for
    /// decoders without bins.
    pub fn bins(&self, beam: Beam, collected: &mut Collected) -> Option<Vec<Vec<Partial>>> {
        let parts = self.parts.iter().map(|(part, _)| part.bins(beam.ways, collected));
        let mut parts: Vec<Vec<Vec<Partial>>> = parts.collect::<Option<_>>()?;
        if self.parts.len() > 1 {
            self.join(&mut parts);
        }
        let mut bins = parts.concat();
        // Of a forced search that does not reach the end it stays empty.
        if let Some(last) = bins.last_mut().filter(|last| !last.is_empty()) {
            let words = last[0].covered.last().map_or(0, |span| span.end);
            let all = 0..words;
            last.clear();
            last.extend(self.best(beam.list, true, collected).into_iter().map(|one| Partial {
                covered: vec![all.clone()],
                before: String::new(),
                text: one.text,
                after: String::new(),
                score: one.score as f32,
                estimate: one.score as f32,
                features: one.features,
                future: Vec::new(),
            }));
        }
        Some(bins)
    }

    /// Puts the bins of each piece between the best translations of the others.
    fn join(&self, parts: &mut [Vec<Vec<Partial>>]) {
        let first = |bins: &Vec<Vec<Partial>>| bins.last().and_then(|bin| bin.first()).cloned();
        let best: Option<Vec<Partial>> = parts.iter().map(first).collect();
        let Some(best) = best else {
            // A sentence that has no translation has no parts of one.
            parts.iter_mut().flatten().for_each(Vec::clear);
            return;
        };
        let all: Vec<&Partial> = best.iter().collect();
        for (number, (bins, (_, offset))) in parts.iter_mut().zip(&self.parts).enumerate() {
            for partial in bins.iter_mut().flatten() {
                partial.join(&all[..number], &all[number + 1..], *offset);
            }
        }
    }

    /// What the edges of the forest with a label did.
    pub fn step(&self, mut label: u32) -> Option<Step> {
        for (part, offset) in &self.parts {
            if label < part.labels() {
                let mut step = part.step(label)?;
                step.span = step.span.start + offset..step.span.end + offset;
                step.places.iter_mut().flatten().for_each(|place| *place += offset);
                return Some(step);
            }
            label = label.checked_sub(part.labels())?;
        }
        None
    }

    /// The weights of the features of a forest.
    pub fn weights(&self, names: &Names) -> Vec<f64> {
        names.iter().map(|name| self.decoder.weights().of(name)).collect()
    }

    /// Links between words of the two sentences, by target and source.
    pub fn links(&self, forest: &Skeleton, derivation: &Derivation) -> Vec<(u32, u32)> {
        // Where the words of each rule went.
        let mut went: Vec<Vec<(usize, u32)>> = vec![Vec::new(); derivation.edges.len()];
        let mut position = 0;
        forest.read(derivation, |_, edge, symbol| {
            went[edge].push((symbol, position));
            position += 1;
        });
        let mut links = Vec::new();
        for (&edge, went) in derivation.edges.iter().zip(&went) {
            let Some(step) = self.step(forest.edges()[edge as usize].label) else { continue };
            // Phrases are rules that begin with a gap, which steps do not show.
            let hidden = forest.side(forest.edges()[edge as usize].rule).len() - step.target.len();
            for &(source, target) in &step.links {
                let from = step.places.get(usize::from(source)).copied().flatten();
                let to = went.iter().find(|(symbol, _)| *symbol == usize::from(target) + hidden);
                if let (Some(from), Some(&(_, to))) = (from, to) {
                    links.push((from as u32, to));
                }
            }
        }
        links.sort_by_key(|&(source, target)| (target, source));
        links
    }
}

/// What tells the features of each piece, and how many labels the piece has.
struct Pieces<'f>(Vec<(Box<dyn Features + 'f>, u32)>);

impl Pieces<'_> {
    fn find(&self, mut label: u32) -> Option<(&dyn Features, u32)> {
        for (features, labels) in &self.0 {
            if label < *labels {
                return Some((&**features, label));
            }
            label -= labels;
        }
        None
    }
}

impl Features for Pieces<'_> {
    fn rule(&self, label: u32, out: &mut Collected) {
        if let Some((features, label)) = self.find(label) {
            features.rule(label, out);
        }
    }

    fn own(&self, label: u32, out: &mut Collected) {
        if let Some((features, label)) = self.find(label) {
            features.own(label, out);
        }
    }
}
