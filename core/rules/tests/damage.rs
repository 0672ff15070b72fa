//! Tables and texts that are not what they should be.

mod plain;

use std::collections::BTreeSet;
use std::fs;

use plain::{Text, make_hiero, make_phrases};
use tunesmith_rules::{
    Corpus, HieroOptions, Reading, Smoothing, Symbol, Table, export_cdec, export_phrases,
    import_cdec, import_moses,
};

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
