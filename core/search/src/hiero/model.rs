//! A hierarchical model: rules, a language model, and the names of its features.

use tunesmith_rules::{Kind, Scale, Table};

use crate::{Named, Score};

/// Which words may stand for themselves in the translation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PassThrough {
    /// All of them.
    Every,
    /// Those that have no translation by themselves.
    Untranslated,
}

/// The names of the features that every model has, and what one unit of each counts.
#[derive(Debug, Clone)]
pub struct Dense {
    /// Decimal logarithm of the probability of the string, times a number.
    pub lm: (String, f32),
    /// Words that the language model does not know.
    pub lm_unknown: String,
    pub words: (String, f32),
    /// Uses of the rule S → S X.
    pub glue: String,
    /// Words that stand for themselves.
    pub unknown: String,
    pub pass: PassThrough,
    /// Rules of the table by their number of gaps.
    pub arity: Option<[String; 3]>,
    pub scores: Vec<(String, Score)>,
}

impl Dense {
    /// All that a table made here offers: its probabilities and values, not its counts.
    pub fn of_table(table: &Table) -> Dense {
        let scores = table.columns().iter().enumerate().filter_map(|(place, column)| {
            let score = match column.scale {
                Scale::Probability => Score::Log(place),
                Scale::Value => Score::Value(place),
                Scale::Count => return None,
            };
            Some((column.name.clone(), score))
        });
        Dense {
            lm: ("lm".to_owned(), std::f32::consts::LN_10),
            lm_unknown: "lm-unknown".to_owned(),
            words: ("words".to_owned(), 1.0),
            glue: "glue".to_owned(),
            unknown: "unknown".to_owned(),
            pass: PassThrough::Untranslated,
            arity: Some([0, 1, 2].map(|gaps| format!("arity-{gaps}"))),
            scores: scores.collect(),
        }
    }

    /// cdec's names and values, and its way with unknown words.
    pub fn of_cdec(table: &Table) -> Dense {
        Dense {
            lm: ("LanguageModel".to_owned(), 1.0),
            lm_unknown: "LanguageModel_OOV".to_owned(),
            words: ("WordPenalty".to_owned(), -std::f32::consts::LOG10_E),
            glue: "Glue".to_owned(),
            unknown: "PassThrough".to_owned(),
            pass: PassThrough::Every,
            arity: None,
            ..Dense::of_table(table)
        }
    }
}

impl Named for Dense {
    const KIND: Kind = Kind::Hiero;

    fn names(&self) -> Vec<&str> {
        let mut names = vec![self.lm.0.as_str(), &self.lm_unknown];
        names.extend(self.scores.iter().map(|(name, _)| name.as_str()));
        names.extend([&self.words.0, &self.glue, &self.unknown].map(String::as_str));
        names.extend(self.arity.iter().flatten().map(String::as_str));
        names
    }
}

pub type Model = crate::Model<Dense>;
