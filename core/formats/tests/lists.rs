//! What is promised of reading and writing `|||` lists.

use std::io::Cursor;
use std::path::PathBuf;

use proptest::prelude::*;
use tunesmith_formats::{Format, Layout, Options, Reader, write};
use tunesmith_space::{Hypothesis, Pools, PoolsBuilder};
use tunesmith_text::{Error, Lines, Result};

fn reader(text: impl Into<Vec<u8>>, options: Options) -> Reader {
    Reader::new(Lines::new("list", Cursor::new(text.into())).unwrap(), options).unwrap()
}

fn read(text: impl Into<Vec<u8>>, options: Options) -> Result<Pools> {
    reader(text, options).read(None).map(|pools| pools.expect("pools"))
}

fn moses(text: &str) -> Result<Pools> {
    read(text, Options::default())
}

fn named(pools: &Pools, hypothesis: usize) -> Vec<(String, f32)> {
    let (ids, values) = pools.features(hypothesis);
    let name = |&id: &u32| pools.names.name(id).unwrap().to_owned();
    let mut list: Vec<_> = ids.iter().map(name).zip(values.iter().copied()).collect();
    list.sort_by(|left, right| left.0.cmp(&right.0));
    list
}

fn assert_equal(left: &Pools, right: &Pools) {
    assert_eq!(left.starts(), right.starts());
    assert_eq!(left.keys, right.keys);
    for hypothesis in 0..left.hypotheses() {
        assert_eq!(left.text(hypothesis), right.text(hypothesis));
        assert_eq!(left.extra(hypothesis), right.extra(hypothesis));
        assert_eq!(left.score(hypothesis).to_bits(), right.score(hypothesis).to_bits());
        assert_eq!(named(left, hypothesis), named(right, hypothesis));
    }
    assert_eq!(left.columns.iter().collect::<Vec<_>>(), right.columns.iter().collect::<Vec<_>>());
    for column in 0..left.columns.len() {
        let pair = left.column(column).zip(right.column(column));
        pair.for_each(|(one, other)| assert_eq!(one.to_bits(), other.to_bits()));
    }
}

#[test]
fn lists_of_different_lengths_with_gaps_and_duplicates() {
    let pools = moses(
        "0 ||| a ||| LM0= 1 ||| 5\n0 ||| a ||| LM0= 1 ||| 5\n\n3 ||| b ||| TM0= 1 2 ||| -1e-3 ||| 0-0\n",
    )
    .unwrap();
    assert_eq!(pools.starts(), [0, 2, 2, 2, 3]);
    assert_eq!(pools.names.iter().collect::<Vec<_>>(), ["LM0", "TM0_1", "TM0_2"]);
    assert_eq!(pools.score(2), -1e-3);
    assert_eq!(pools.extra(2), "0-0");
    assert_eq!(pools.extra(0), "");
    assert!(pools.uniform(0) && pools.uniform(1));
}

#[test]
fn the_number_of_sentences_pads_the_end() {
    let options = Options { sentences: Some(3), ..Options::default() };
    assert_eq!(read("0 ||| a ||| ||| 1", options.clone()).unwrap().sentences(), 3);
    let error = read("3 ||| a ||| ||| 1", options).unwrap_err();
    assert!(error.message.contains("past the last of 3 sentences"));
}

#[test]
fn every_fault_names_file_line_and_remedy() {
    let good = "0 ||| a ||| LM0= 1 ||| 5\n";
    let cases: [(&[u8], &str); 13] = [
        (b"0 ||| a ||| LM0= 1", "found 3 of the 4 fields"),
        (b"x ||| a ||| LM0= 1 ||| 2", "id \"x\" is not a number"),
        (b"0 ||| a ||| New= 1 TM0= 1 2 LM0= b ||| 2", "\"b\" is not a number"),
        (b"0 ||| a ||| LM0= nan ||| 2", "not a finite number"),
        (b"0 ||| a ||| LM0= -inf ||| 2", "not a finite number"),
        (b"0 ||| a ||| LM0= 1 ||| nan", "not a finite number"),
        (b"0 ||| a ||| LM0= 1 ||| best", "is not a number"),
        (b"0 ||| a ||| LM0= 1 TM0= 1 2 LM0= 2 ||| 3", "given twice"),
        (b"0 |||  ||| LM0= 1 ||| 3", "has no text"),
        (b"0 ||| a\xff ||| LM0= 1 ||| 3", "invalid UTF-8"),
        (b"2000000 ||| a ||| LM0= 1 ||| 3", "more than a million"),
        (b"-1 ||| a ||| LM0= 1 ||| 3", "is not a number"),
        (b"99999999999999999999 ||| a ||| LM0= 1 ||| 3", "is not a number"),
    ];
    for (line, message) in cases {
        let text = [good.as_bytes(), line, b"\n", good.as_bytes()].concat();
        let error = read(text.clone(), Options::default()).unwrap_err();
        assert!(error.message.contains(message), "{error}");
        assert_eq!((error.file.as_deref(), error.line), (Some("list"), Some(2)), "{error}");
        assert!(error.remedy.is_some());
        let mut lenient = reader(text, Options { skip_bad: true, ..Options::default() });
        let pools = lenient.read(None).unwrap().unwrap();
        assert_eq!(pools.hypotheses(), 2);
        assert_eq!(pools.names.iter().collect::<Vec<_>>(), ["LM0"]);
        assert_eq!(lenient.skipped().len(), 1);
        assert_eq!(lenient.skipped()[0].count, 1);
        assert_eq!(lenient.skipped()[0].first, error);
    }
}

#[test]
fn a_list_once_left_stays_closed() {
    let error = moses("0 ||| a ||| ||| 1\n1 ||| b ||| ||| 1\n0 ||| c ||| ||| 1\n").unwrap_err();
    assert_eq!(error.line, Some(3));
    assert!(error.remedy.unwrap().contains("sort"));
    let keyed = Options { keyed: true, ..Options::default() };
    let pools = read("u7 ||| a ||| ||| 1\nu2 ||| b ||| ||| 1\n", keyed.clone()).unwrap();
    assert_eq!(pools.keys, ["u7", "u2"]);
    let error =
        read("u ||| a ||| ||| 1\nv ||| b ||| ||| 1\nu ||| c ||| ||| 1\n", keyed).unwrap_err();
    assert!(error.message.contains("already left"));
}

#[test]
fn an_empty_file_is_refused_with_what_was_left_out() {
    assert!(moses("").unwrap_err().message.contains("no hypotheses"));
    assert!(moses("\n\n").unwrap_err().message.contains("all 2 lines"));
    let error = read("junk\n", Options { skip_bad: true, ..Options::default() }).unwrap_err();
    assert!(error.message.contains("list:1") && error.file.as_deref() == Some("list"));
}

#[test]
fn blank_hypotheses_are_kept_on_request() {
    let options = Options { keep_blank: true, ..Options::default() };
    assert_eq!(read("0 ||| ||| ||| 1\n", options).unwrap().text(0), "");
}

#[test]
fn parts_are_the_whole() {
    let text = "0 ||| a ||| A= 1 ||| 1\n0 ||| b ||| B= 1 ||| 1\n4 ||| c ||| C= 1 ||| 1\n\
                5 ||| d ||| A= 1 ||| 1\n5 ||| e ||| A= 2 ||| 1\n";
    let options = Options { sentences: Some(8), ..Options::default() };
    let whole = read(text, options.clone()).unwrap();
    for limit in 1..10 {
        let mut parts = reader(text, options.clone());
        let mut texts = Vec::new();
        let mut lengths = Vec::new();
        while let Some(part) = parts.read(Some(limit)).unwrap() {
            assert!(part.sentences() <= limit);
            lengths.extend((0..part.sentences()).map(|sentence| part.list(sentence).len()));
            for hypothesis in 0..part.hypotheses() {
                texts.push((part.text(hypothesis).to_owned(), named(&part, hypothesis)));
            }
        }
        assert_eq!(lengths, [2, 0, 0, 0, 1, 2, 0, 0]);
        let expected: Vec<_> = (0..whole.hypotheses())
            .map(|hypothesis| (whole.text(hypothesis).to_owned(), named(&whole, hypothesis)))
            .collect();
        assert_eq!(texts, expected);
    }
}

fn sidecar(folder: &std::path::Path, name: &str, text: &str) -> (String, PathBuf) {
    let path = folder.join(name);
    std::fs::write(&path, text).unwrap();
    (name.to_owned(), path)
}

#[test]
fn files_of_numbers_become_columns_and_features() {
    let folder = tempfile::tempdir().unwrap();
    let list = "0 ||| a ||| A= 1 ||| 1\nbad\n0 ||| b ||| A= 2 ||| 1\n";
    let options = Options {
        skip_bad: true,
        columns: vec!["A".into()],
        column_files: vec![sidecar(folder.path(), "comet", "0.5\n9\n0.25\n")],
        feature_files: vec![sidecar(folder.path(), "lm", "-1\n9\n-2\n")],
        ..Options::default()
    };
    let pools = read(list, options.clone()).unwrap();
    assert_eq!(pools.column(0).collect::<Vec<_>>(), [1.0, 2.0]);
    assert_eq!(pools.column(1).collect::<Vec<_>>(), [0.5, 0.25]);
    assert_eq!(named(&pools, 1), [("lm".to_owned(), -2.0)]);
    for (text, message) in
        [("0.5\n9\n", "ends after 2 lines"), ("0.5\n9\n1\n2\n", "goes on after 3 lines")]
    {
        let mut wrong = options.clone();
        wrong.column_files = vec![sidecar(folder.path(), "comet", text)];
        let error = read(list, wrong).unwrap_err();
        assert!(error.message.contains(message), "{error}");
        assert!(error.file.unwrap().ends_with("comet") && error.line.is_some());
    }
    let mut strict = options.clone();
    strict.skip_bad = false;
    strict.column_files = vec![sidecar(folder.path(), "comet", "x\n9\n0.25\n")];
    let error = read(list, strict).unwrap_err();
    assert!(error.file.unwrap().ends_with("comet") && error.line == Some(1));
    let mut twice = options;
    twice.feature_files[0].0 = "comet".into();
    let lines = Lines::new("list", Cursor::new(list)).unwrap();
    assert!(Reader::new(lines, twice).is_err());
}

#[test]
fn a_new_order_and_one_more_score_are_written() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out.gz");
    let pools = moses("0 ||| a ||| TM0= 1 2 ||| 1\n0 ||| b ||| TM0= 3 4 LM= 1 ||| 2\n").unwrap();
    let layout =
        Layout { order: Some(&[1, 0]), scores: vec![("Model", &[0.5, 0.25])], ..Layout::default() };
    write(&pools, &path, &layout).unwrap();
    let mut lines = Lines::open(&path).unwrap();
    assert_eq!(lines.next().unwrap().unwrap(), b"0 ||| b ||| TM0= 3 4 LM= 1 Model= 0.25 ||| 2");
    assert_eq!(lines.next().unwrap().unwrap(), b"0 ||| a ||| TM0= 1 2 Model= 0.5 ||| 1");
    assert!(lines.next().unwrap().is_none());
    let refused = |layout: Layout<'_>| -> Error {
        let path = folder.path().join("refused");
        let error = write(&pools, &path, &layout).unwrap_err();
        assert!(!path.exists());
        assert!(error.remedy.is_some());
        error
    };
    refused(Layout { order: Some(&[0, 0]), ..Layout::default() });
    refused(Layout { order: Some(&[7]), ..Layout::default() });
    refused(Layout { scores: vec![("a b", &[0.0, 0.0])], ..Layout::default() });
    refused(Layout { scores: vec![("LM", &[0.0, 0.0])], ..Layout::default() });
    refused(Layout { scores: vec![("New", &[0.0])], ..Layout::default() });
}

#[test]
fn a_line_break_in_a_text_is_refused() {
    let mut builder = PoolsBuilder::default();
    builder.sentence(None);
    builder.push(Hypothesis { text: "a\nb", ..Hypothesis::default() });
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out");
    assert!(write(&builder.finish(), &path, &Layout::default()).is_err());
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

fn word() -> impl Strategy<Value = String> {
    prop_oneof![4 => "[a-z|=:0-9éß.-]{1,5}", 1 => Just("|||".to_owned()), 1 => "-?[0-9]{1,3}"]
}

fn pools(names: &'static str) -> impl Strategy<Value = Pools> {
    let value = prop_oneof![
        -1e6f32..1e6,
        Just(0.0f32),
        any::<f32>().prop_filter("finite", |v| v.is_finite())
    ];
    let text = proptest::collection::vec(word(), 1..6).prop_map(|words| words.join(" "));
    let features = proptest::collection::btree_map(names, value, 1..6);
    let hypothesis = (text, features, -1e9f64..1e9, proptest::option::of(-1f64..1.0));
    let list = proptest::collection::vec(hypothesis, 0..4);
    proptest::collection::vec(list, 1..5).prop_filter_map("not empty", |lists| {
        // Empty lists at the end do not show in a file.
        lists.last().filter(|list| !list.is_empty())?;
        let mut builder = PoolsBuilder::default();
        builder.columns.intern("Column");
        for list in lists {
            builder.sentence(None);
            for (text, features, score, cell) in list {
                let features: Vec<(u32, f32)> = features
                    .iter()
                    .map(|(name, &value)| (builder.names.intern(name), value))
                    .collect();
                builder.push(Hypothesis {
                    dense: &[],
                    text: &text,
                    features: &features,
                    score: Some(score),
                    extra: "0-0",
                    columns: &[cell.unwrap_or(f64::NAN)],
                });
            }
        }
        Some(builder.finish())
    })
}

fn there_and_back(pools: &Pools, format: Format) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("list.zst");
    write(pools, &path, &Layout { format, ..Layout::default() }).unwrap();
    let options = Options { format, columns: vec!["Column".into()], ..Options::default() };
    let back = Reader::open(&path, options).unwrap().read(None).unwrap().unwrap();
    assert_equal(pools, &back);
}

fn any_format() -> impl Strategy<Value = Format> {
    prop_oneof![Just(Format::Moses), Just(Format::Cdec), Just(Format::Travatar)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn moses_lists_come_back(pools in pools("[a-zA-Z]{1,2}(_[0-9]{1,2})?=?")) {
        there_and_back(&pools, Format::Moses);
    }

    #[test]
    fn cdec_lists_come_back(pools in pools("[a-zA-Z]{1,2}(_[0-9]{1,2})?=?")) {
        there_and_back(&pools, Format::Cdec);
    }

    #[test]
    fn travatar_lists_come_back(pools in pools("[a-zA-Z]{1,2}(_[0-9]{1,2})?=?")) {
        there_and_back(&pools, Format::Travatar);
    }

    #[test]
    fn arbitrary_bytes_never_panic(
        bytes in proptest::collection::vec(any::<u8>(), 0..300),
        format in any_format(), keyed in any::<bool>(), skip_bad in any::<bool>(),
    ) {
        let lines = Lines::new("list", Cursor::new(bytes));
        let options = Options { format, keyed, skip_bad, ..Options::default() };
        if let Ok(lines) = lines {
            let _ = Reader::new(lines, options).unwrap().read(None);
        }
    }

    #[test]
    fn near_lists_never_panic(
        text in "([0-3] \\|\\|\\| [ab|]{0,3} \\|\\|\\| ([AB]_?[12]?=? ?[-0-9.en|]{0,4} ?){0,4}\\|\\|\\| [-0-9.]{0,3}( \\|\\|\\| .)?\n){0,6}",
        format in any_format(),
    ) {
        let options = Options { format, skip_bad: true, ..Options::default() };
        if let Ok(pools) = read(text.clone(), options) {
            for hypothesis in 0..pools.hypotheses() {
                let (ids, values) = pools.features(hypothesis);
                prop_assert!(ids.windows(2).all(|pair| pair[0] < pair[1]));
                prop_assert!(values.iter().all(|value| value.is_finite()));
            }
        }
        let _ = read(text, Options { format, ..Options::default() });
    }
}
