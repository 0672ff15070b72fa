//! Word alignment by IBM model 2 with one parameter for its diagonal (Dyer, Chahuneau & Smith 2013,
//! "A simple, fast, and effective reparameterization of IBM model 2"), both directions at once.
//!
//! A word stands for NULL with probability p0, else for the word at place i with a probability that
//! falls with its distance from the diagonal, exp(−tension · |i/m − j/n|); translation
//! probabilities have a Dirichlet prior. Expectation-maximisation, then the best links.

mod diagonal;
mod pairs;
mod table;
mod text;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::AtomicU64;

use rayon::prelude::*;
use tunesmith_text::{AtomicWriter, Result, Watch};

use crate::{Link, format};
use diagonal::{places, ratio, stretch, tighten};
use pairs::Pairs;
use table::{Null, Table, add};
use text::Text;

/// Sentence pairs that a thread takes at a time; sums are made in their order.
const CHUNK: usize = 256;

/// How to align.
#[derive(Debug, Clone)]
pub struct FastAlign {
    /// Passes over the text; the last one finds the links.
    pub iterations: usize,
    /// How often every word pair is taken to have been seen beforehand.
    pub alpha: f64,
    /// The probability that a word stands for nothing.
    pub null: f64,
    /// Where the tension of the diagonal starts; it is fitted from the second pass on.
    pub tension: f64,
    /// Sentence pairs with longer sides are left without links.
    pub max_words: usize,
}

impl Default for FastAlign {
    fn default() -> Self {
        FastAlign { iterations: 5, alpha: 0.01, null: 0.08, tension: 4.0, max_words: 1000 }
    }
}

/// What was aligned.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Outcome {
    pub pairs: u64,
    /// Pairs left without links: an empty side, too many words.
    pub empty: u64,
    pub long: u64,
    /// The tension of both directions.
    pub tensions: [f64; 2],
}

/// Aligns two files of tokenised sentences. `forward` gets the best source word of each target
/// word, `backward` the best target word of each source word, both in Pharaoh format with the
/// source position first. The result does not depend on the number of threads.
pub fn fast_align(
    (source, target): (&Path, &Path),
    (forward, backward): (&Path, &Path),
    options: &FastAlign,
    watch: &Watch,
) -> Result<Outcome> {
    let text = Text::read(source, target, options.max_words, watch)?;
    let pairs = Pairs::new(&text, watch)?;
    let mut model = Model {
        table: Table::new(&pairs, text.names()),
        tensions: [options.tension; 2],
        null: options.null,
        sizes: sizes(&text),
    };
    let passes = options.iterations.max(1) * text.len();
    watch.enter("passes over the text", passes as u64);
    for pass in 1..options.iterations {
        let distances = model.expect(&text, &pairs, watch)?;
        model.table.normalise(&pairs, options.alpha);
        if pass > 1 {
            model.tighten(distances);
        }
    }
    let mut outs = [AtomicWriter::create(forward)?, AtomicWriter::create(backward)?];
    model.write(&text, &pairs, &mut outs, watch)?;
    outs.into_iter().try_for_each(AtomicWriter::finish)?;
    let (pairs, tensions) = (text.len() as u64, model.tensions);
    Ok(Outcome { pairs, empty: text.empty, long: text.long, tensions })
}

/// How many sentence pairs have so many source and target words.
fn sizes(text: &Text) -> Vec<(usize, usize, u64)> {
    let mut sizes = BTreeMap::new();
    for at in 0..text.len() {
        let (source, target) = text.pair(at);
        *sizes.entry((source.len(), target.len())).or_insert(0) += 1;
    }
    sizes.into_iter().map(|((source, target), count)| (source, target, count)).collect()
}

struct Model {
    table: Table,
    tensions: [f64; 2],
    null: f64,
    sizes: Vec<(usize, usize, u64)>,
}

impl Model {
    /// One pass that counts; gives the sum of distances from the diagonal for both directions.
    fn expect(&self, text: &Text, pairs: &Pairs, watch: &Watch) -> Result<[f64; 2]> {
        let chunks: Vec<[f64; 2]> = (0..text.len().div_ceil(CHUNK))
            .into_par_iter()
            .map(|chunk| {
                let mut grid = Grid::default();
                let mut sums = [0.0; 2];
                let range = chunk * CHUNK..text.len().min((chunk + 1) * CHUNK);
                for at in range.clone() {
                    grid.fill(self, text, pairs, at);
                    grid.count(self, text, pairs, at, &mut sums);
                }
                watch.step(range.len() as u64)?;
                Ok(sums)
            })
            .collect::<Result<_>>()?;
        Ok(chunks.iter().fold([0.0; 2], |sum, more| [sum[0] + more[0], sum[1] + more[1]]))
    }

    fn tighten(&mut self, distances: [f64; 2]) {
        let sizes = &self.sizes;
        let flipped: Vec<_> = sizes.iter().map(|&(m, n, count)| (n, m, count)).collect();
        let fit = |direction: usize, sizes: &[(usize, usize, u64)]| {
            let words: f64 = sizes.iter().map(|&(words, _, n)| words as f64 * n as f64).sum();
            tighten(self.tensions[direction], distances[direction] / words.max(1.0), sizes)
        };
        let (forward, backward) = rayon::join(|| fit(0, &flipped), || fit(1, sizes));
        self.tensions = [forward, backward];
    }

    /// The last pass: the best links of both directions.
    fn write(
        &self,
        text: &Text,
        pairs: &Pairs,
        outs: &mut [AtomicWriter; 2],
        watch: &Watch,
    ) -> Result<()> {
        // Some chunks at a time, so that lines do not pile up.
        let chunks: Vec<usize> = (0..text.len()).step_by(CHUNK).collect();
        for some in chunks.chunks(64) {
            let lines: Vec<[Vec<u8>; 2]> = some
                .par_iter()
                .map(|&start| {
                    let mut grid = Grid::default();
                    let mut lines = [Vec::new(), Vec::new()];
                    let mut links = [Vec::new(), Vec::new()];
                    let range = start..text.len().min(start + CHUNK);
                    for at in range.clone() {
                        grid.fill(self, text, pairs, at);
                        grid.best(&mut links);
                        for (line, links) in lines.iter_mut().zip(&links) {
                            format(links, line);
                            line.push(b'\n');
                        }
                    }
                    watch.step(range.len() as u64)?;
                    Ok(lines)
                })
                .collect::<Result<_>>()?;
            for chunk in &lines {
                for (out, lines) in outs.iter_mut().zip(chunk) {
                    out.write_all(lines)?;
                }
            }
        }
        Ok(())
    }
}

/// The joint probabilities of one sentence pair for both directions, source by target, with those
/// of NULL and the sums. Kept between sentences for its memory.
#[derive(Default)]
struct Grid {
    forward: Vec<f64>,
    backward: Vec<f64>,
    /// Of each target word, of each source word.
    nulls: [Vec<f64>; 2],
    sums: [Vec<f64>; 2],
}

impl Grid {
    fn fill(&mut self, model: &Model, text: &Text, pairs: &Pairs, at: usize) {
        let (source, target) = text.pair(at);
        let (m, n) = (source.len(), target.len());
        let [to_target, to_source] = model.tensions;
        let (forward, backward) = (&mut self.forward, &mut self.backward);
        forward.resize(m * n, 0.0);
        backward.resize(m * n, 0.0);
        let null = |null: &Null, words: &[u32], out: &mut Vec<f64>| {
            out.clear();
            let given = |&word: &u32| null.probabilities[word as usize] * model.null;
            out.extend(words.iter().map(given));
        };
        null(&model.table.nulls[0], target, &mut self.nulls[0]);
        null(&model.table.nulls[1], source, &mut self.nulls[1]);
        let words = 1.0 - model.null;
        // First what places say, then what words say; sums are of places, then of both.
        let [targets, sources] = &mut self.sums;
        targets.clear();
        let step = ratio(m.max(1), to_target);
        for j in 0..n {
            let sum = places(m, j, n, to_target, step, |i, value| forward[i * n + j] = value);
            targets.push(words / sum);
        }
        sources.clear();
        let step = ratio(n.max(1), to_source);
        for i in 0..m {
            let row = &mut backward[i * n..(i + 1) * n];
            let sum = places(n, i, m, to_source, step, |j, value| row[j] = value);
            sources.push(words / sum);
        }
        for (i, &word) in source.iter().enumerate() {
            let row = i * n..(i + 1) * n;
            let scale = sources[i];
            let mut sum = self.nulls[1][i];
            for (((pair, one), other), scaled) in pairs
                .row(at, i, word, n)
                .zip(&mut forward[row.clone()])
                .zip(&mut backward[row])
                .zip(&*targets)
            {
                let [given_source, given_target] = model.table.probabilities[pair];
                *one *= f64::from(given_source) * scaled;
                *other *= f64::from(given_target) * scale;
                sum += *other;
            }
            sources[i] = sum;
        }
        targets.copy_from_slice(&self.nulls[0]);
        for row in forward.chunks_exact(n.max(1)) {
            targets.iter_mut().zip(row).for_each(|(sum, value)| *sum += value);
        }
    }

    /// Adds the shares of all links to the counts, and their distances to `sums`.
    fn count(&mut self, model: &Model, text: &Text, pairs: &Pairs, at: usize, sums: &mut [f64; 2]) {
        let (source, target) = text.pair(at);
        let (m, n) = (source.len(), target.len());
        for (direction, words) in [target, source].into_iter().enumerate() {
            let counts: &[AtomicU64] = &model.table.nulls[direction].counts;
            let shares = self.nulls[direction].iter().zip(&mut self.sums[direction]);
            for (&word, (null, sum)) in words.iter().zip(shares) {
                *sum = 1.0 / *sum;
                add(&counts[word as usize], null * *sum);
            }
        }
        for (i, &word) in source.iter().enumerate() {
            let row = i * n..(i + 1) * n;
            let scale = self.sums[1][i];
            let values = self.forward[row.clone()].iter().zip(&self.backward[row]);
            for ((j, pair), ((one, other), scaled)) in
                pairs.row(at, i, word, n).enumerate().zip(values.zip(&self.sums[0]))
            {
                let shares = [one * scaled, other * scale];
                let away = [stretch(i, m, j, n), stretch(j, n, i, m)];
                let counts = &model.table.counts[pair];
                for direction in 0..2 {
                    add(&counts[direction], shares[direction]);
                    sums[direction] += shares[direction] * away[direction];
                }
            }
        }
    }

    /// The likeliest links; NULL, then the first word wins where several are alike.
    fn best(&self, links: &mut [Vec<Link>; 2]) {
        let (targets, sources) = (self.nulls[0].len(), self.nulls[1].len());
        links.iter_mut().for_each(Vec::clear);
        for j in 0..targets {
            let column = (0..sources).map(|i| self.forward[i * targets + j]);
            if let Some(i) = likeliest(self.nulls[0][j], column) {
                links[0].push((i, j as u16));
            }
        }
        for i in 0..sources {
            let row = self.backward[i * targets..(i + 1) * targets].iter().copied();
            if let Some(j) = likeliest(self.nulls[1][i], row) {
                links[1].push((i as u16, j));
            }
        }
    }
}

fn likeliest(null: f64, values: impl Iterator<Item = f64>) -> Option<u16> {
    let mut best = (null, None);
    for (at, value) in values.enumerate() {
        if value > best.0 {
            best = (value, Some(at as u16));
        }
    }
    best.1
}

#[cfg(test)]
mod tests {
    use std::fs;

    use proptest::prelude::*;

    use super::*;

    const SOURCE: &str = "das haus ist klein\ndas buch ist alt\nein haus\nein altes buch\n";
    const TARGET: &str = "the house is small\nthe book is old\na house\nan old book\n";

    fn aligned(source: &[u8], target: &[u8], threads: usize) -> Result<(Outcome, [String; 2])> {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        fs::write(path("s"), source).unwrap();
        fs::write(path("t"), target).unwrap();
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let options = FastAlign { max_words: 40, ..FastAlign::default() };
        let outcome = pool.install(|| {
            let outs = (&*path("f"), &*path("b"));
            fast_align((&path("s"), &path("t")), outs, &options, &Watch::default())
        })?;
        Ok((outcome, ["f", "b"].map(|name| fs::read_to_string(path(name)).unwrap())))
    }

    #[test]
    fn words_that_go_together_are_linked() {
        let many = |text: &str| text.repeat(20).into_bytes();
        let (outcome, links) = aligned(&many(SOURCE), &many(TARGET), 2).unwrap();
        assert_eq!((outcome.pairs, outcome.empty, outcome.long), (80, 0, 0));
        for side in &links {
            assert!(side.starts_with("0-0 1-1 2-2 3-3\n0-0 1-1 2-2 3-3\n0-0 1-1\n"), "{side}");
        }
        assert_eq!(links, aligned(&many(SOURCE), &many(TARGET), 1).unwrap().1);
    }

    #[test]
    fn pairs_that_cannot_be_aligned_keep_their_line() {
        let long = vec!["wort"; 41].join(" ");
        let source = format!("haus\n\n{long}\nhaus\n \t\n");
        let target = "house\nhouse\nhouse\n\n\n";
        let (outcome, links) = aligned(source.as_bytes(), target.as_bytes(), 1).unwrap();
        assert_eq!((outcome.pairs, outcome.empty, outcome.long), (5, 3, 1));
        assert_eq!(links, ["0-0\n\n\n\n\n", "0-0\n\n\n\n\n"]);
        assert_eq!(aligned(b"", b"", 1).unwrap().1, ["", ""]);
    }

    #[test]
    fn bad_text_is_named() {
        let error = aligned(b"a\nb\n", b"a\n", 1).unwrap_err();
        assert!(error.message.contains("has 1 lines, but"), "{error}");
        assert!(error.file.unwrap().ends_with('t') && error.remedy.is_some());
        let error = aligned(b"a\nb\n", b"a\n\xff\n", 1).unwrap_err();
        assert_eq!(error.line, Some(2));
        assert!(error.message.contains("UTF-8") && error.remedy.is_some());
    }

    #[test]
    fn a_stopped_alignment_ends_and_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        fs::write(path("s"), SOURCE).unwrap();
        fs::write(path("t"), TARGET).unwrap();
        let watch = Watch::default();
        watch.stop();
        let outs = (&*path("f"), &*path("b"));
        let options = FastAlign::default();
        assert!(fast_align((&path("s"), &path("t")), outs, &options, &watch).is_err());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]
        #[test]
        fn threads_change_nothing(
            pairs in proptest::collection::vec(("[a-e ]{0,12}", "[v-z ]{0,12}"), 1..900),
        ) {
            let side = |lines: Vec<&str>| lines.join("\n").into_bytes();
            let source = side(pairs.iter().map(|pair| &pair.0[..]).collect());
            let target = side(pairs.iter().map(|pair| &pair.1[..]).collect());
            prop_assume!(!pairs.last().is_some_and(|p| p.0.is_empty() || p.1.is_empty()));
            let one = aligned(&source, &target, 1).unwrap();
            let three = aligned(&source, &target, 3).unwrap();
            prop_assert_eq!(&one, &three);
            prop_assert_eq!(one.1[0].lines().count(), pairs.len());
        }
    }
}
