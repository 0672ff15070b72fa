//! A model with weights and settings, ready to translate.

use std::sync::{Arc, OnceLock};

use super::contest::Contest;
use super::facts::{Facts, Kept};
use super::model::{Model, SLOTS};
use super::results::Found;
use super::targets::Targets;
use super::{force, search};
use crate::cache::Cache;
use crate::settings::{whole, wrong};
use crate::{Decode, GivenUp, Input, ModelWords, Outcome, Reached, Weights};
use tunesmith_rules::{Node, Symbol};
use tunesmith_text::{Error, Result};

/// How to search.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Hypotheses kept for each number of covered words.
    pub stack: usize,
    /// Hypotheses made for each number of covered words; 0 makes all.
    pub pop_limit: usize,
    /// Hypotheses that are worse than the best of their stack by more than this are dropped. Means
    /// little before the size of the weights is known, so the default is none.
    pub threshold: f32,
    /// Words that the next phrase may be away from the last one; `None` for any number.
    pub distortion_limit: Option<usize>,
    /// Translations of a source phrase that are looked at; 0 for all.
    pub table_limit: usize,
    /// Words of a source phrase.
    pub phrase_limit: usize,
    /// Unknown words without a digit translate to nothing, as with Moses' drop-unknown.
    pub drop_unknown: bool,
    /// Longer sentences are translated in pieces.
    pub max_words: usize,
    /// Cells that a search forced to a reference looks at before it is given up; 0 for any number.
    pub force_limit: usize,
}

impl Settings {
    /// Names and meanings, for help and messages.
    pub const NAMES: [(&'static str, &'static str); 9] = [
        ("stack", "hypotheses kept for each number of covered words; 0 keeps all"),
        ("pop_limit", "hypotheses made for each number of covered words; 0 makes all"),
        ("threshold", "what a hypothesis may be worse than the best of its stack"),
        ("distortion_limit", "words that may be jumped over; -1 for any number"),
        ("table_limit", "translations of a source phrase that are looked at; 0 for all"),
        ("phrase_limit", "words of a source phrase"),
        ("drop_unknown", "1 drops unknown words that have no digit, 0 passes them through"),
        ("max_words", "words of a sentence; longer ones are translated in pieces"),
        ("force_limit", "cells a search forced to a reference may look at; 0 for any number"),
    ];

    /// Changes a setting.
    pub fn set(&mut self, name: &str, value: f64) -> Result<()> {
        if name == "threshold" {
            if value.is_nan() || value < 0.0 {
                return Err(wrong(name, value, "a number that is not negative, or inf"));
            }
            self.threshold = value as f32;
            return Ok(());
        }
        if name == "distortion_limit" {
            self.distortion_limit = match value == -1.0 {
                true => None,
                false => Some(whole(name, value, 0, "or -1 for any number")?),
            };
            return Ok(());
        }
        if name == "drop_unknown" {
            if value != 0.0 && value != 1.0 {
                return Err(wrong(name, value, "0 or 1"));
            }
            self.drop_unknown = value == 1.0;
            return Ok(());
        }
        let (place, least, remedy) = match name {
            "stack" => (&mut self.stack, 0, "0 for all"),
            "pop_limit" => (&mut self.pop_limit, 0, "0 for all"),
            "table_limit" => (&mut self.table_limit, 0, "0 for all"),
            "phrase_limit" => (&mut self.phrase_limit, 1, ""),
            "max_words" => (&mut self.max_words, 2, ""),
            "force_limit" => (&mut self.force_limit, 0, "0 for any number"),
            _ => {
                let known = Settings::NAMES.map(|known| known.0).join(", ");
                return Err(Error::new(format!("no setting {name}"))
                    .remedy(format!("those of a phrase-based decoder are {known}")));
            }
        };
        *place = whole(name, value, least, remedy)?;
        // Places of words are 16-bit numbers.
        self.max_words = self.max_words.min(usize::from(u16::MAX) - 1);
        Ok(())
    }
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            stack: 100,
            pop_limit: 300,
            threshold: f32::INFINITY,
            distortion_limit: Some(6),
            table_limit: 20,
            phrase_limit: 7,
            drop_unknown: false,
            max_words: 200,
            force_limit: 1_000_000,
        }
    }
}

/// The weights of the features that every model has, one by one.
pub struct Weighted {
    pub named: Arc<Weights>,
    /// Of logarithms to base ten.
    pub lm: f32,
    pub word: f32,
    pub phrase: f32,
    pub unknown: f32,
    pub distortion: f32,
    pub scores: Vec<f32>,
    pub reordering: [f32; SLOTS],
    /// Whether the model knows orientations.
    pub oriented: bool,
}

impl Weighted {
    fn new(model: &Model, named: Arc<Weights>) -> Weighted {
        let dense = &model.dense;
        let of = |name: &str| named.of(name) as f32;
        let mut reordering = [0.0; SLOTS];
        if let Some(found) = &dense.reordering {
            reordering = found.features.map(|feature| of(&found.names[feature]));
        }
        Weighted {
            lm: of(&dense.lm) * std::f32::consts::LN_10,
            word: of(&dense.words.0) * dense.words.1,
            phrase: of(&dense.phrases.0) * dense.phrases.1,
            unknown: of(&dense.unknown.0) * dense.unknown.1,
            distortion: of(&dense.distortion),
            scores: dense.scores.iter().map(|(name, _)| of(name)).collect(),
            oriented: dense.reordering.is_some() || !model.extras.order.is_empty(),
            reordering,
            named,
        }
    }
}

/// Translates; may be shared between threads.
pub struct Decoder {
    pub(crate) model: Arc<Model>,
    pub(crate) weighted: Weighted,
    pub(crate) settings: Settings,
    pub(crate) cache: Cache<Targets>,
    kept: Option<Arc<Kept>>,
    /// The same for decoders that differ from this one in a few weights.
    shared: OnceLock<Arc<Kept>>,
}

/// Bytes of scored translations that are kept from sentence to sentence.
const CACHED: usize = 128 << 20;

impl Decoder {
    pub fn new(model: Arc<Model>, weights: impl Into<Arc<Weights>>, settings: Settings) -> Decoder {
        let weighted = Weighted::new(&model, weights.into());
        Decoder {
            model,
            weighted,
            settings,
            cache: Cache::new(CACHED),
            kept: None,
            shared: OnceLock::new(),
        }
    }

    /// Uses what decoders of the same model with other weights have found out, and adds to it.
    pub fn keeping(self, kept: impl Into<Option<Arc<Kept>>>) -> Decoder {
        Decoder { kept: kept.into(), ..self }
    }

    /// The best translations of a source phrase in the table.
    pub(super) fn targets(&self, source: &[Symbol], node: Node) -> Targets {
        let make = || Facts::of_node(&self.model, source, node);
        let limit = self.settings.table_limit;
        match &self.kept {
            Some(kept) => self.weigh(&kept.get(node, make), source, node, limit),
            None => self.weigh(&make(), source, node, limit),
        }
    }

    fn weigh(&self, facts: &Facts, source: &[Symbol], node: Node, limit: usize) -> Targets {
        let Decoder { model, weighted, .. } = self;
        let words = ModelWords::new(&model.table, &model.lexicon);
        let entries = model.table.entries(node);
        let columns = |entry| entries.scores(entry as usize).unwrap_or_default();
        Targets::new(facts, model, weighted, source, &words, limit, columns)
    }

    pub fn model(&self) -> &Arc<Model> {
        &self.model
    }

    /// Everything that was found for a sentence.
    pub fn search<'d>(&'d self, input: &Input<'_>) -> Found<'d> {
        search::search(self, input)
    }

    /// The derivations of a reference, or of its longest part from the beginning that can be
    /// reached; see [`reached`](Found::reached). A sentence that is translated in pieces cannot be
    /// forced: nothing is found for it.
    pub fn search_for<'d>(&'d self, input: &Input<'_>, reference: &[&str]) -> Found<'d> {
        match input.words.len() > self.settings.max_words {
            true => force::force(self, &Input::default(), reference).given_up(GivenUp::Length),
            false => force::force(self, input, reference),
        }
    }
}

impl Decode for Decoder {
    fn decode<'d>(&'d self, input: &Input<'_>) -> Box<dyn Outcome + 'd> {
        Box::new(self.search(input))
    }

    fn force<'d>(
        &'d self,
        input: &Input<'_>,
        reference: &[&str],
    ) -> Option<(Box<dyn Outcome + 'd>, Reached)> {
        let found = self.search_for(input, reference);
        let reached = found.reached();
        Some((Box::new(found), reached))
    }

    fn contest<'d>(
        &'d self,
        input: &Input<'_>,
        reference: &[&str],
        least: usize,
    ) -> Option<Contest<'d>> {
        Some(Contest::new(self, input, reference, least))
    }

    fn weights(&self) -> &Weights {
        &self.weighted.named
    }

    fn with_changes(&self, changes: &[(String, f64)]) -> Box<dyn Decode> {
        let changed = changes.iter().map(|(name, weight)| (name.as_str(), *weight));
        let weights = Weights::over(Arc::clone(&self.weighted.named), changed);
        let kept = self.kept.as_ref().unwrap_or_else(|| self.shared.get_or_init(Arc::default));
        let decoder = Decoder::new(Arc::clone(&self.model), weights, self.settings.clone());
        Box::new(decoder.keeping(Arc::clone(kept)))
    }

    fn max_words(&self) -> usize {
        self.settings.max_words
    }
}
