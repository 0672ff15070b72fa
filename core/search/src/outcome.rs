//! What both decoders offer: results that can be read off, and forests.

use std::ops::Range;

use tunesmith_space::{Derivation, Edge, FeatureSum, Forest, ForestBuilder, Side};
use tunesmith_text::Names;

use crate::features::Collected;
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

    /// All that was found. Its features have ids of `collected`, its edges labels for
    /// [`step`](Self::step).
    fn forest(&self, collected: &mut Collected) -> Forest;

    /// What the edges with a label did; `None` where it is nothing to show.
    fn step(&self, label: u32) -> Option<Step>;

    /// Labels are below this number.
    fn labels(&self) -> u32;

    /// The partial translations that the search kept, by the number of words they cover; the last
    /// bin holds whole ones. `None` for decoders that do not work from left to right.
    fn bins(&self, _collected: &mut Collected) -> Option<Vec<Vec<Partial>>> {
        None
    }
}

/// A translation of some words of a sentence.
#[derive(Debug, Clone, PartialEq)]
pub struct Partial {
    pub text: String,
    /// The best translation of what is left, from left to right: what the estimate is made of.
    pub rest: String,
    pub score: f32,
    /// The score with what is hoped for the rest.
    pub estimate: f32,
    pub features: Vec<(u32, f32)>,
}

/// A decoder with its weights; may be shared between threads.
pub trait Decode: Send + Sync {
    fn decode<'d>(&'d self, input: &Input<'_>) -> Box<dyn Outcome + 'd>;

    /// The derivations of a reference and no others, and how many of its words can be reached from
    /// its beginning; `None` for decoders that cannot be forced.
    fn force<'d>(
        &'d self,
        _input: &Input<'_>,
        _reference: &[&str],
    ) -> Option<(Box<dyn Outcome + 'd>, usize)> {
        None
    }

    fn weights(&self) -> &Weights;

    /// Longer sentences are translated in pieces.
    fn max_words(&self) -> usize;
}

/// Translates a sentence of any length.
pub fn decode<'d>(decoder: &'d dyn Decode, input: &Input<'_>) -> Translated<'d> {
    let pieces = input.pieces(decoder.max_words());
    let mut offset = 0;
    let parts = pieces.iter().map(|piece| {
        let start = offset;
        offset += piece.words.len();
        (decoder.decode(piece), start)
    });
    Translated { parts: parts.collect(), decoder }
}

/// The derivations of a reference and no others, and how many of its words can be reached; `None`
/// if the decoder cannot be forced.
pub fn force<'d>(
    decoder: &'d dyn Decode,
    input: &Input<'_>,
    reference: &[&str],
) -> Option<(Translated<'d>, usize)> {
    let (found, reached) = decoder.force(input, reference)?;
    Some((Translated { parts: vec![(found, 0)], decoder }, reached))
}

/// What was found for a sentence, or for the pieces of a long one.
pub struct Translated<'d> {
    parts: Vec<(Box<dyn Outcome + 'd>, usize)>,
    decoder: &'d dyn Decode,
}

/// A translation read off a forest.
#[derive(Debug, Clone, PartialEq)]
pub struct Reading {
    pub text: String,
    pub score: f64,
    /// Ids of the names that came with the forest.
    pub features: Vec<(u32, f32)>,
    /// Labels of the rules, from the goal down; only if asked for.
    pub steps: Vec<u32>,
    /// Links between words of the two sentences; only if asked for.
    pub links: Vec<(u32, u32)>,
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
        let texts = self.parts.iter().map(|(part, _)| part.text());
        texts.filter(|text| !text.is_empty()).collect::<Vec<_>>().join(" ")
    }

    /// All that was found, for the pieces one after the other.
    pub fn forest(&self, collected: &mut Collected) -> Forest {
        if let [(only, _)] = &self.parts[..] {
            return only.forest(collected);
        }
        let mut builder = ForestBuilder::default();
        let mut before: Option<u32> = None;
        let mut labels = 0;
        let both = builder.rule([], [Side::Gap(0), Side::Gap(1)]);
        for (part, _) in &self.parts {
            let Some(goal) = builder.graft(&part.forest(collected), labels) else {
                return ForestBuilder::default().finish();
            };
            labels += part.labels();
            before = Some(match before {
                None => goal,
                Some(left) => {
                    let node = builder.node();
                    let edge = Edge { tails: [left, goal], rule: both, label: u32::MAX };
                    builder.edge(edge, []);
                    node
                }
            });
        }
        builder.finish()
    }

    /// The partial translations of all pieces; see [`Outcome::bins`].
    pub fn bins(&self, collected: &mut Collected) -> Option<Vec<Vec<Partial>>> {
        let parts = self.parts.iter().map(|(part, _)| part.bins(collected));
        parts.collect::<Option<Vec<_>>>().map(|parts| parts.concat())
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

    /// The `k` best translations of a forest, best first.
    pub fn best(
        &self,
        forest: &Forest,
        names: &Names,
        k: usize,
        unique: bool,
        details: bool,
    ) -> Vec<Reading> {
        let scores = forest.scores(&self.weights(names));
        let mut sum = FeatureSum::default();
        let mut read = |derivation: Derivation| Reading {
            text: forest.text(&derivation),
            score: derivation.score,
            features: sum.of(forest, &derivation).to_vec(),
            steps: if details { labels(forest, &derivation) } else { Vec::new() },
            links: if details { self.links(forest, &derivation) } else { Vec::new() },
        };
        match (k, unique) {
            (1, _) => forest.viterbi(&scores).map(&mut read).into_iter().collect(),
            _ => forest.best(&scores, unique).take(k).map(read).collect(),
        }
    }

    /// Links between words of the two sentences, by target and source.
    pub fn links(&self, forest: &Forest, derivation: &Derivation) -> Vec<(u32, u32)> {
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

fn labels(forest: &Forest, derivation: &Derivation) -> Vec<u32> {
    let labels = derivation.edges.iter().map(|&edge| forest.edges()[edge as usize].label);
    labels.filter(|&label| label != u32::MAX).collect()
}
