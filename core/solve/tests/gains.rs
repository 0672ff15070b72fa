//! Gains from their definitions.

use std::sync::Arc;

use tunesmith_metric::Ratio;
use tunesmith_solve::{Gain, GainKind, GainScale, Worth};

const ERRORS: Ratio = Ratio { scale: 100.0, higher: false };
const WORDS: f64 = 10.0;
/// Two hypotheses: one and four errors in ten words.
const ALONE: [f64; 4] = [1.0, WORDS, 4.0, WORDS];

fn rate(errors: f64, words: f64) -> f64 {
    1.0 - errors / words
}

fn close(found: f64, wanted: f64) -> bool {
    (found - wanted).abs() < 1e-12
}

fn made(kind: GainKind, scale: GainScale) -> Gain {
    let first = [2.0, WORDS, 6.0, WORDS];
    Gain::new(Arc::new(ERRORS), kind, scale, vec![3.0, 5.0], &first)
}

/// Both ways to ask for the gains of rows give these.
fn assert_gains(worth: &Worth, wanted: [f64; 2]) {
    let mut found = Vec::new();
    worth.gains(&ALONE, &mut found);
    for (place, row) in ALONE.chunks_exact(2).enumerate() {
        assert!(close(found[place], wanted[place]), "{found:?} {wanted:?}");
        assert!(close(worth.gain(row), wanted[place]), "{} {wanted:?}", worth.gain(row));
    }
}

#[test]
fn a_sentence_alone_has_the_gain_of_the_metric() {
    for gain in [
        made(GainKind::Sentence, GainScale::One),
        Gain::sentence(Arc::new(ERRORS)),
        made(GainKind::Context { follow: true }, GainScale::One),
    ] {
        assert_gains(&gain.worth(0), [0.9, 0.6]);
        assert_eq!(gain.worth(0).scale_alone(), Some(1.0));
    }
    assert_gains(&Worth::alone(Arc::new(ERRORS)), [0.9, 0.6]);
    assert_eq!(Worth::alone(Arc::new(ERRORS)).metric().width(), 2);
}

#[test]
fn scales_multiply_by_lengths() {
    let gain = made(GainKind::Sentence, GainScale::Length);
    assert_eq!((gain.scale(0), gain.scale(1)), (3.0, 5.0));
    assert_gains(&gain.worth(1), [5.0 * 0.9, 5.0 * 0.6]);
    assert_eq!(gain.worth(1).scale_alone(), Some(5.0));
    // The background begins as one sentence of mean length.
    let mut gain = made(GainKind::Background { decay: 0.5, oracle: false }, GainScale::Background);
    assert_eq!((gain.scale(0), gain.scale(1)), (7.0, 9.0));
    gain.observe(0, &[0.0; 2], &[0.0; 2]);
    assert_eq!(gain.scale(1), 0.5 * (4.0 + 3.0) + 5.0);
}

#[test]
fn a_background_begins_at_the_mean_of_the_first_and_follows_what_was_chosen() {
    for (oracle, chosen) in [(false, [1.0, WORDS]), (true, [7.0, WORDS])] {
        let mut gain = made(GainKind::Background { decay: 0.5, oracle }, GainScale::One);
        let wanted = |errors: f64, words: f64| {
            [rate(errors + 1.0, words + WORDS), rate(errors + 4.0, words + WORDS)]
        };
        assert_gains(&gain.worth(1), wanted(4.0, WORDS));
        assert_eq!(gain.worth(1).scale_alone(), None);
        gain.observe(0, &[1.0, WORDS], &[7.0, WORDS]);
        assert_gains(&gain.worth(1), wanted(0.5 * (4.0 + chosen[0]), WORDS));
    }
}

#[test]
fn gains_in_context_exchange_the_sentence_and_count_for_the_whole_corpus() {
    let start = [2.0, 6.0, 5.0];
    for follow in [false, true] {
        let kind = GainKind::Context { follow };
        let chosen = Vec::from_iter(start.into_iter().flat_map(|errors| [errors, WORDS]));
        let mut gain = Gain::new(Arc::new(ERRORS), kind, GainScale::One, vec![1.0; 3], &chosen);
        assert!(gain.set_context(chosen.clone()));
        let assert_context = |gain: &Gain, errors: [f64; 3]| {
            let words = 3.0 * WORDS;
            let sum: f64 = errors.iter().sum();
            let centre = rate(sum, words);
            for (sentence, own) in errors.into_iter().enumerate() {
                let among = |errors: f64| rate(sum - own + errors, words);
                let wanted = [1.0, 4.0].map(|errors| centre + 3.0 * (among(errors) - centre));
                assert_gains(&gain.worth(sentence), wanted);
            }
        };
        assert_context(&gain, start);
        for (sentence, errors) in [(0, 9.0), (2, 1.0), (0, 4.0)] {
            gain.observe(sentence, &[errors, WORDS], &[0.0, WORDS]);
        }
        assert_context(&gain, if follow { [4.0, 6.0, 1.0] } else { start });
        assert_context(&Gain::among(Arc::new(ERRORS), chosen), start);
    }
}

#[test]
fn a_context_of_another_corpus_is_refused() {
    let mut gain = made(GainKind::Context { follow: true }, GainScale::One);
    assert!(!gain.set_context(vec![0.0; 6]));
    assert_gains(&gain.worth(0), [0.9, 0.6]);
    // Before there is a context there is nothing to follow.
    gain.observe(0, &[9.0, WORDS], &[9.0, WORDS]);
    assert_gains(&gain.worth(0), [0.9, 0.6]);
}

#[test]
fn only_sentences_alone_are_not_wide() {
    assert!(!made(GainKind::Sentence, GainScale::Length).is_wide());
    assert!(made(GainKind::Context { follow: false }, GainScale::One).is_wide());
    let background = GainKind::Background { decay: 0.9, oracle: false };
    assert!(made(background, GainScale::One).is_wide());
}

#[test]
fn a_worth_over_a_base_stretches_differences_from_its_centre() {
    let worth = Worth::over(Arc::new(ERRORS), vec![6.0, WORDS], 0.5, 3.0);
    let wanted = [1.0, 4.0].map(|errors| 0.5 + 3.0 * (rate(6.0 + errors, 2.0 * WORDS) - 0.5));
    assert_gains(&worth, wanted);
    assert_eq!(worth.scale_alone(), None);
}

#[test]
fn a_restored_background_goes_on_as_if_nothing_had_happened() {
    let kind = GainKind::Background { decay: 0.5, oracle: false };
    let mut gain = made(kind, GainScale::Background);
    gain.observe(1, &[1.0, WORDS], &[7.0, WORDS]);
    let mut other = made(kind, GainScale::Background);
    assert_ne!(other.state(), gain.state());
    assert!(other.restore(&gain.state()));
    assert_eq!(other.state(), gain.state());
    assert_eq!(other.scale(0), gain.scale(0));
    assert_eq!(other.worth(0).gain(&ALONE[..2]), gain.worth(0).gain(&ALONE[..2]));
    let before = other.state();
    assert!(!other.restore(&[1.0; 2]));
    assert_eq!(other.state(), before);
}
