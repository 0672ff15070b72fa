//! What the templates cost for each rule of a table, with weights for up to a million features:
//! `cargo run --release --example templates -- TABLE LM MODEL`.

use std::hint::black_box;
use std::path::Path;
use std::time::Instant;

use tunesmith_align::Link;
use tunesmith_lm::Model;
use tunesmith_rules::{Symbol, Table};
use tunesmith_search::features::templates::{Resources, TEMPLATES, make};
use tunesmith_search::features::{Collected, Extras, Neighbour, Orientation, Rule, Sink, Total};
use tunesmith_search::{Lexicon, ModelWords, Weights};
use tunesmith_text::Result;

const RULES: usize = 200_000;
const FEATURES: usize = 1_000_000;

struct Entry {
    source: Vec<Symbol>,
    target: Vec<Symbol>,
    links: Vec<Link>,
}

/// Rules from all over the table, in no order that helps the cache.
fn sample(table: &Table) -> Vec<Entry> {
    let mut nodes = vec![(table.root(), Vec::new())];
    let mut all = Vec::new();
    while let Some((node, source)) = nodes.pop() {
        for entry in table.entries(node) {
            all.push(Entry {
                source: source.clone(),
                target: entry.target().collect(),
                links: entry.links().collect(),
            });
        }
        for (symbol, child) in table.children(node) {
            nodes.push((child, [&source[..], &[symbol]].concat()));
        }
    }
    let count = all.len();
    let mut rules: Vec<Entry> = Vec::new();
    for at in 0..count.min(RULES) {
        // Copied one after the other: where rules lie is the table's affair.
        let from = &all[at * 48_271 % count];
        let (source, target) = (from.source.clone(), from.target.clone());
        rules.push(Entry { source, target, links: from.links.clone() });
    }
    rules
}

fn tell(extras: &Extras, rule: &Rule<'_>, out: &mut dyn Sink) {
    extras.rule.iter().for_each(|feature| feature.find(rule, out));
    for feature in &extras.order {
        for side in Neighbour::ALL {
            Orientation::ALL.iter().for_each(|&lies| feature.find(rule, side, lies, out));
        }
    }
    for feature in &extras.string {
        // As for a phrase behind a string.
        let phrase = feature.join(rule.target, &[], rule.words, out);
        let tails = [feature.begin(), phrase];
        feature.join(&[Symbol::Gap(1), Symbol::Gap(2)], &tails, rule.words, out);
    }
}

/// Counts what is told.
struct Counter(usize);

impl Sink for Counter {
    fn add(&mut self, _: &[&tunesmith_search::Spelling], _: f32) {
        self.0 += 1;
    }
}

fn nanoseconds(rules: &[Rule<'_>], mut work: impl FnMut(&Rule<'_>)) -> f64 {
    let mut best = f64::INFINITY;
    for _ in 0..3 {
        let began = Instant::now();
        rules.iter().for_each(&mut work);
        best = best.min(began.elapsed().as_secs_f64());
    }
    best * 1e9 / rules.len() as f64
}

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [table, lm, model] = &arguments[..] else {
        eprintln!("usage: templates TABLE LM MODEL, the folder of frequent.txt and classes.txt");
        std::process::exit(2);
    };
    let (table, lm) = (Table::open(Path::new(table), false)?, Model::load(lm)?);
    let lexicon = Lexicon::new(&table, &lm);
    let words = ModelWords::new(&table, &lexicon);
    let entries = sample(&table);
    let rules: Vec<Rule<'_>> = entries
        .iter()
        .map(|Entry { source, target, links }| Rule {
            source,
            target,
            links,
            scores: &[],
            words: &words,
        })
        .collect();
    let resources = Resources::of_model(Path::new(model));
    println!("{} rules; nanoseconds for each, without weights and with", rules.len());
    println!("template\tfeatures\twithout\twith\tweights");
    let mut sets: Vec<Vec<&str>> = TEMPLATES.iter().map(|template| vec![template.name]).collect();
    sets.push(vec!["green2013"]);
    sets.push(vec!["eidelman2012"]);
    for names in sets {
        let extras = make(&names, &resources)?;
        let mut counter = Counter(0);
        let mut collected = Collected::default();
        for rule in &rules {
            tell(&extras, rule, &mut counter);
            if collected.names.len() < FEATURES {
                tell(&extras, rule, &mut collected);
            }
        }
        if counter.0 == 0 {
            continue; // wants a sentence
        }
        let weights = Weights::new(collected.names.iter().map(|name| (name, 0.5)));
        let time = |weights: &Weights| {
            nanoseconds(&rules, |rule| {
                let mut total = Total { weights, sum: 0.0 };
                tell(&extras, rule, &mut total);
                black_box(total.sum);
            })
        };
        println!(
            "{}\t{:.1}\t{:.0}\t{:.0}\t{}",
            names.join(","),
            counter.0 as f64 / rules.len() as f64,
            time(&Weights::default()),
            time(&weights),
            weights.len()
        );
    }
    Ok(())
}
