//! The estimate against its definition, computed with maps and without any sorting.

mod common;

use std::collections::{BTreeSet, HashMap, HashSet};

use common::{Table, estimated, table};
use proptest::prelude::*;
use tunesmith_lm::Estimate;

type Gram = Vec<String>;

struct Twin<'a> {
    order: usize,
    occurrences: Vec<HashMap<Gram, u64>>,
    adjusted: Vec<HashMap<Gram, u64>>,
    discounts: Vec<[f64; 3]>,
    prune: &'a [u64],
    allowed: Option<HashSet<String>>,
}

fn owned(words: &[&str]) -> Gram {
    words.iter().map(|word| word.to_string()).collect()
}

impl<'a> Twin<'a> {
    fn new(text: &str, options: &'a Estimate) -> Self {
        let order = options.order;
        let mut occurrences = vec![HashMap::new(); order];
        for line in text.lines() {
            let mut words = vec!["<s>"];
            words.extend(line.split_whitespace());
            words.push("</s>");
            for end in 1..words.len() {
                for length in 1..=order.min(end + 1) {
                    let gram = owned(&words[end + 1 - length..=end]);
                    *occurrences[length - 1].entry(gram).or_insert(0) += 1;
                }
            }
        }
        let mut adjusted = occurrences.clone();
        for length in 1..order {
            for gram in occurrences[length - 1].keys().filter(|gram| gram[0] != "<s>") {
                let before: HashSet<&String> = occurrences[length]
                    .keys()
                    .filter(|longer| longer[1..] == gram[..])
                    .map(|longer| &longer[0])
                    .collect();
                adjusted[length - 1].insert(gram.clone(), before.len() as u64);
            }
        }
        adjusted[0].insert(owned(&["<unk>"]), 0);
        adjusted[0].insert(owned(&["<s>"]), 0);
        let discounts = adjusted.iter().map(discounts).collect();
        let allowed = options.vocabulary.as_ref().map(|words| words.iter().cloned().collect());
        Twin { order, occurrences, adjusted, discounts, prune: &options.prune, allowed }
    }

    fn kept(&self, gram: &[String]) -> bool {
        let special = |word: &str| ["<unk>", "<s>", "</s>"].contains(&word);
        if gram.len() == 1 && special(&gram[0]) {
            return true;
        }
        let threshold = self.prune.get(gram.len() - 1).or(self.prune.last()).copied().unwrap_or(0);
        let allowed = |word: &String| {
            special(word) || self.allowed.as_ref().is_none_or(|set| set.contains(word))
        };
        self.occurrences[gram.len() - 1][gram] > threshold && gram.iter().all(allowed)
    }

    fn discount(&self, length: usize, count: u64) -> f64 {
        if count == 0 { 0.0 } else { self.discounts[length - 1][count.min(3) as usize - 1] }
    }

    /// The sum of counts after a context, and what is left for backing off.
    fn sums(&self, context: &[String]) -> (f64, f64) {
        let length = context.len() + 1;
        let (mut total, mut left) = (0.0, 0.0);
        for (gram, &count) in &self.adjusted[length - 1] {
            if gram[..length - 1] == *context {
                total += count as f64;
                left += if self.kept(gram) { self.discount(length, count) } else { count as f64 };
            }
        }
        (total, left / total)
    }

    fn prob(&self, gram: &[String]) -> f64 {
        if gram == ["<s>"] {
            return 1.0;
        }
        let count = self.adjusted[gram.len() - 1][gram];
        let (total, left) = self.sums(&gram[..gram.len() - 1]);
        let lower = match gram.len() {
            1 => 1.0 / (self.adjusted[0].keys().filter(|gram| self.kept(gram)).count() - 1) as f64,
            _ => self.prob(&gram[1..]),
        };
        (count as f64 - self.discount(gram.len(), count)) / total + left * lower
    }

    fn table(&self) -> Table {
        let mut table = Table::new();
        for (at, grams) in self.adjusted.iter().enumerate() {
            for gram in grams.keys().filter(|gram| self.kept(gram)) {
                let (total, left) = if at + 1 < self.order { self.sums(gram) } else { (0.0, 1.0) };
                let backoff = if total > 0.0 { left.log10() } else { 0.0 };
                table.insert(gram.clone(), (self.prob(gram).log10(), backoff));
            }
        }
        table
    }
}

fn discounts(grams: &HashMap<Gram, u64>) -> [f64; 3] {
    let with = |count: u64| grams.values().filter(|&&other| other == count).count() as f64;
    let share = with(1) / (with(1) + 2.0 * with(2));
    let found = [1, 2, 3]
        .map(|count| count as f64 - (count + 1) as f64 * share * with(count + 1) / with(count));
    let sound = found.iter().zip([1.0, 2.0, 3.0]).all(|(&d, top)| d > 0.0 && d <= top);
    if sound { found } else { [0.5, 1.0, 1.5] }
}

fn texts() -> impl Strategy<Value = String> {
    let line = proptest::collection::vec(prop_oneof![3 => "[abc]", 1 => "[d-k]"], 0..7);
    proptest::collection::vec(line.prop_map(|words| words.join(" ")), 1..25)
        .prop_map(|lines| lines.join("\n") + "\n")
        .prop_filter("no words", |text| !text.trim().is_empty())
}

fn check(text: &str, options: &Estimate) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("lm.arpa");
    estimated(text, options).unwrap().write_arpa(&path).unwrap();
    let (found, expected) = (table(&path), Twin::new(text, options).table());
    let keys = |table: &Table| table.keys().cloned().collect::<BTreeSet<_>>();
    assert_eq!(keys(&found), keys(&expected));
    for (gram, (prob, backoff)) in &found {
        let (wanted, wanted_backoff) = expected[gram];
        assert!((prob - wanted).abs() < 1e-5, "{gram:?}: {prob}, not {wanted}");
        assert!(
            (backoff - wanted_backoff).abs() < 1e-5,
            "{gram:?}: {backoff}, not {wanted_backoff}"
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn the_estimate_is_what_its_definition_says(text in texts(), order in 1..=6usize) {
        check(&text, &common::order(order));
    }

    #[test]
    fn pruning_leaves_the_mass_to_backing_off(
        text in texts(),
        order in 1..=4usize,
        mut prune in proptest::collection::vec(0..3u64, 1..4),
    ) {
        prune.truncate(order);
        prune.sort_unstable();
        check(&text, &Estimate { prune, ..common::order(order) });
    }

    #[test]
    fn a_limited_vocabulary_drops_n_grams_with_other_words(text in texts(), order in 1..=4usize) {
        let words = ["a", "b", "e", "never"].map(String::from).to_vec();
        check(&text, &Estimate { vocabulary: Some(words), ..common::order(order) });
    }
}
