//! What both decoders offer: results that can be read off, and forests.

use std::ops::Range;

use tunesmith_space::{
    Derivation, Edge, FeatureSum, Forest, Rows, Side, Skeleton, SkeletonBuilder,
};
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

    /// All that was found, without features, and the score of every edge. Labels of edges are for
    /// [`step`](Self::step) and [`features`](Self::features).
    fn skeleton(&self) -> (Skeleton, Vec<f64>);

    /// Tells the features of edges.
    fn features<'f>(&'f self, collected: &mut Collected) -> Box<dyn Features + 'f>;

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

/// The features of edges by their labels, told to the [`Collected`] that this was made with.
pub trait Features {
    /// Those of the edge's rule.
    fn rule(&self, label: u32, out: &mut Collected);

    /// What the edge adds to them.
    fn own(&self, label: u32, out: &mut Collected);
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

impl Partial {
    /// Puts whole translations before it, and others behind what is hoped for.
    fn join(&mut self, before: &[&Partial], behind: &[&Partial]) {
        let texts = |all: &[&Partial]| joined(all.iter().map(|one| one.text.as_str()));
        self.text = joined([texts(before).as_str(), &self.text]);
        self.rest = joined([self.rest.as_str(), &texts(behind)]);
        let mut sum = FeatureSum::default();
        sum.extend(self.features.drain(..));
        for one in before {
            self.score += one.score;
            self.estimate += one.score;
            sum.extend(one.features.iter().copied());
        }
        self.estimate += behind.iter().map(|one| one.score).sum::<f32>();
        self.features = sum.total().to_vec();
    }

    /// The translation, with that of the rest behind it if it is `whole`.
    pub fn string(&self, whole: bool) -> String {
        joined([self.text.as_str(), if whole { &self.rest } else { "" }])
    }
}

fn joined<'t>(texts: impl IntoIterator<Item = &'t str>) -> String {
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

    fn weights(&self) -> &Weights;

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
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reached {
    /// Words of the reference, from its beginning.
    pub words: usize,
    /// The reference is a translation of the whole sentence.
    pub is_whole: bool,
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

    /// The partial translations of all pieces; see [`Outcome::bins`]. Those of a piece stand behind
    /// the best of the pieces before it.
    pub fn bins(&self, collected: &mut Collected) -> Option<Vec<Vec<Partial>>> {
        let parts = self.parts.iter().map(|(part, _)| part.bins(collected));
        let mut parts: Vec<Vec<Vec<Partial>>> = parts.collect::<Option<_>>()?;
        let first = |bins: &Vec<Vec<Partial>>| bins.last().and_then(|bin| bin.first()).cloned();
        let best: Vec<Option<Partial>> = parts.iter().map(first).collect();
        for (number, bins) in parts.iter_mut().enumerate() {
            let behind: Option<Vec<&Partial>> =
                best[number + 1..].iter().map(Option::as_ref).collect();
            let before: Option<Vec<&Partial>> = best[..number].iter().map(Option::as_ref).collect();
            for bin in bins {
                match (&before, &behind) {
                    (Some(before), Some(behind)) => {
                        bin.iter_mut().for_each(|partial| partial.join(before, behind));
                    }
                    // A sentence that has no translation has no parts of one.
                    _ => bin.clear(),
                }
            }
        }
        Some(parts.concat())
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
