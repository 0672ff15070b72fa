//! Whole tables of small corpora, against plain enumeration.

mod plain;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;

use plain::{
    Pair, Rules, all_rules, blocks, column, make_hiero, make_phrases, places, rules, texts, words,
};
use proptest::prelude::*;
use tunesmith_rules::{
    HieroOptions, Smoothing, Table, export_cdec, export_phrases, export_reordering, import_cdec,
    import_moses,
};

fn pool(threads: usize) -> rayon::ThreadPool {
    rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn phrase_pairs_and_frequencies_are_those_of_plain_counting(text in texts(6, 6)) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("table");
        let made = make_phrases(&text.corpus(folder.path()), &path, 1 << 20, Smoothing::None);
        let mut counts: BTreeMap<Pair, f32> = BTreeMap::new();
        for sentence in &text.0 {
            for ((first, last), (start, end)) in blocks(sentence, 3, false) {
                let pair = (
                    words(&sentence.0[first..=last], 's'),
                    words(&sentence.1[start..=end], 't'),
                );
                *counts.entry(pair).or_default() += 1.0;
            }
        }
        let table = Table::open(&path, true).unwrap();
        let rules = rules(&table);
        prop_assert_eq!(rules.keys().collect::<Vec<_>>(), counts.keys().collect::<Vec<_>>());
        prop_assert_eq!(made.instances, counts.values().sum::<f32>() as u64);
        let (inverse, direct) = (column(&table, "p(f|e)"), column(&table, "p(e|f)"));
        let seen = column(&table, "count(f,e)");
        let mut by_source: BTreeMap<&[String], f32> = BTreeMap::new();
        let mut by_target: BTreeMap<&[String], f32> = BTreeMap::new();
        for ((source, target), (scores, links)) in &rules {
            prop_assert_eq!(scores[seen], counts[&(source.clone(), target.clone())]);
            *by_source.entry(source).or_default() += scores[direct];
            *by_target.entry(target).or_default() += scores[inverse];
            let inside =
                |l: &(u16, u16)| (l.0 as usize) < source.len() && (l.1 as usize) < target.len();
            prop_assert!(!links.is_empty() && links.iter().all(inside));
            for six in scores[seen + 1..].chunks(3) {
                prop_assert!((six.iter().sum::<f32>() - 1.0).abs() < 1e-5);
            }
        }
        for sum in by_source.values().chain(by_target.values()) {
            prop_assert!((sum - 1.0).abs() < 1e-5, "{}", sum);
        }
    }

    #[test]
    fn hierarchical_rules_are_those_of_plain_enumeration(
        text in texts(4, 6),
        tight in any::<bool>(),
        max_symbols in 2usize..6,
    ) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("table");
        let options = HieroOptions { max_span: 5, max_symbols, tight, ..HieroOptions::default() };
        make_hiero(&text.corpus(folder.path()), &path, 1 << 20, &options);
        let mut counts: BTreeMap<Pair, (f64, f64)> = BTreeMap::new();
        let mut sources: BTreeMap<Vec<String>, (f64, f64)> = BTreeMap::new();
        for sentence in &text.0 {
            let mut seen = BTreeSet::new();
            for ((source, target), share, places) in all_rules(sentence, &options) {
                // Once for the same words, however far a gap at the edge reaches.
                let new = seen.insert((source.clone(), target.clone(), places));
                for sums in [
                    sources.entry(source.clone()).or_default(),
                    counts.entry((source, target)).or_default(),
                ] {
                    sums.0 += f64::from(u8::from(new));
                    sums.1 += share;
                }
            }
        }
        let table = Table::open(&path, true).unwrap();
        let rules = rules(&table);
        prop_assert_eq!(rules.keys().collect::<Vec<_>>(), counts.keys().collect::<Vec<_>>());
        for (rule, (scores, _)) in &rules {
            let (count, weight) = counts[rule];
            let (all, total) = sources[&rule.0];
            let get = |name: &str| f64::from(scores[column(&table, name)]);
            prop_assert!((get("CountEF") - (1.0 + count).log10()).abs() < 1e-6);
            let places = places(&text, &rule.0, options.max_span) as f64;
            prop_assert!((get("SampleCountF") - (1.0 + places).log10()).abs() < 1e-6);
            prop_assert!((get("EgivenFCoherent") - (places / count).log10()).abs() < 1e-6);
            prop_assert!((get("p(e|f)") - weight / total).abs() < 1e-5);
            prop_assert_eq!(get("IsSingletonF"), f64::from(u8::from(all == 1.0)));
        }
    }

    #[test]
    fn threads_and_memory_change_nothing(text in texts(30, 8)) {
        let folder = tempfile::tempdir().unwrap();
        let corpus = text.corpus(folder.path());
        let mut files: Vec<[Vec<u8>; 2]> = Vec::new();
        for (threads, memory) in [(1, 1 << 30), (2, 1 << 30), (4, 0), (1, 500)] {
            let (one, two) = (folder.path().join("p"), folder.path().join("h"));
            let spilled = pool(threads).install(|| {
                make_phrases(&corpus, &one, memory, Smoothing::KneserNey).spilled
                    + make_hiero(&corpus, &two, memory, &HieroOptions::default()).spilled
            });
            prop_assert!(memory > 0 || spilled > 0 || rules(&Table::open(&one, true).unwrap()).is_empty());
            files.push([fs::read(one).unwrap(), fs::read(two).unwrap()]);
        }
        prop_assert!(files.windows(2).all(|pair| pair[0] == pair[1]));
    }

    #[test]
    fn text_and_back(text in texts(8, 6)) {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let corpus = text.corpus(folder.path());
        make_phrases(&corpus, &at("p"), 1 << 20, Smoothing::GoodTuring);
        make_hiero(&corpus, &at("h"), 1 << 20, &HieroOptions::default());
        let phrases = Table::open(&at("p"), true).unwrap();
        export_phrases(&phrases, &at("p.gz")).unwrap();
        export_reordering(&phrases, "word", &at("r")).unwrap();
        import_moses(&at("p.gz"), Some(&at("r")), &at("p2")).unwrap();
        let again = Table::open(&at("p2"), true).unwrap();
        same(&rules(&phrases), &rules(&again), 13);
        let lines = |path: PathBuf| {
            let text = fs::read_to_string(path).unwrap();
            let keys: Vec<String> = text.lines().map(|line| line.to_owned()).collect();
            keys
        };
        prop_assert!(lines(at("r")).is_sorted());
        let hiero = Table::open(&at("h"), true).unwrap();
        export_cdec(&hiero, &at("h.txt")).unwrap();
        import_cdec(&at("h.txt"), &at("h2")).unwrap();
        same(&rules(&hiero), &rules(&Table::open(&at("h2"), true).unwrap()), 7);
    }
}

/// Same rules and links; the first columns equal to the digits that text has.
fn same(a: &Rules, b: &Rules, columns: usize) {
    assert_eq!(a.len(), b.len());
    for ((one, (left, links)), (two, (right, others))) in a.iter().zip(b) {
        assert_eq!((one, links), (two, others));
        for (x, y) in left.iter().zip(right).take(columns) {
            assert!((x - y).abs() <= 1e-5 * x.abs(), "{x} {y}");
        }
    }
}
