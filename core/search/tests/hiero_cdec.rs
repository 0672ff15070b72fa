//! Against cdec, on what it left in `../shared`; nothing is tested where that is missing.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tunesmith_lm::Model as Lm;
use tunesmith_rules::{Table, import_cdec};
use tunesmith_search::features::{Collected, Extras};
use tunesmith_search::hiero::{Decoder, Dense, Model, Settings};
use tunesmith_search::{Input, Outcome, Weights, decode};
use tunesmith_text::Lines;

fn data() -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data");
    folder.join("multi30k-cdec").exists().then_some(folder)
}

fn lines(path: PathBuf) -> Vec<String> {
    let mut lines = Lines::open(path).unwrap();
    let mut found = Vec::new();
    while let Some(line) = lines.next().unwrap() {
        found.push(String::from_utf8(line.to_vec()).unwrap());
    }
    found
}

fn weights(folder: &Path) -> Vec<(String, f64)> {
    let pair = |line: &String| {
        let (name, value) = line.split_once(' ').unwrap();
        (name.to_owned(), value.parse().unwrap())
    };
    lines(folder.join("multi30k-cdec/weights.mert")).iter().map(pair).collect()
}

/// A line of a k-best list.
struct Best {
    sentence: usize,
    text: String,
    features: BTreeMap<String, f64>,
    score: f64,
}

fn list(folder: &Path, pop_limit: usize) -> Vec<Best> {
    let name = format!("multi30k-cdec/test_2016.first300.pop{pop_limit}.best10.gz");
    let read = |line: &String| {
        let fields: Vec<&str> = line.split(" ||| ").collect();
        let pair = |token: &str| {
            let (name, value) = token.rsplit_once('=').unwrap();
            (name.to_owned(), value.parse().unwrap())
        };
        Best {
            sentence: fields[0].parse().unwrap(),
            text: fields[1].to_owned(),
            features: fields[2].split(' ').map(pair).collect(),
            score: fields[3].parse().unwrap(),
        }
    };
    lines(folder.join(name)).iter().map(read).collect()
}

fn model(folder: &Path) -> Arc<Model> {
    let made = tempfile::tempdir().unwrap();
    let table = made.path().join("table");
    import_cdec(&folder.join("multi30k-cdec/test_2016_flickr.grammar.gz"), &table).unwrap();
    let table = Table::open(&table, true).unwrap();
    let lm = Lm::load(folder.join("multi30k-moses/lm.arpa.gz")).unwrap();
    let dense = Dense::of_cdec(&table);
    Arc::new(Model::new(table, lm, dense, Extras::default()).unwrap())
}

fn decoder(model: &Arc<Model>, weights: &[(String, f64)], pop_limit: usize) -> Decoder {
    let named = Weights::new(weights.iter().map(|(name, value)| (name.as_str(), *value)));
    Decoder::new(model.clone(), named, Settings { pop_limit, ..Settings::default() })
}

#[test]
fn translations_score_at_least_what_those_of_cdec_do_and_its_derivations_are_found() {
    let Some(folder) = data() else { return };
    let (model, weights) = (model(&folder), weights(&folder));
    let texts = lines(folder.join("multi30k/test_2016_flickr.de.gz"));
    for pop_limit in [30, 200] {
        let list = list(&folder, pop_limit);
        let decoder = decoder(&model, &weights, pop_limit);
        let mut worse = 0;
        for (sentence, text) in texts[..300].iter().enumerate() {
            let mut theirs = list.iter().filter(|best| best.sentence == sentence);
            let score = decoder.search(&Input::plain(text)).score().unwrap();
            worse += usize::from(score < theirs.next().unwrap().score - 1e-4);
        }
        assert!(worse <= 3, "{worse} of 300 at {pop_limit}");
    }
    // What cdec lists must be among our derivations, with its features.
    let list = list(&folder, 200);
    let decoder = decoder(&model, &weights, 1000);
    let (mut same, mut better, mut missing) = (0, 0, 0);
    for sentence in (0..300).step_by(20) {
        let found = decode(&decoder, &Input::plain(&texts[sentence]));
        let mut collected = Collected::default();
        let ours = found.best(500, true, &mut collected);
        for theirs in list.iter().filter(|best| best.sentence == sentence) {
            let product: f64 = weights
                .iter()
                .map(|(name, weight)| weight * theirs.features.get(name).copied().unwrap_or(0.0))
                .sum();
            assert!((product - theirs.score).abs() < 1e-3);
            let Some(reading) = ours.iter().find(|reading| reading.text == theirs.text) else {
                missing += 1;
                continue;
            };
            // The best derivation of the string; cdec may have missed it.
            assert!(reading.score > theirs.score - 1e-3, "{}", theirs.text);
            if reading.score > theirs.score + 1e-3 {
                better += 1;
                continue;
            }
            let mut differs = false;
            for (name, value) in &theirs.features {
                let id = collected.names.id(name).unwrap();
                let found = reading.features.iter().find(|pair| pair.0 == id);
                let found = f64::from(found.map_or(0.0, |pair| pair.1));
                differs |= (found - value).abs() > 1e-3 * (1.0 + value.abs());
            }
            same += usize::from(!differs);
            assert!(!differs || reading.score > theirs.score - 1e-4, "{}", theirs.text);
        }
    }
    assert!(missing == 0 && better * 10 < same, "{same} {better} {missing}");
}
