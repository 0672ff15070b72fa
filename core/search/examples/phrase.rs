//! Translates tokenised lines with a phrase-based model of Moses, for measuring:
//! `phrase TABLE LM WEIGHTS [setting=value ...] < SOURCE`. Weights are lines of a name and a number.

use std::io::Read;
use std::sync::Arc;
use std::time::Instant;

use tunesmith_lm::Model as Lm;
use tunesmith_rules::Table;
use tunesmith_search::features::{Collected, Extras};
use tunesmith_search::phrase::{Decoder, Dense, Model, Settings};
use tunesmith_search::{Input, Named, Weights, decode};
use tunesmith_space::PoolsBuilder;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [table, lm, weights, rest @ ..] = &arguments[..] else {
        return Err("usage: phrase TABLE LM WEIGHTS [setting=value ...]".into());
    };
    let mut settings = Settings::default();
    let mut forests = false;
    let mut nbest = 0;
    let mut quiet = false;
    for setting in rest {
        let (name, value) = setting.split_once('=').ok_or("settings are name=value")?;
        match name {
            "stack" => settings.stack = value.parse()?,
            "pop_limit" => settings.pop_limit = value.parse()?,
            "distortion_limit" => settings.distortion_limit = Some(value.parse()?),
            "forest" => forests = value == "1",
            "nbest" => nbest = value.parse()?,
            "quiet" => quiet = value == "1",
            _ => return Err(format!("no setting {name}").into()),
        }
    }
    let start = Instant::now();
    let table = Table::open(table.as_ref(), false).map_err(|error| error.to_string())?;
    let dense = Dense::of_moses(&table, "LM0", "TranslationModel0", 4, Some("LexicalReordering0"))
        .map_err(|error| error.to_string())?;
    let lm = Lm::load(lm).map_err(|error| error.to_string())?;
    let names: Vec<String> = dense.names().into_iter().map(str::to_owned).collect();
    let model =
        Model::new(table, lm, dense, Extras::default()).map_err(|error| error.to_string())?;
    let named = std::fs::read_to_string(weights)?;
    let named = named.lines().filter_map(|line| line.split_once(' '));
    let named = Weights::new(named.map(|(name, value)| (name, value.parse().unwrap_or(0.0))));
    let decoder = Decoder::new(Arc::new(model), named, settings);
    eprintln!("loaded in {:?}", start.elapsed());
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text)?;
    let start = Instant::now();
    let (mut sum, mut count) = (0.0, 0);
    let mut lists = PoolsBuilder::default();
    for line in text.lines() {
        let found = decode(&decoder, &Input::plain(line));
        sum += found.score().unwrap_or(0.0);
        count += 1;
        if forests {
            std::hint::black_box(found.forest(&mut Collected::default()));
        }
        if nbest > 0 {
            let mut collected = Collected::default();
            for name in &names {
                collected.id(name);
            }
            let mut list = PoolsBuilder::default();
            found.list(nbest, true, false, collected, &mut list);
            lists.append(&list);
        }
        if !quiet {
            let score = found.score().unwrap_or(0.0);
            println!("{score}\t{}", found.text());
        }
    }
    let took = start.elapsed().as_secs_f64();
    eprintln!(
        "{:.1} sentences/s, mean score {:.5}",
        f64::from(count) / took,
        sum / f64::from(count)
    );
    Ok(())
}
