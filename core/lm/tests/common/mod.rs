//! What several tests need: estimates of small texts, and a plain reading of what they wrote.
#![allow(dead_code)]

use std::collections::HashMap;
use std::fs;
use std::io::Cursor;
use std::path::Path;

use tunesmith_lm::{Estimate, Estimated, estimate};
use tunesmith_text::{Lines, Result, Watch};

/// Words to log-probability and backoff.
pub type Table = HashMap<Vec<String>, (f64, f64)>;

pub fn lines(text: &str) -> Result<Lines> {
    Lines::new("text", Cursor::new(text.as_bytes().to_vec()))
}

pub fn estimated(text: &str, options: &Estimate) -> Result<Estimated> {
    estimate([lines(text)], options, &Watch::default())
}

pub fn order(order: usize) -> Estimate {
    Estimate { order, ..Estimate::default() }
}

/// The n-grams of an ARPA file, split by hand.
pub fn table(path: &Path) -> Table {
    let text = fs::read_to_string(path).unwrap();
    let grams = text.lines().filter(|line| line.contains('\t'));
    grams
        .map(|line| {
            let fields: Vec<&str> = line.split('\t').collect();
            let words = fields[1].split(' ').map(String::from).collect();
            let backoff = fields.get(2).map_or(0.0, |field| field.parse().unwrap());
            (words, (fields[0].parse().unwrap(), backoff))
        })
        .collect()
}

/// The log-probability of the last word after the others, and the words of the n-gram used, by
/// trying ever shorter ones.
pub fn backed_off(table: &Table, order: usize, words: &[String]) -> (f64, usize) {
    let mut words = &words[words.len().saturating_sub(order)..];
    let mut charged = 0.0;
    loop {
        if let Some((prob, _)) = table.get(words) {
            return (prob + charged, words.len());
        }
        if let [word] = words {
            assert_ne!(word, "<unk>");
            return (table[&vec!["<unk>".to_string()]].0 + charged, 1);
        }
        charged += table.get(&words[..words.len() - 1]).map_or(0.0, |(_, backoff)| *backoff);
        words = &words[1..];
    }
}
