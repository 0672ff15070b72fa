//! A phrase-based model: phrases, a language model, and the names of its features.

use tunesmith_rules::{Kind, Scale, Table, orientation_columns};
use tunesmith_text::{Error, Result};

use crate::{Named, Score};

/// Classes of orientation in a search: monotone, swap, apart to the left, apart to the right.
pub const CLASSES: usize = 4;
/// An orientation to the previous phrase, or to the next.
pub const SLOTS: usize = 2 * CLASSES;

/// Orientations to the previous and the next phrase.
#[derive(Debug, Clone)]
pub struct Reordering {
    /// Of three classes for each side, or of four where left is told from right.
    pub names: Vec<String>,
    /// The feature of each slot, as a place among the names.
    pub features: [usize; SLOTS],
    /// The column of the table for each slot.
    pub columns: [usize; SLOTS],
    /// To blocks of any size (Galley & Manning 2008) and not to single phrases.
    pub blocks: bool,
}

/// The names of the features that every model has, and what one unit of each counts.
#[derive(Debug, Clone)]
pub struct Dense {
    /// Natural logarithm of the probability of the string.
    pub lm: String,
    pub words: (String, f32),
    pub phrases: (String, f32),
    pub unknown: (String, f32),
    /// Less the words jumped over.
    pub distortion: String,
    pub scores: Vec<(String, Score)>,
    pub reordering: Option<Reordering>,
}

const SIDES: [&str; 2] = ["previous", "next"];

impl Dense {
    /// All that a table made here offers: its probabilities, the count of a pair and whether it is
    /// one, and the word-based orientations if they are there.
    pub fn of_table(table: &Table) -> Dense {
        let columns = table.columns();
        let at = |name: &str| columns.iter().position(|column| column.name == name);
        let mut scores = Vec::new();
        for (place, column) in columns.iter().enumerate() {
            let oriented = SIDES.iter().any(|side| column.name.contains(&format!("-{side}-")));
            match column.scale {
                _ if oriented => {}
                Scale::Probability => scores.push((column.name.clone(), Score::Log(place))),
                Scale::Value => scores.push((column.name.clone(), Score::Value(place))),
                Scale::Count => {}
            }
        }
        if let Some(count) = at("count(f,e)") {
            scores.push(("count".to_owned(), Score::Log(count)));
            scores.push(("unique".to_owned(), Score::Unique(count)));
        }
        // Blocks say all that words do, and more.
        let reordering = [("block", true), ("block", false), ("word", false)].into_iter().find_map(
            |(kind, sides)| {
                let columns = orientation_columns(kind, sides);
                let names: Vec<String> = columns.map(|column| column.name).collect();
                let found: Option<Vec<usize>> = names.iter().map(|name| at(name)).collect();
                let (found, classes) = (found?, names.len() / 2);
                let features = std::array::from_fn(|slot| {
                    slot / CLASSES * classes + (slot % CLASSES).min(classes - 1)
                });
                let columns = features.map(|feature| found[feature]);
                Some(Reordering { names, features, columns, blocks: kind == "block" })
            },
        );
        Dense {
            lm: "lm".to_owned(),
            words: ("words".to_owned(), 1.0),
            phrases: ("phrases".to_owned(), 1.0),
            unknown: ("unknown".to_owned(), 1.0),
            distortion: "distortion".to_owned(),
            scores,
            reordering,
        }
    }

    /// Moses' labels and values. `scores` are the columns of the phrase table that have weights,
    /// `reordering` the label of the reordering model.
    pub fn of_moses(
        table: &Table,
        lm: &str,
        phrases: &str,
        scores: usize,
        reordering: Option<&str>,
    ) -> Result<Dense> {
        if table.columns().len() < scores + 6 * usize::from(reordering.is_some()) {
            return Err(Error::new(format!(
                "the phrase table has {} scores, fewer than the configuration asks for",
                table.columns().len()
            )));
        }
        let own = Dense::of_table(table);
        let named = |label: &str, size: usize, number: usize| {
            if size == 1 { label.to_owned() } else { format!("{label}_{}", number + 1) }
        };
        let reordering = match (reordering, own.reordering) {
            (Some(label), Some(found)) => Some(Reordering {
                names: (0..6).map(|number| named(label, 6, number)).collect(),
                ..found
            }),
            (Some(_), None) => {
                return Err(Error::new("the phrase table was imported without a reordering table"));
            }
            (None, _) => None,
        };
        Ok(Dense {
            lm: lm.to_owned(),
            words: ("WordPenalty0".to_owned(), -1.0),
            phrases: ("PhrasePenalty0".to_owned(), 1.0),
            unknown: ("UnknownWordPenalty0".to_owned(), -100.0),
            distortion: "Distortion0".to_owned(),
            scores: (0..scores)
                .map(|column| (named(phrases, scores, column), Score::Log(column)))
                .collect(),
            reordering,
        })
    }
}

impl Named for Dense {
    const KIND: Kind = Kind::Phrase;

    fn names(&self) -> Vec<&str> {
        let mut names = vec![self.lm.as_str()];
        names.extend(self.scores.iter().map(|(name, _)| name.as_str()));
        names.extend([&self.words.0, &self.phrases.0, &self.unknown.0].map(String::as_str));
        names.push(&self.distortion);
        names.extend(self.reordering.iter().flat_map(|model| &model.names).map(String::as_str));
        names
    }
}

pub type Model = crate::Model<Dense>;
