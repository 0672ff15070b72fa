//! Both decoders with damaged tables and models: what opening lets through must translate.

use std::fmt::Write;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use tunesmith_lm::Model as Lm;
use tunesmith_rules::{Table, import_cdec, import_moses};
use tunesmith_search::features::templates::{Resources, make};
use tunesmith_search::features::{Collected, Extras};
use tunesmith_search::{Beam, Decode, Input, Markup, Named, Weights, decode, force, hiero, phrase};

use crate::whole::{apart, divided, joined, lm_file, rules_file};
use crate::{Folder, binary, kept, note, read_back};

const SENTENCE: &str = "a b c new b";
const REFERENCE: [&str; 4] = ["x", "y", "new", "y"];

/// The parts of a table of phrases with orientations.
pub fn phrases_seed() -> Vec<u8> {
    static SEED: OnceLock<Vec<u8>> = OnceLock::new();
    SEED.get_or_init(|| apart(&phrases_table())).clone()
}

fn phrases_table() -> Vec<u8> {
    let folder = Folder::new();
    let (mut phrases, mut orders) = (String::new(), String::new());
    for (source, target, links) in
        [("a", "x", "0-0"), ("a b", "y x", "0-1 1-0"), ("b", "y", "0-0"), ("c", "z z", "")]
    {
        let _ =
            writeln!(phrases, "{source} ||| {target} ||| 0.5 0.4 0.3 0.2 ||| {links} ||| 1 1 1");
        let _ = writeln!(orders, "{source} ||| {target} ||| 0.2 0.4 0.4 0.2 0.4 0.4");
    }
    let (phrases, orders) =
        (folder.file("phrases", phrases.as_bytes()), folder.file("orders", orders.as_bytes()));
    import_moses(&phrases, Some(&orders), &folder.at("table")).expect("a table");
    read_back(&folder.at("table"))
}

/// The parts of a table of rules with one gap and with two.
pub fn rules_seed() -> Vec<u8> {
    static SEED: OnceLock<Vec<u8>> = OnceLock::new();
    SEED.get_or_init(|| {
        let folder = Folder::new();
        let grammar = "[X] ||| a [X,1] ||| [X,1] x ||| A=1 B=2 ||| 0-1\n\
                       [X] ||| [X,1] b [X,2] ||| [X,2] y [X,1] ||| A=0.5 B=1\n\
                       [X] ||| b ||| y ||| A=1 B=2 ||| 0-0\n[X] ||| c ||| z ||| A=1 B=0\n";
        import_cdec(&folder.file("grammar", grammar.as_bytes()), &folder.at("table"))
            .expect("a table");
        apart(&read_back(&folder.at("table")))
    })
    .clone()
}

/// A language model, the markup of a sentence, a reference.
pub fn text_seed() -> Vec<u8> {
    joined(&[
        b"a <np translation=\"x y||z\" prob=\"0.5||0.5\">b c</np> <wall/> <zone>a b</zone> new",
        b"x y x new",
    ])
}

fn lm_of(folder: &Folder) -> Lm {
    static FILE: OnceLock<Vec<u8>> = OnceLock::new();
    let file = FILE.get_or_init(binary::lm_seed);
    Lm::load(folder.file("lm", file)).expect("a language model")
}

fn templates() -> Extras {
    let names = ["rule-id", "pairs", "deletions", "insertions", "order", "bigrams", "shape"];
    make(&names, &Resources::default()).expect("templates")
}

fn ones(dense: &impl Named) -> Weights {
    Weights::new(dense.names().into_iter().map(|name| (name, 1.0)))
}

fn phrase_decoder(table: Table, lm: Lm) -> Option<phrase::Decoder> {
    let dense = phrase::Dense::of_table(&table);
    let weights = ones(&dense);
    let settings = phrase::Settings { stack: 5, pop_limit: 10, ..phrase::Settings::default() };
    let model = kept(phrase::Model::new(table, lm, dense, templates()))?;
    Some(phrase::Decoder::new(Arc::new(model), weights, settings))
}

fn rule_decoder(table: Table, lm: Lm, growing: bool) -> Option<hiero::Decoder> {
    let dense = hiero::Dense::of_table(&table);
    let weights = ones(&dense);
    let settings = hiero::Settings { pop_limit: 10, growing, ..hiero::Settings::default() };
    let extras = make(&["rule-id", "bigrams"], &Resources::default()).expect("templates");
    let model = kept(hiero::Model::new(table, lm, dense, extras))?;
    Some(hiero::Decoder::new(Arc::new(model), weights, settings))
}

/// Translates and asks for everything that a search offers.
fn translated(decoder: &dyn Decode, input: &Input<'_>, reference: &[&str]) -> bool {
    let found = decode(decoder, input);
    let mut collected = Collected::default();
    let best = found.best(4, true, &mut collected);
    for reading in &best {
        reading.steps.iter().for_each(|&label| drop(found.step(label)));
    }
    let (text, score) = (found.text(), found.score());
    note((best.len(), score.is_some(), text.len().min(9)));
    let forest = found.forest(&mut collected);
    note((forest.nodes().min(9), forest.rules().min(9)));
    found.bins(Beam { ways: 2, list: 3 }, &mut collected);
    if let Some((forced, reached)) = force(decoder, input, reference) {
        note((reached.words, reached.is_whole));
        forced.best(2, true, &mut collected);
    }
    true
}

fn opened(folder: &Folder, bytes: &[u8]) -> Option<Table> {
    let file = folder.file("table", &rules_file(bytes));
    kept(Table::open(&file, false))
}

/// Phrases of a table of these parts.
pub fn phrases(bytes: &[u8]) -> bool {
    let folder = Folder::new();
    let decoder = opened(&folder, bytes).and_then(|table| phrase_decoder(table, lm_of(&folder)));
    decoder.is_some_and(|one| translated(&one, &Input::plain(SENTENCE), &REFERENCE))
}

/// Hierarchical rules of a table of these parts, with cube pruning and with cube growing.
pub fn rules(bytes: &[u8]) -> bool {
    [false, true].into_iter().all(|growing| {
        let folder = Folder::new();
        let table = opened(&folder, bytes);
        let decoder = table.and_then(|table| rule_decoder(table, lm_of(&folder), growing));
        decoder.is_some_and(|one| translated(&one, &Input::plain(SENTENCE), &REFERENCE))
    })
}

/// Both decoders with a language model of these parts.
pub fn lm(bytes: &[u8]) -> bool {
    let folder = Folder::new();
    let file = folder.file("parts", &lm_file(bytes));
    let load = |file: &Path| kept(Lm::load(file));
    let Some(lm) = load(&file) else { return false };
    let input = Input::plain(SENTENCE);
    let table = opened(&folder, &phrases_seed()).expect("a table");
    let phrases = phrase_decoder(table, lm).expect("a decoder");
    let table = opened(&folder, &rules_seed()).expect("a table");
    let rules = rule_decoder(table, load(&file).expect("a model"), false).expect("a decoder");
    translated(&phrases, &input, &REFERENCE) && translated(&rules, &input, &REFERENCE)
}

/// Both decoders with damaged input and a damaged reference.
pub fn text(bytes: &[u8]) -> bool {
    let [sentence, reference] = divided(bytes);
    let (Ok(sentence), Ok(reference)) =
        (std::str::from_utf8(sentence), std::str::from_utf8(reference))
    else {
        return false;
    };
    if sentence.len() > 300 || reference.len() > 300 {
        return false;
    }
    let reference: Vec<&str> = reference.split_whitespace().collect();
    let folder = Folder::new();
    let table = opened(&folder, &phrases_seed()).expect("a table");
    let phrases = phrase_decoder(table, lm_of(&folder)).expect("a decoder");
    let table = opened(&folder, &rules_seed()).expect("a table");
    let rules = rule_decoder(table, lm_of(&folder), false).expect("a decoder");
    let mut accepted = false;
    for markup in [Markup::None, Markup::Exclusive, Markup::Inclusive, Markup::Ignore] {
        let Some(input) = kept(Input::parse(sentence, markup)) else { continue };
        accepted |= translated(&phrases, &input, &reference);
        accepted |= translated(&rules, &input, &reference);
    }
    accepted
}
