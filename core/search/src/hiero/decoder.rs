//! A model with weights and settings, ready to translate.

use std::sync::{Arc, OnceLock};

use tunesmith_rules::{Node, Symbol};
use tunesmith_text::{Error, Result};

use super::facts::{Facts, Kept};
use super::group::Group;
use super::model::Model;
use super::results::Found;
use super::search;
use crate::cache::Cache;
use crate::settings::{whole, wrong};
use crate::{Decode, Input, Outcome, Weights};

/// How to search.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Rules over vertices that are taken for each span; 0 takes all.
    pub pop_limit: usize,
    /// Words that a rule may cover, those under its gaps included.
    pub max_span: usize,
    /// Translations of a source side that are looked at; 0 for all.
    pub table_limit: usize,
    /// The share of what the language model's preliminary scores lack to certainty that rules
    /// hope to gain before they are scored exactly. With 1 the order in which they are taken is
    /// that of exact scores; with less, fewer are scored.
    pub hope: f32,
    /// Whether spans are built as far as larger ones ask for (cube growing) and not as far as
    /// the pop limit lets them (cube pruning).
    pub growing: bool,
    /// Longer sentences are translated in pieces.
    pub max_words: usize,
}

impl Settings {
    /// Names and meanings, for help and messages.
    pub const NAMES: [(&'static str, &'static str); 6] = [
        ("pop_limit", "rules over vertices that are taken for each span; 0 takes all"),
        ("max_span", "words that a rule may cover, those under its gaps included"),
        ("table_limit", "translations of a source side that are looked at; 0 for all"),
        ("hope", "what unscored rules hope to gain by their context, from 0 to 1 (exact order)"),
        ("growing", "1 builds spans as far as larger ones ask for (cube growing)"),
        ("max_words", "words of a sentence; longer ones are translated in pieces"),
    ];

    /// Changes a setting.
    pub fn set(&mut self, name: &str, value: f64) -> Result<()> {
        let (place, least, remedy) = match name {
            "pop_limit" => (&mut self.pop_limit, 0, "0 for all"),
            "max_span" => (&mut self.max_span, 1, ""),
            "table_limit" => (&mut self.table_limit, 0, "0 for all"),
            "max_words" => (&mut self.max_words, 2, ""),
            "hope" if (0.0..=1.0).contains(&value) => {
                self.hope = value as f32;
                return Ok(());
            }
            "hope" => return Err(wrong(name, value, "a number from 0 to 1")),
            "growing" if value == 0.0 || value == 1.0 => {
                self.growing = value == 1.0;
                return Ok(());
            }
            "growing" => return Err(wrong(name, value, "0 or 1")),
            _ => {
                let known = Settings::NAMES.map(|known| known.0).join(", ");
                return Err(Error::new(format!("no setting {name}"))
                    .remedy(format!("those of a hierarchical decoder are {known}")));
            }
        };
        *place = whole(name, value, least, remedy)?;
        Ok(())
    }

    /// The pop limit as a number that can be reached.
    pub(super) fn most(&self) -> usize {
        if self.pop_limit == 0 { usize::MAX } else { self.pop_limit }
    }
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            pop_limit: 200,
            max_span: 10,
            table_limit: 0,
            hope: 0.5,
            growing: false,
            max_words: 200,
        }
    }
}

/// The weights of the features that every model has, one by one.
pub struct Weighted {
    pub named: Arc<Weights>,
    /// Of logarithms to base ten.
    pub lm: f32,
    /// What is hoped for of each unit of a preliminary logarithm.
    pub gain: f32,
    pub lm_unknown: f32,
    pub words: f32,
    pub glue: f32,
    pub unknown: f32,
    pub arity: [f32; 3],
    pub scores: Vec<f32>,
}

impl Weighted {
    fn new(model: &Model, named: Arc<Weights>, hope: f32) -> Weighted {
        let dense = &model.dense;
        let of = |name: &str| named.of(name) as f32;
        let lm = of(&dense.lm.0) * dense.lm.1;
        Weighted {
            lm,
            gain: hope * lm.max(0.0),
            lm_unknown: of(&dense.lm_unknown),
            words: of(&dense.words.0) * dense.words.1,
            glue: of(&dense.glue),
            unknown: of(&dense.unknown),
            arity: dense.arity.as_ref().map_or([0.0; 3], |n| [of(&n[0]), of(&n[1]), of(&n[2])]),
            scores: dense.scores.iter().map(|(name, _)| of(name)).collect(),
            named,
        }
    }
}

/// Translates; may be shared between threads.
pub struct Decoder {
    pub(super) model: Arc<Model>,
    pub(super) weighted: Weighted,
    pub(super) settings: Settings,
    pub(super) cache: Cache<Group>,
    kept: Option<Arc<Kept>>,
    /// The same for decoders that differ from this one in a few weights.
    shared: OnceLock<Arc<Kept>>,
}

/// Bytes of scored rules that are kept from sentence to sentence.
const CACHED: usize = 16 << 20;

impl Decoder {
    pub fn new(model: Arc<Model>, weights: impl Into<Arc<Weights>>, settings: Settings) -> Decoder {
        let weighted = Weighted::new(&model, weights.into(), settings.hope);
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

    /// The best rules of a source side in the table.
    pub(super) fn group(&self, source: &[Symbol], node: Node) -> Group {
        let make = || Facts::of_node(&self.model, source, node);
        match &self.kept {
            Some(kept) => self.weigh(&kept.get(node, make)),
            None => self.weigh(&make()),
        }
    }

    fn weigh(&self, facts: &Facts) -> Group {
        let weighted = &self.weighted;
        Group::new(facts, weighted, weighted.arity[facts.gaps], self.settings.table_limit)
    }

    pub fn model(&self) -> &Arc<Model> {
        &self.model
    }

    /// Everything that was found for a sentence.
    pub fn search<'d>(&'d self, input: &Input<'_>) -> Found<'d> {
        search::search(self, input)
    }
}

impl Decode for Decoder {
    fn decode<'d>(&'d self, input: &Input<'_>) -> Box<dyn Outcome + 'd> {
        Box::new(self.search(input))
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
