//! Whole tables of small corpora, against plain enumeration.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use proptest::prelude::*;
use tunesmith_rules::{
    Corpus, HieroOptions, Lexicon, Made, Making, Node, PhraseOptions, Precision, Reading,
    Smoothing, Symbol, Table, export_cdec, export_phrases, export_reordering, hiero_table,
    import_cdec, import_moses, phrase_table,
};

type Pair = (Vec<String>, Vec<String>);
/// Source words, target words, links.
type Sentence = (Vec<u8>, Vec<u8>, BTreeSet<(usize, usize)>);
/// Scores and links of all rules.
type Rules = BTreeMap<Pair, (Vec<f32>, Vec<(u16, u16)>)>;

/// Sentences over few words, with links.
#[derive(Debug, Clone)]
struct Text(Vec<Sentence>);

fn texts(sentences: usize, words: usize) -> impl Strategy<Value = Text> {
    let sentence = (1..words, 1..words).prop_flat_map(|(source, target)| {
        (
            proptest::collection::vec(0u8..4, source),
            proptest::collection::vec(0u8..4, target),
            proptest::collection::btree_set((0..source, 0..target), 0..8),
        )
    });
    proptest::collection::vec(sentence, 1..sentences).prop_map(Text)
}

fn words(side: &[u8], letter: char) -> Vec<String> {
    side.iter().map(|word| format!("{letter}{word}")).collect()
}

impl Text {
    fn corpus(&self, folder: &Path) -> Corpus {
        let [mut source, mut target, mut links] = [const { String::new() }; 3];
        for (one, two, pairs) in &self.0 {
            source += &format!("{}\n", words(one, 's').join(" "));
            target += &format!("{}\n", words(two, 't').join(" "));
            let pairs: Vec<_> = pairs.iter().map(|(a, b)| format!("{a}-{b}")).collect();
            links += &format!("{}\n", pairs.join(" "));
        }
        let path = |name: &str, text: &str| {
            fs::write(folder.join(name), text).unwrap();
            folder.join(name)
        };
        let paths = [path("s", &source), path("t", &target), path("a", &links)];
        Corpus::read(&paths[0], &paths[1], &paths[2], &Reading::default()).unwrap()
    }
}

fn shown(table: &Table, symbol: Symbol, source: bool) -> String {
    match symbol {
        Symbol::Gap(number) => format!("[{number}]"),
        Symbol::Word(id) if source => table.source_word(id).unwrap().to_owned(),
        Symbol::Word(id) => table.target_word(id).unwrap().to_owned(),
    }
}

/// All rules of a table with their scores and links.
fn rules(table: &Table) -> Rules {
    fn go(table: &Table, node: Node, path: &mut Vec<String>, out: &mut Rules) {
        for entry in table.entries(node) {
            let target: Vec<String> = entry.target().map(|s| shown(table, s, false)).collect();
            assert_eq!(target.len(), entry.target_length());
            let value = (entry.scores.to_vec(), entry.links().collect());
            assert!(out.insert((path.clone(), target), value).is_none());
        }
        for (symbol, child) in table.children(node) {
            assert_eq!(table.child(node, symbol), Some(child));
            path.push(shown(table, symbol, true));
            go(table, child, path, out);
            path.pop();
        }
    }
    let mut out = BTreeMap::new();
    go(table, table.root(), &mut Vec::new(), &mut out);
    assert_eq!(out.len() as u64, table.entry_count());
    out
}

fn column(table: &Table, name: &str) -> usize {
    table.columns().iter().position(|column| column.name == name).unwrap()
}

fn make_phrases(corpus: &Corpus, path: &Path, memory: usize, smoothing: Smoothing) -> Made {
    let lexicon = Lexicon::estimate(corpus, Precision::SevenDecimals);
    let options =
        PhraseOptions { max_length: 3, hierarchical_reordering: true, ..PhraseOptions::default() };
    let making = Making { memory, ..Making::default() };
    phrase_table(corpus, &lexicon, &options, smoothing, &making, path).unwrap()
}

fn make_hiero(corpus: &Corpus, path: &Path, memory: usize, options: &HieroOptions) -> Made {
    let lexicon = Lexicon::estimate(corpus, Precision::Exact);
    let making = Making { memory, ..Making::default() };
    hiero_table(corpus, &lexicon, options, &making, path).unwrap()
}

/// Spans of a sentence pair that agree with its links, by trying all of them.
fn blocks(
    (source, target, links): &Sentence,
    max: usize,
    tight: bool,
) -> Vec<((usize, usize), (usize, usize))> {
    let mut found = Vec::new();
    for first in 0..source.len() {
        for last in first..source.len().min(first + max) {
            for start in 0..target.len() {
                for end in start..target.len().min(start + max) {
                    let (rows, columns) = (first..=last, start..=end);
                    let inside: Vec<_> = links
                        .iter()
                        .filter(|l| rows.contains(&l.0) && columns.contains(&l.1))
                        .collect();
                    let touched = links
                        .iter()
                        .filter(|l| rows.contains(&l.0) || columns.contains(&l.1))
                        .count();
                    let edges = [first, last].iter().all(|at| inside.iter().any(|l| l.0 == *at))
                        && [start, end].iter().all(|at| inside.iter().any(|l| l.1 == *at));
                    if !inside.is_empty() && inside.len() == touched && (edges || !tight) {
                        found.push(((first, last), (start, end)));
                    }
                }
            }
        }
    }
    found
}

/// Every rule of a sentence pair: phrases, with every choice of up to two phrases taken out.
fn all_rules(sentence: &Sentence, options: &HieroOptions) -> Vec<(Pair, f64, Vec<usize>)> {
    let phrases = blocks(sentence, options.max_span, options.tight);
    let (source, target, links) = sentence;
    let mut rules = Vec::new();
    for &whole in &phrases {
        let mut own = Vec::new();
        let within = |part: &&((usize, usize), (usize, usize))| {
            whole.0.0 <= part.0.0
                && part.0.1 <= whole.0.1
                && whole.1.0 <= part.1.0
                && part.1.1 <= whole.1.1
        };
        let inner: Vec<_> = phrases.iter().filter(within).copied().collect();
        let mut choices = vec![Vec::new()];
        choices.extend(inner.iter().map(|&one| vec![one]));
        for &one in &inner {
            for &two in &inner {
                // In source order, with a word between them, apart on the target side.
                if one.0.1 + 1 < two.0.0 && (one.1.1 < two.1.0 || two.1.1 < one.1.0) {
                    choices.push(vec![one, two]);
                }
            }
        }
        for gaps in choices {
            let side = |words: &[String], whole: (usize, usize), spans: Vec<(usize, usize)>| {
                let mut out = Vec::new();
                let mut at = whole.0;
                while at <= whole.1 {
                    match spans.iter().position(|span| span.0 == at) {
                        Some(gap) => {
                            out.push(format!("[{}]", gap + 1));
                            at = spans[gap].1;
                        }
                        None => out.push(words[at].clone()),
                    }
                    at += 1;
                }
                out
            };
            let sources: Vec<_> = gaps.iter().map(|gap| gap.0).collect();
            let targets: Vec<_> = gaps.iter().map(|gap| gap.1).collect();
            let covered = |at: usize| sources.iter().any(|s| (s.0..=s.1).contains(&at));
            let linked = (whole.0.0..=whole.0.1)
                .any(|at| !covered(at) && links.iter().any(|link| link.0 == at));
            let places = (whole.0.0..=whole.0.1).filter(|&at| !covered(at)).collect();
            let left = side(&words(source, 's'), whole.0, sources.clone());
            if linked && left.len() <= options.max_symbols {
                own.push(((left, side(&words(target, 't'), whole.1, targets)), places));
            }
        }
        let share = 1.0 / own.len() as f64;
        rules.extend(
            own.into_iter().map(|(rule, places): (Pair, Vec<usize>)| (rule, share, places)),
        );
    }
    rules
}

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
            prop_assert!((get("EgivenFCoherent") - (all / count).log10()).abs() < 1e-6);
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

#[test]
fn damaged_tables_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let text = Text(vec![(vec![0, 1, 2], vec![2, 1], BTreeSet::from([(0, 0), (2, 1)]))]);
    make_phrases(&text.corpus(folder.path()), &at("p"), 1 << 20, Smoothing::None);
    let whole = fs::read(at("p")).unwrap();
    for cut in 0..whole.len() {
        fs::write(at("cut"), &whole[..cut]).unwrap();
        let error = Table::open(&at("cut"), false).err().unwrap();
        assert!(error.remedy.is_some() && error.file.is_some());
    }
    for place in 0..whole.len() {
        let mut bad = whole.clone();
        bad[place] ^= 0x55;
        fs::write(at("bad"), &bad).unwrap();
        assert!(Table::open(&at("bad"), true).is_err(), "{place}");
        // Unchecked damage may give other rules, but it must end.
        if let Ok(table) = Table::open(&at("bad"), false) {
            let mut nodes = vec![table.root()];
            while let Some(node) = nodes.pop() {
                table.entries(node).for_each(|e| {
                    e.target().for_each(drop);
                    e.links().for_each(drop);
                });
                nodes.extend(table.children(node).map(|child| child.1));
            }
            (0..9)
                .for_each(|id| assert!(table.source_word(id).is_none_or(|word| word.len() < 1000)));
            table.target_id("t1");
        }
    }
    fs::write(at("other"), b"not a table of rules, but longer than its head").unwrap();
    for (name, expected) in [("other", "is not a table"), ("", "directory"), ("none", "no such")] {
        let error = Table::open(&at(name), true).err().unwrap();
        assert!(error.message.contains(expected), "{error}");
    }
}

#[test]
fn marks_inside_words_do_not_break_text() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::write(at("s"), "||| [X,1] a|b\n").unwrap();
    fs::write(at("t"), "||| [X] c\n").unwrap();
    fs::write(at("a"), "0-0 1-1 2-2\n").unwrap();
    let corpus = Corpus::read(&at("s"), &at("t"), &at("a"), &Reading::default()).unwrap();
    make_phrases(&corpus, &at("p"), 1 << 20, Smoothing::None);
    make_hiero(&corpus, &at("h"), 1 << 20, &HieroOptions::default());
    let phrases = Table::open(&at("p"), true).unwrap();
    let id = |word: &str| Symbol::Word(phrases.source_id(word).unwrap());
    assert_eq!(phrases.lookup(&[id("|||"), id("[X,1]")]).count(), 1);
    export_phrases(&phrases, &at("p.txt")).unwrap();
    let imported = import_moses(&at("p.txt"), None, &at("p2")).unwrap();
    assert_eq!(imported.entries, phrases.entry_count());
    let hiero = Table::open(&at("h"), true).unwrap();
    export_cdec(&hiero, &at("h.txt")).unwrap();
    assert_eq!(import_cdec(&at("h.txt"), &at("h2")).unwrap().entries, hiero.entry_count());
    let again = Table::open(&at("h2"), true).unwrap();
    assert!(again.source_id("&#91;X,1&#93;").is_some());
}

#[test]
fn bad_text_is_named_by_line() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let good = "a ||| b ||| 0.5 1 1 1 ||| 0-0 ||| 1 1 1 ||| |||\n";
    for (line, expected) in [
        ("a ||| b", "fields"),
        (" ||| b ||| 1 1 1 1 |||", "empty side"),
        ("a ||| b ||| 1 1 1 |||", "3 scores, but 4"),
        ("a ||| b ||| 1 1 1 nan |||", "finite"),
        ("a ||| b ||| 1 1 1 1 ||| 0-7 |||", "outside"),
    ] {
        fs::write(at("p"), format!("{good}{line}\n")).unwrap();
        let error = import_moses(&at("p"), None, &at("out")).unwrap_err();
        assert!(error.line == Some(2) && error.message.contains(expected), "{error}");
        assert!(!at("out").exists());
    }
    let good =
        "[X] ||| a [X,1] ||| [X,1] b ||| Count=1 ||| 0-1\n[S] ||| [X,1] ||| [1] ||| Glue=1\n";
    for (line, expected) in [
        ("[X] ||| a", "fields"),
        ("[NP] ||| a ||| b ||| C=1", "nonterminal"),
        ("[X] ||| a [X,1] ||| b ||| C=1", "gaps"),
        ("[X] ||| a [Y,1] ||| b [Y,1] ||| C=1", "[X]"),
        ("[X] ||| a ||| b [X,1] ||| C=1", "source side"),
        ("[X] ||| a ||| b ||| C=inf", "finite"),
        ("[X] ||| a ||| b ||| C", "feature"),
        ("[X] ||| a [1] [2] [3] ||| [3] [2] [1] b ||| C=1", "gaps"),
    ] {
        fs::write(at("g"), format!("{good}{line}\n")).unwrap();
        let error = import_cdec(&at("g"), &at("out")).unwrap_err();
        assert!(error.line == Some(3) && error.message.contains(expected), "{error}");
    }
    fs::write(at("g"), good).unwrap();
    let imported = import_cdec(&at("g"), &at("out")).unwrap();
    assert_eq!((imported.entries, imported.left_out), (1, 1));
}
