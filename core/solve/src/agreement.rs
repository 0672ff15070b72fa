//! How far each hypothesis of a list agrees with the others: features that need no weights.
//!
//! BLEU+1 over words, or chrF over characters, against the mean n-gram counts and the mean length of
//! the other hypotheses. Like consensus decoding with uniform probabilities, but for every
//! hypothesis, and linear in their number; comparing all pairs would be quadratic.

use rayon::prelude::*;
use rustc_hash::FxHashMap;
use tunesmith_metric::{Bleu, Chrf, Metric};
use tunesmith_space::{ORDER, Pools, counted};

/// The longest character n-grams of chrF.
const LETTERS: usize = 6;

/// What hypotheses are compared by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Likeness {
    /// BLEU+1 over what white space separates.
    Words,
    /// chrF, without white space.
    Characters,
}

/// The agreement of each hypothesis with the others of its list, in [0, 1]; 0 where there are none.
pub fn agreement(pools: &Pools, likeness: Likeness) -> Vec<f64> {
    let lists = (0..pools.sentences()).into_par_iter().map(|sentence| {
        let texts: Vec<&str> = pools.list(sentence).map(|place| pools.text(place)).collect();
        let classes = pools.classes(sentence);
        match likeness {
            Likeness::Words => worths(&overlaps::<ORDER>(&words(&texts), classes), bleu),
            Likeness::Characters => worths(&overlaps::<LETTERS>(&letters(&texts), classes), chrf),
        }
    });
    lists.flatten_iter().collect()
}

fn worths<const N: usize>(
    overlaps: &[Option<Overlap<N>>],
    worth: impl Fn(&Overlap<N>) -> f64,
) -> Vec<f64> {
    overlaps.iter().map(|overlap| overlap.as_ref().map_or(0.0, &worth)).collect()
}

fn words(texts: &[&str]) -> Vec<Vec<u32>> {
    let mut numbers: FxHashMap<&str, u32> = FxHashMap::default();
    let mut number = |word| {
        let next = numbers.len() as u32 + 1;
        *numbers.entry(word).or_insert(next)
    };
    texts.iter().map(|text| text.split_whitespace().map(&mut number).collect()).collect()
}

fn letters(texts: &[&str]) -> Vec<Vec<u32>> {
    let number = |letter: char| u32::from(letter) + 1;
    let of = |text: &&str| text.chars().filter(|c| !c.is_whitespace()).map(number).collect();
    texts.iter().map(of).collect()
}

/// The n-grams of a hypothesis beside the mean of the others, by order.
#[derive(Clone, Copy)]
struct Overlap<const N: usize> {
    lengths: [f64; 2],
    own: [f64; N],
    others: [f64; N],
    matches: [f64; N],
}

/// The overlap of each hypothesis with the others, nothing where there are none. `classes` are the
/// places of the first hypotheses with the same text.
fn overlaps<const N: usize>(tokens: &[Vec<u32>], classes: &[u32]) -> Vec<Option<Overlap<N>>> {
    if tokens.len() < 2 {
        return vec![None; tokens.len()];
    }
    let others = (tokens.len() - 1) as f64;
    let mut copies = vec![0_u32; tokens.len()];
    classes.iter().for_each(|&class| copies[class as usize] += 1);
    let mut all: FxHashMap<[u32; N], u32> = FxHashMap::default();
    let (mut length, mut totals) = (0.0, [0.0; N]);
    let mut counts = Vec::with_capacity(tokens.len());
    for (tokens, &copies) in tokens.iter().zip(&copies) {
        let grams = if copies == 0 { Vec::new() } else { counted::<N>(tokens) };
        for &(gram, count) in &grams {
            *all.entry(gram).or_default() += copies * count;
        }
        length += f64::from(copies) * tokens.len() as f64;
        for (total, own) in totals.iter_mut().zip(sizes::<N>(tokens.len())) {
            *total += f64::from(copies) * own;
        }
        counts.push(grams);
    }
    let mut found: Vec<Option<Overlap<N>>> = Vec::with_capacity(tokens.len());
    for (place, tokens) in tokens.iter().enumerate() {
        let class = classes[place] as usize;
        if class < place {
            found.push(found[class]);
            continue;
        }
        let own = sizes::<N>(tokens.len());
        let mut matches = [0.0; N];
        for &(gram, count) in &counts[place] {
            let order = gram.iter().filter(|&&token| token > 0).count();
            let mean = f64::from(all[&gram] - count) / others;
            matches[order - 1] += mean.min(f64::from(count));
        }
        let size = tokens.len() as f64;
        found.push(Some(Overlap {
            lengths: [size, (length - size) / others],
            own,
            others: std::array::from_fn(|at| (totals[at] - own[at]) / others),
            matches,
        }));
    }
    found
}

/// How many n-grams of each order a sequence has.
fn sizes<const N: usize>(length: usize) -> [f64; N] {
    std::array::from_fn(|shorter| length.saturating_sub(shorter) as f64)
}

fn bleu(overlap: &Overlap<ORDER>) -> f64 {
    let row = [&overlap.lengths[..], &overlap.matches, &overlap.own].concat();
    Bleu::new(ORDER).sentence_gain(&row)
}

fn chrf(overlap: &Overlap<LETTERS>) -> f64 {
    let cells = |at: usize| [overlap.own[at], overlap.others[at], overlap.matches[at]];
    let row: Vec<f64> = (0..LETTERS).flat_map(cells).collect();
    Chrf::default().gain(&row)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use tunesmith_metric::TextMetric;
    use tunesmith_space::{Hypothesis, PoolsBuilder};

    use super::*;

    fn lists(texts: &[Vec<String>]) -> Pools {
        let mut builder = PoolsBuilder::default();
        for list in texts {
            builder.sentence(None);
            for text in list {
                builder.push(Hypothesis { text, ..Hypothesis::default() });
            }
        }
        builder.finish()
    }

    fn stats_of(metric: &dyn TextMetric, text: &str, reference: &str) -> Vec<f64> {
        let mut row = vec![0.0; metric.width()];
        metric.segment(&[reference]).stats(text, &mut row);
        row
    }

    #[test]
    fn a_single_hypothesis_agrees_with_nobody() {
        let pools = lists(&[vec!["a b".into()], vec![], vec!["a b".into(), "a b".into()]]);
        assert_eq!(agreement(&pools, Likeness::Words), [0.0, 1.0, 1.0]);
        assert_eq!(agreement(&pools, Likeness::Characters)[0], 0.0);
    }

    proptest! {
        #[test]
        fn with_two_hypotheses_it_is_the_metric(one in "[ab c]{0,12}", other in "[ab c]{0,12}") {
            let pools = lists(&[vec![one.clone(), other.clone()]]);
            let bleu = Bleu::new(ORDER);
            let words = [
                bleu.sentence_gain(&stats_of(&bleu, &one, &other)),
                bleu.sentence_gain(&stats_of(&bleu, &other, &one)),
            ];
            for (found, wanted) in agreement(&pools, Likeness::Words).iter().zip(words) {
                prop_assert!((found - wanted).abs() < 1e-12, "{found} {wanted}");
            }
            let chrf = Chrf::default();
            let letters = [
                chrf.gain(&stats_of(&chrf, &one, &other)),
                chrf.gain(&stats_of(&chrf, &other, &one)),
            ];
            for (found, wanted) in agreement(&pools, Likeness::Characters).iter().zip(letters) {
                prop_assert!((found - wanted).abs() < 1e-12, "{found} {wanted}");
            }
        }

        #[test]
        fn copies_count_as_often_as_they_are_there(
            texts in prop::collection::vec("[abc ]{0,8}", 1..5), copies in 1..3_usize
        ) {
            // The same texts, told apart by white space, which is no part of them.
            let spread: Vec<String> = texts
                .iter()
                .enumerate()
                .flat_map(|(at, text)| (0..copies).map(move |n| format!("{text}{}", " ".repeat(5 * at + n))))
                .collect();
            let same: Vec<String> =
                texts.iter().flat_map(|text| vec![text.clone(); copies]).collect();
            for likeness in [Likeness::Words, Likeness::Characters] {
                prop_assert_eq!(
                    agreement(&lists(std::slice::from_ref(&spread)), likeness),
                    agreement(&lists(std::slice::from_ref(&same)), likeness)
                );
            }
        }
    }
}
