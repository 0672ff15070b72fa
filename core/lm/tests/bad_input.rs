//! Texts, ARPA files and binaries that cannot be used, or hardly.

mod common;

use std::fs;
use std::io::Cursor;

use common::{estimated, lines, order};
use tunesmith_lm::{Estimate, Model, Symbols, estimate};
use tunesmith_text::{Error, Lines, Watch};

fn fails(text: &[u8], options: &Estimate) -> Error {
    let lines = Lines::new("text", Cursor::new(text.to_vec()));
    estimate([lines], options, &Watch::default()).err().unwrap()
}

#[test]
fn texts_without_words_are_refused() {
    for text in ["", "\n", " \t \r\n\n"] {
        let error = fails(text.as_bytes(), &order(3));
        assert!(error.message.contains("no words") && error.remedy.is_some());
    }
}

#[test]
fn invalid_utf8_is_named_with_its_line() {
    let error = fails(b"a b\nc \xff\n", &order(3));
    assert_eq!((error.file.as_deref(), error.line), (Some("text"), Some(2)));
    assert!(error.message.contains("UTF-8"));
}

#[test]
fn special_words_are_refused_or_skipped_and_counted() {
    for word in ["<s>", "</s>", "<unk>"] {
        let text = format!("a b\na {word} b\n");
        let error = fails(text.as_bytes(), &order(2));
        assert_eq!(error.line, Some(2));
        assert!(error.message.contains(word) && error.remedy.is_some());
        let options = Estimate { symbols: Symbols::Skip, ..order(2) };
        let mut found = estimated(&text, &options).unwrap();
        assert_eq!((found.skipped(), found.words()), (1, 4));
        let same = estimated("a b\na b\n", &order(2)).unwrap().model().unwrap();
        assert_eq!(found.model().unwrap().counts(), same.counts());
    }
}

#[test]
fn one_word_gives_a_model_with_fallback_discounts() {
    for n in 1..=6 {
        let mut found = estimated("a\n", &order(n)).unwrap();
        assert!(found.stats().iter().all(|stats| stats.fallback.is_some()));
        let model = found.model().unwrap();
        assert_eq!(model.counts()[0], 4);
        let after = model.score(&model.begin(), model.id("a")).0.log10;
        assert!(after < 0.0 && after.is_finite());
    }
    let mut found = estimated(&"a a a a\n".repeat(50), &order(3)).unwrap();
    assert!(found.model().is_ok());
}

#[test]
fn a_line_of_ten_thousand_words_is_a_sentence() {
    let text = "w x y ".repeat(3334) + "\n";
    let found = estimated(&text, &order(5)).unwrap();
    assert_eq!((found.sentences(), found.words()), (1, 10_002));
}

#[test]
fn control_characters_are_letters_except_for_white_space() {
    let mut found = estimated("a\u{1}b\u{b}c\td\0e\rf\u{85}g\r\n", &order(2)).unwrap();
    assert_eq!(found.words(), 4);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("lm.arpa");
    found.write_arpa(&path).unwrap();
    let model = Model::load(&path).unwrap();
    for word in ["a\u{1}b\u{b}c", "d", "e", "f\u{85}g"] {
        assert_ne!(model.id(word), 0, "{word:?}");
    }
}

#[test]
fn options_that_make_no_sense_are_refused() {
    for options in [
        order(0),
        order(7),
        Estimate { prune: vec![0, 2, 1], ..order(3) },
        Estimate { prune: vec![0, 0, 0], ..order(2) },
    ] {
        assert!(fails(b"a b\n", &options).remedy.is_some());
    }
    let nowhere = Estimate { memory: 0, folder: Some("/no/such/place".into()), ..order(3) };
    let error = fails("a b c d\n".repeat(500).as_bytes(), &nowhere);
    assert!(error.to_string().contains("/no/such/place"), "{error}");
}

#[test]
fn a_stopped_estimate_ends() {
    let watch = Watch::default();
    watch.stop();
    let text = "a b c\n".repeat(10_000);
    assert!(estimate([lines(&text)], &order(3), &watch).is_err());
}

const GOOD: &str = "\\data\\\nngram 1=4\nngram 2=2\n\n\\1-grams:\n-1\t<unk>\t0\n-99\t<s>\t-0.3\n\
-0.5\t</s>\n-0.7\ta\t-0.2\n\n\\2-grams:\n-0.1\t<s> a\n-0.2\ta </s>\n\n\\end\\\n";

fn read(text: &str) -> Result<Model, Error> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("lm.arpa");
    fs::write(&path, text).unwrap();
    Model::load(path)
}

#[test]
fn arpa_is_read_as_others_write_it() {
    let variants = [
        GOOD.to_string(),
        GOOD.replace('\n', "\r\n"),
        GOOD.replace('\t', " "),
        GOOD.replace("ngram 1=4", "ngram  1 =     4"),
        GOOD.replace("\\1-grams:", "\n\n\\1-grams: "),
        format!("# made by hand\n\n{GOOD}"),
        format!("{GOOD}\nwhatever follows\n"),
        GOOD.replace("\t0\n", "\n"),
        GOOD.replace("<unk>", "<UNK>"),
        GOOD.replace("a </s>\n", "a </s>\t0\n"),
        GOOD.replace("-0.1\t", "-1e-1\t"),
        GOOD.replace("ngram 2=2\n", "ngram 2=2\nngram 3=0\n")
            .replace("\\end\\", "\\3-grams:\n\n\\end\\"),
        GOOD.replace("ngram 2=2\n", "ngram 2=2\nngram 3=0\n"),
    ];
    for text in variants {
        let model = read(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
        let (scored, state) = model.score(&model.begin(), model.id("a"));
        assert_eq!((scored.log10, scored.length), (-0.1, 2));
        assert_eq!(model.score(&state, model.end_id()).0.log10, -0.2);
        assert!((model.score(&state, model.id("x")).0.log10 + 1.2).abs() < 1e-6);
    }
    let unknown = read(&GOOD.replace("ngram 1=4", "ngram 1=3").replace("-1\t<unk>\t0\n", ""));
    let model = unknown.unwrap();
    assert_eq!(model.score(&model.begin(), 0).0.log10, -100.3);
}

#[test]
fn bad_arpa_is_refused_with_line_and_remedy() {
    let nothing = read("").err().unwrap();
    assert!(nothing.message.contains("is empty") && nothing.line.is_none(), "{nothing}");
    assert!(nothing.remedy.is_some() && nothing.file.is_some(), "{nothing}");
    let cases = [
        ("hello\n", 1, "no \\data\\"),
        (&GOOD.replace("\\data\\\n", ""), 4, "\\data\\ section is missing"),
        (&GOOD.replace("\\2-grams:", ""), 12, "more 1-grams"),
        (&GOOD.replace("\\1-grams:\n", ""), 5, "where n-gram counts should be"),
        (&GOOD.replace("\\end\\\n", ""), 14, "truncated"),
        (&GOOD[..GOOD.len() - 20], 12, "truncated"),
        (&GOOD.replace("ngram 1=4", "ngram 1=5"), 11, "has 4 n-grams, \\data\\ says 5"),
        (&GOOD.replace("ngram 1=4", "ngram 1=3"), 9, "more 1-grams"),
        (&GOOD.replace("ngram 2=2", "ngram 2=3"), 15, "has 2 n-grams, \\data\\ says 3"),
        (&GOOD.replace("ngram 2=2", "ngram 2=2\nngram 3=1"), 16, "\\3-grams: is missing"),
        (&GOOD.replace("ngram 2=2", "ngram 3=2"), 3, "out of order"),
        (&GOOD.replace("ngram 2=2", "ngram two"), 3, "no count"),
        (&GOOD.replace("ngram 1=4", "ngram 1=99999999999999999999"), 2, "no count"),
        (&GOOD.replace("-0.7\ta", "nan\ta"), 9, "not a finite number"),
        (&GOOD.replace("-0.7\ta", "-inf\ta"), 9, "not a finite number"),
        (&GOOD.replace("-0.7\ta\t-0.2", "-0.7\ta\tinf"), 9, "not a finite number"),
        (&GOOD.replace("-0.7\ta", "0.7\ta"), 9, "positive"),
        (&GOOD.replace("-0.7\ta", "x\ta"), 9, "not a number"),
        (&GOOD.replace("-0.7\ta\t", "-0.7\ta\tb\t"), 9, "not a number"),
        (&GOOD.replace("-0.2\ta </s>", "-0.2\ta"), 13, "fewer than 2 words"),
        (&GOOD.replace("-0.2\ta </s>", "-0.2\ta b"), 13, "not among the 1-grams"),
        (&GOOD.replace("a </s>\n", "a </s>\t-1\n"), 13, "highest order"),
        (&GOOD.replace("-0.7\ta", "-0.7\t<s>"), 9, "given twice"),
        (&GOOD.replace("<s>", "<t>"), 11, "no <s>"),
        (&GOOD.replace("\\2-grams:", "\\1-grams:"), 11, "unexpected section"),
        ("iARPA\n\\data\\\n", 1, "iARPA"),
    ];
    for (text, line, message) in cases {
        let error = read(text).err().unwrap_or_else(|| panic!("{message}: accepted"));
        assert!(error.message.contains(message), "{message}: {error}");
        assert_eq!(error.line, Some(line), "{message}: {error}");
        assert!(error.remedy.is_some() && error.file.is_some(), "{error}");
    }
    let twice = read(&GOOD.replace("-0.2\ta </s>", "-0.2\t<s> a")).err().unwrap();
    assert!(twice.message.contains("\"<s> a\" is given twice"), "{twice}");
}

#[test]
fn n_grams_left_out_between_others_are_put_in() {
    let text = "\\data\\\nngram 1=5\nngram 2=1\nngram 3=1\nngram 4=1\n\\1-grams:\n-1\t<unk>\n\
-99\t<s>\t-0.5\n-0.5\t</s>\n-0.7\ta\t-0.2\n-0.9\tb\t-0.4\n\\2-grams:\n-0.3\tb a\t-0.6\n\\3-grams:\n\
-0.2\ta b </s>\n\\4-grams:\n-0.1\t<s> b a b\n\\end\\\n";
    let model = read(text).unwrap();
    assert_eq!(model.counts(), [5, 1, 1, 1]);
    let ids = |words: &[&str]| words.iter().map(|word| model.id(word)).collect::<Vec<_>>();
    let last = |words: &[&str]| {
        let ids = ids(words);
        let state = ids[..ids.len() - 1]
            .iter()
            .fold(tunesmith_lm::State::EMPTY, |state, &word| model.score(&state, word).1);
        model.score(&state, ids[ids.len() - 1]).0.log10
    };
    let near = |left: f32, right: f32| assert!((left - right).abs() < 1e-6, "{left}, not {right}");
    near(last(&["a", "b", "</s>"]), -0.2);
    near(last(&["a", "b"]), -0.2 - 0.9);
    near(last(&["b", "a", "b"]), -0.6 - 0.2 - 0.9);
    near(last(&["b", "</s>"]), -0.4 - 0.5);
    let begin = model.begin();
    let state = ids(&["b", "a"]).iter().fold(begin, |state, &word| model.score(&state, word).1);
    near(model.score(&state, model.id("b")).0.log10, -0.1);
    near(model.score(&begin, model.id("b")).0.log10, -0.5 - 0.9);
}

#[test]
fn a_damaged_binary_is_never_used() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("lm.tlm");
    let text = "a b c d\nb c a\nc c d a b\n".repeat(3);
    estimated(&text, &order(3)).unwrap().model().unwrap().save(&path).unwrap();
    let sound = fs::read(&path).unwrap();
    assert!(Model::load(&path).is_ok());
    for size in (0..sound.len()).step_by(17).chain([sound.len() - 1, sound.len() - 64]) {
        fs::write(&path, &sound[..size]).unwrap();
        let error = Model::load(&path).err().unwrap();
        assert!(error.remedy.is_some() && error.file.is_some(), "{size}: {error}");
    }
    for at in 0..sound.len() {
        let mut bad = sound.clone();
        bad[at] ^= 1 << (at % 8);
        fs::write(&path, &bad).unwrap();
        assert!(Model::load(&path).is_err(), "byte {at}");
    }
    fs::write(&path, [&sound[..], &[0; 64]].concat()).unwrap();
    assert!(Model::load(&path).err().unwrap().message.contains("longer"));
    assert!(Model::load(folder.path()).is_err());
    assert!(Model::load(folder.path().join("absent")).is_err());
    let model = estimated("a\n", &order(2)).unwrap().model().unwrap();
    assert!(model.save(folder.path().join("lm.tlm.gz")).err().unwrap().remedy.is_some());
}

#[test]
fn unknown_ids_are_unknown_words() {
    let model = estimated("a b\nb a\n", &order(3)).unwrap().model().unwrap();
    let (known, state) = model.score(&model.begin(), u32::MAX);
    assert_eq!(known, model.score(&model.begin(), 0).0);
    assert_eq!(model.score(&state, 77).0, model.score(&state, 0).0);
    assert_eq!(model.word(u32::MAX), None);
}
