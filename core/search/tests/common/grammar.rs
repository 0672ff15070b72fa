//! Grammars small enough to try all derivations, and a language model for them.

use std::collections::BTreeMap;
use std::fs;
use std::io::Cursor;
use std::sync::Arc;

use proptest::prelude::*;
use tunesmith_lm::{Estimate, Model as Lm, estimate};
use tunesmith_rules::{Table, import_cdec};
use tunesmith_search::features::Extras;
use tunesmith_search::features::templates::{self, Resources};
use tunesmith_search::hiero::{Dense, Model};
use tunesmith_text::{Lines, Watch};

/// A symbol of a rule: a gap or a word.
pub type Side = Vec<Result<usize, &'static str>>;

#[derive(Debug, Clone)]
pub struct Rule {
    pub source: Side,
    pub target: Side,
    pub value: f64,
}

const SOURCE: [&str; 3] = ["a", "b", "c"];
const TARGET: [&str; 4] = ["x", "y", "z", "rare"];
const SHAPES: [&str; 8] = ["w", "ww", "Xw", "wX", "wXw", "XwX", "wXwX", "Xww"];

fn rule() -> impl Strategy<Value = Rule> {
    let words = proptest::collection::vec(0..TARGET.len(), 1..4);
    let sources = proptest::collection::vec(0..SOURCE.len(), 2);
    let places = proptest::collection::vec(0..4usize, 2);
    (0..SHAPES.len(), sources, words, places, any::<bool>(), -3.0..1.0f64).prop_map(
        |(shape, sources, words, places, swap, value)| {
            let mut sources = sources.into_iter();
            let mut gaps = 0;
            let source: Side = SHAPES[shape]
                .chars()
                .map(|symbol| match symbol {
                    'X' => {
                        gaps += 1;
                        Ok(gaps - 1)
                    }
                    _ => Err(SOURCE[sources.next().unwrap()]),
                })
                .collect();
            let mut target: Side = words.into_iter().map(|word| Err(TARGET[word])).collect();
            for gap in 0..gaps {
                let gap = if swap && gaps == 2 { 1 - gap } else { gap };
                target.insert(places[gap] % (target.len() + 1), Ok(gap));
            }
            if gaps > 0 && target.len() > gaps + 1 {
                target.retain(|symbol| *symbol != Err("rare"));
            }
            Rule { source, target, value: (value * 64.0).round() / 64.0 }
        },
    )
}

pub fn rules() -> impl Strategy<Value = Vec<Rule>> {
    proptest::collection::vec(rule(), 1..9).prop_map(|rules| {
        let sides = |rule: &Rule| format!("{:?} {:?}", rule.source, rule.target);
        let distinct: BTreeMap<String, Rule> =
            rules.into_iter().map(|rule| (sides(&rule), rule)).collect();
        distinct.into_values().collect()
    })
}

pub fn sentence(most: usize) -> impl Strategy<Value = String> {
    let word = prop_oneof![6 => Just("a"), 6 => Just("b"), 3 => Just("c"), 1 => Just("new")];
    proptest::collection::vec(word, 0..=most).prop_map(|words| words.join(" "))
}

fn side(side: &Side) -> String {
    let symbols = side.iter().map(|symbol| match symbol {
        Ok(gap) => format!("[X,{}]", gap + 1),
        Err(word) => word.to_string(),
    });
    symbols.collect::<Vec<_>>().join(" ")
}

fn language_model(order: usize) -> Lm {
    let text = "x y z\ny x x y\nz z x\nx y\ny z y x\nx x y z\nz y new\nx y z x\n";
    let lines = Lines::new("text", Cursor::new(text.as_bytes().to_vec()));
    let options = Estimate { order, ..Estimate::default() };
    estimate([lines], &options, &Watch::default()).unwrap().model().unwrap()
}

pub fn model(rules: &[Rule], order: usize, cdec: bool, extras: Extras) -> Arc<Model> {
    let folder = tempfile::tempdir().unwrap();
    let (grammar, table) = (folder.path().join("grammar"), folder.path().join("table"));
    let lines = rules.iter().map(|rule| {
        format!(
            "[X] ||| {} ||| {} ||| value={}\n",
            side(&rule.source),
            side(&rule.target),
            rule.value
        )
    });
    fs::write(&grammar, lines.collect::<String>()).unwrap();
    import_cdec(&grammar, &table).unwrap();
    let table = Table::open(&table, true).unwrap();
    let dense = if cdec { Dense::of_cdec(&table) } else { Dense::of_table(&table) };
    Arc::new(Model::new(table, language_model(order), dense, extras).unwrap())
}

pub const CDEC: [(&str, f64); 6] = [
    ("value", 0.7),
    ("LanguageModel", 0.5),
    ("LanguageModel_OOV", -0.8),
    ("WordPenalty", -0.3),
    ("Glue", -0.2),
    ("PassThrough", -0.4),
];

pub fn sparse() -> Extras {
    let names = ["rule-id", "bigrams", "shape", "distortion"];
    templates::make(&names, &Resources::default()).unwrap()
}

pub const SPARSE: [(&str, f64); 6] = [
    ("TB:x~y", 0.6),
    ("TB:<s>~z", -0.9),
    ("TB:z~</s>", 0.4),
    ("SD:moved:1", -0.5),
    ("SD:kept:2", 0.3),
    ("RS:w~w", -0.2),
];
