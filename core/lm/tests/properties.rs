//! What holds for every model: mass, states, files, memory and threads.

mod common;

use std::fs;

use common::{Table, backed_off, estimated, order, table};
use proptest::prelude::*;
use tunesmith_lm::{Batch, Ends, Estimate, Model, State};

fn texts() -> impl Strategy<Value = String> {
    let line = proptest::collection::vec("[a-f]", 0..9);
    proptest::collection::vec(line.prop_map(|words| words.join(" ")), 1..40)
        .prop_map(|lines| lines.join("\n") + "\n")
        .prop_filter("no words", |text| !text.trim().is_empty())
}

struct Made {
    model: Model,
    table: Table,
    order: usize,
    folder: tempfile::TempDir,
}

/// Estimates, writes ARPA, and reads it back.
fn make(text: &str, options: &Estimate) -> Made {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("lm.arpa");
    let mut found = estimated(text, options).unwrap();
    found.write_arpa(&path).unwrap();
    let model = Model::load(&path).unwrap();
    Made { model, table: table(&path), order: options.order, folder }
}

fn owned(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| word.to_string()).collect()
}

/// Scores words by cutting them at random and joining the parts again.
fn by_parts(model: &Model, words: &[u32], cuts: &mut impl Iterator<Item = usize>) -> (f32, Ends) {
    let mut ends = Ends::EMPTY;
    let cut = cuts.next().unwrap_or(0) % (words.len() + 1);
    if cut == 0 || cut == words.len() {
        let total = words.iter().map(|&word| model.append(&mut ends, word)).sum();
        return (total, ends);
    }
    let (first, left) = by_parts(model, &words[..cut], cuts);
    let (second, right) = by_parts(model, &words[cut..], cuts);
    ends = left;
    let change = model.join(&mut ends, &right);
    (first + second + change, ends)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(120))]

    #[test]
    fn a_sentence_joined_from_parts_scores_as_from_left_to_right(
        text in texts(),
        n in 1..=6usize,
        prune in prop_oneof![Just(vec![]), Just(vec![0, 1]), Just(vec![0, 0, 2])],
        words in proptest::collection::vec("[a-g]", 1..9),
        cuts in proptest::collection::vec(0..10usize, 16),
        others in proptest::collection::vec(0..10usize, 16),
        before in proptest::collection::vec("[a-g]", 0..5),
    ) {
        prop_assume!(prune.len() <= n);
        let made = make(&text, &Estimate { prune, ..order(n) });
        let model = &made.model;
        let ids: Vec<u32> = words.iter().map(|word| model.id(word)).collect();
        let (inside, part) = by_parts(model, &ids, &mut cuts.into_iter());
        let (again, same) = by_parts(model, &ids, &mut others.into_iter());
        prop_assert!((inside - again).abs() < 1e-4);
        prop_assert_eq!(part, same);
        prop_assert_eq!(part.key(), same.key());
        let mut packed = Vec::new();
        part.pack(&mut packed);
        let part = Ends::unpack(&packed);
        prop_assert_eq!(part, same);
        for mut whole in [Ends::EMPTY, model.begin_ends()] {
            let begun = !whole.is_empty();
            let mut total: f32 =
                before.iter().map(|word| model.append(&mut whole, model.id(word))).sum();
            let mut state = if begun { model.begin() } else { State::EMPTY };
            let mut plain = 0.0;
            for word in before.iter().chain(&words) {
                let (scored, next) = model.score(&state, model.id(word));
                plain += scored.log10;
                state = next;
            }
            total += inside + model.join(&mut whole, &part);
            prop_assert!((total - plain).abs() < 1e-4, "{} {}", total, plain);
            prop_assert_eq!(*whole.right(), state);
            let (expected, _) = model.score(&state, model.end_id());
            let (found, _) = model.score(whole.right(), model.end_id());
            prop_assert!((expected.log10 - found.log10).abs() < 1e-4);
        }
    }

    #[test]
    fn probabilities_after_any_context_sum_to_one(
        text in texts(),
        n in 1..=6usize,
        prune in prop_oneof![Just(vec![]), Just(vec![0, 1]), Just(vec![0, 0, 2])],
        context in proptest::collection::vec("[a-g]", 0..6),
    ) {
        prop_assume!(prune.len() <= n);
        let made = make(&text, &Estimate { prune, ..order(n) });
        let model = &made.model;
        for mut state in [State::EMPTY, model.begin()] {
            for word in &context {
                let words = 0..model.vocabulary_len() as u32;
                let sum: f64 = words
                    .filter(|&word| word != model.begin_id())
                    .map(|word| 10f64.powf(f64::from(model.score(&state, word).0.log10)))
                    .sum();
                prop_assert!((sum - 1.0).abs() < 1e-6, "{}", sum);
                state = model.score(&state, model.id(word)).1;
            }
        }
    }

    #[test]
    fn short_states_score_like_the_whole_history(
        text in texts(),
        n in 1..=6usize,
        prune in prop_oneof![Just(vec![]), Just(vec![0, 1])],
        sentence in proptest::collection::vec("[a-g]", 0..12),
    ) {
        prop_assume!(prune.len() <= n);
        let made = make(&text, &Estimate { prune, ..order(n) });
        let mut history = owned(&["<s>"]);
        let mut state = made.model.begin();
        for word in sentence.iter().map(String::as_str).chain(["</s>"]) {
            let known = made.table.contains_key(&vec![word.to_string()]);
            history.push(if known { word.into() } else { "<unk>".into() });
            let (scored, next) = made.model.score(&state, made.model.id(word));
            let (expected, length) = backed_off(&made.table, made.order, &history);
            prop_assert!((f64::from(scored.log10) - expected).abs() < 1e-5, "{:?}", history);
            prop_assert_eq!(usize::from(scored.length), length);
            prop_assert!(next.len() < made.order);
            state = next;
        }
    }

    #[test]
    fn equal_states_have_equal_futures(
        text in texts(),
        n in 2..=5usize,
        histories in proptest::collection::vec(proptest::collection::vec("[a-g]", 0..4), 2..8),
    ) {
        let made = make(&text, &order(n));
        let model = &made.model;
        let states: Vec<State> = histories
            .iter()
            .map(|words| words.iter().fold(model.begin(), |state, word| {
                model.score(&state, model.id(word)).1
            }))
            .collect();
        for (one, other) in states.iter().zip(&states[1..]).filter(|(one, other)| one == other) {
            for word in 0..model.vocabulary_len() as u32 {
                let (left, right) = (model.score(one, word), model.score(other, word));
                prop_assert_eq!(left.0, right.0);
                prop_assert_eq!(left.1, right.1);
            }
        }
        for (words, state) in histories.iter().zip(&states).filter(|(words, _)| words.len() >= n) {
            let ids: Vec<u32> = words.iter().map(|word| model.id(word)).collect();
            prop_assert_eq!(&model.state_of(&ids), state);
        }
    }

    #[test]
    fn batches_and_single_queries_agree(
        text in texts(),
        n in 1..=6usize,
        begin in any::<bool>(),
        sentences in proptest::collection::vec("[a-h ]{0,30}", 0..20),
    ) {
        let model = make(&text, &order(n)).model;
        let mut batch = Batch::default();
        for sentence in &sentences {
            batch.push_text(&model, sentence.as_bytes(), true);
        }
        let mut found = vec![None; batch.ids().len()];
        model.score_batch(&batch, begin, |at, scored| found[at] = Some(scored));
        let sums = model.score_sentences(&batch, begin);
        let mut at = 0;
        for (&end, sum) in batch.ends().iter().zip(sums) {
            let mut state = if begin { model.begin() } else { State::EMPTY };
            let mut total = 0.0;
            for (&word, found) in batch.ids()[at..end].iter().zip(&found[at..end]) {
                let (scored, next) = model.score(&state, word);
                prop_assert_eq!(*found, Some(scored));
                model.score_words(&state, &batch.ids()[at..end], |other, many, after| {
                    assert_eq!((many, after), model.score(&state, batch.ids()[at + other]));
                });
                total += f64::from(scored.log10);
                state = next;
            }
            prop_assert_eq!(sum, total);
            at = end;
        }
    }

    #[test]
    fn every_way_to_a_model_gives_the_same(text in texts(), n in 1..=6usize, memory in 0..5000usize) {
        let made = make(&text, &order(n));
        let folder = made.folder.path();
        let plain = fs::read(folder.join("lm.arpa")).unwrap();
        let mut small = estimated(&text, &Estimate { memory, ..order(n) }).unwrap();
        small.write_arpa(folder.join("small.arpa")).unwrap();
        prop_assert!(plain == fs::read(folder.join("small.arpa")).unwrap());
        // The tables are filled in the same order, so that whole files can be compared.
        made.model.save(folder.join("arpa.tlm")).unwrap();
        small.model().unwrap().save(folder.join("direct.tlm")).unwrap();
        let binary = fs::read(folder.join("arpa.tlm")).unwrap();
        prop_assert!(binary == fs::read(folder.join("direct.tlm")).unwrap());
        Model::load(folder.join("direct.tlm")).unwrap().save(folder.join("again.tlm")).unwrap();
        prop_assert!(binary == fs::read(folder.join("again.tlm")).unwrap());
        small.write_arpa(folder.join("lm.arpa.gz")).unwrap();
        small.write_arpa(folder.join("lm.arpa.zst")).unwrap();
        for name in ["lm.arpa.gz", "lm.arpa.zst"] {
            Model::load(folder.join(name)).unwrap().save(folder.join("packed.tlm")).unwrap();
            prop_assert!(binary == fs::read(folder.join("packed.tlm")).unwrap());
        }
    }
}

#[test]
fn threads_do_not_change_the_result() {
    let text: String = (0..3000u64)
        .map(|line| {
            let words: Vec<String> = (0..12)
                .map(|at| format!("w{}", (line * 31 + at * at * 7 + line * line % 97) % 400))
                .collect();
            words.join(" ") + "\n"
        })
        .collect();
    let folder = tempfile::tempdir().unwrap();
    let mut files = Vec::new();
    for (threads, memory) in [(1, 1 << 30), (2, 1 << 30), (5, 300_000), (1, 40_000)] {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let path = folder.path().join(format!("{threads}.{memory}"));
        pool.install(|| {
            let mut found = estimated(&text, &Estimate { memory, ..order(4) }).unwrap();
            found.write_arpa(&path).unwrap();
        });
        files.push(fs::read(&path).unwrap());
    }
    assert!(files.windows(2).all(|pair| pair[0] == pair[1]));
}
