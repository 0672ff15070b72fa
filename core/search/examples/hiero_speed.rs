//! Decodes a text with a grammar of cdec and tells what it costs:
//! `hiero_speed GRAMMAR.gz` makes a table in the folder for temporary files,
//! `hiero_speed TABLE LM WEIGHTS TEXT FIRST POP…` decodes so many sentences with it;
//! with GROWING in the environment by cube growing.

use std::sync::Arc;

use tunesmith_lm::Model as Lm;
use tunesmith_rules::{Table, import_cdec};
use tunesmith_search::features::{Collected, Extras};
use tunesmith_search::hiero::{Decoder, Dense, Model, Settings};
use tunesmith_search::{Input, Outcome, Weights, decode};
use tunesmith_space::PoolsBuilder;
use tunesmith_text::Lines;

fn lines(path: &str) -> Vec<String> {
    let mut lines = Lines::open(path).expect("a text");
    let mut found = Vec::new();
    while let Some(line) = lines.next().expect("a line") {
        found.push(String::from_utf8_lossy(line).into_owned());
    }
    found
}

/// CPU seconds of this thread.
fn seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    stat.split(' ').next().and_then(|field| field.parse::<f64>().ok()).unwrap_or(f64::NAN) / 1e9
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if let [grammar] = &args[..] {
        let path = std::path::Path::new(grammar);
        let out = path.with_extension("table");
        let out = std::env::temp_dir().join(out.file_name().expect("a name"));
        import_cdec(path, &out).expect("a grammar");
        println!("{}", out.display());
        return;
    }
    let [table, lm, weights, text, first, pops @ ..] = &args[..] else {
        panic!("GRAMMAR.gz, or TABLE LM WEIGHTS TEXT FIRST POP…")
    };
    let table = Table::open(table.as_ref(), true).expect("a table");
    let lm = Lm::load(lm).expect("a language model");
    let dense = Dense::of_cdec(&table);
    let model = Arc::new(Model::new(table, lm, dense, Extras::default()).expect("a model"));
    let named: Vec<(String, f64)> = lines(weights)
        .iter()
        .filter_map(|line| {
            let (name, value) = line.split_once(' ')?;
            Some((name.to_owned(), value.trim().parse().ok()?))
        })
        .collect();
    let sentences: Vec<String> =
        lines(text).into_iter().take(first.parse().expect("a number")).collect();
    for pop in pops {
        let pop_limit = pop.parse().expect("a pop limit");
        let weights = Weights::new(named.iter().map(|(name, value)| (name.as_str(), *value)));
        let growing = std::env::var_os("GROWING").is_some();
        let settings = Settings { pop_limit, growing, ..Settings::default() };
        let decoder = Decoder::new(model.clone(), weights, settings);
        for round in 0..2 {
            let start = seconds();
            let (mut total, mut evaluated, mut nodes) = (0.0, 0, 0);
            for sentence in &sentences {
                let found = decoder.search(&Input::plain(sentence));
                total += found.score().expect("a translation");
                evaluated += found.evaluated();
                nodes += found.nodes();
            }
            let n = sentences.len() as f64;
            let spent = seconds() - start;
            println!(
                "pop {pop} round {round}: {:.1}/s mean {:.6} evaluated {:.0} nodes {:.0}",
                n / spent,
                total / n,
                evaluated as f64 / n,
                nodes as f64 / n
            );
        }
        for best in [0, 1, 500] {
            let start = seconds();
            let (mut edges, mut listed) = (0, 0);
            for sentence in &sentences {
                let found = decode(&decoder, &Input::plain(sentence));
                if best == 0 {
                    edges += found.forest(&mut Collected::default()).edges().len();
                } else {
                    let mut list = PoolsBuilder::default();
                    found.list(best, true, false, Collected::default(), &mut list);
                    listed += list.hypotheses();
                }
            }
            let n = sentences.len() as f64;
            println!(
                "  {best} best (0: forests): {:.1}/s, {:.0} edges, {:.0} listed",
                n / (seconds() - start),
                edges as f64 / n,
                listed as f64 / n
            );
        }
    }
}
