//! Several metrics of text as one: statistics side by side, scores and gains added up by weight.

use std::sync::Arc;

use crate::{Metric, Segment, TextMetric};

/// `score = Σ weight·score`, `gain = Σ |weight|·gain`: a part that is an error has a positive weight
/// where the whole is one. With (TER, 1/2) and (BLEU, -1/2) the score is (TER - BLEU)/2.
pub struct Blend {
    parts: Vec<(Arc<dyn TextMetric>, f64)>,
}

impl Blend {
    pub fn new(parts: Vec<(Arc<dyn TextMetric>, f64)>) -> Self {
        Blend { parts }
    }

    /// Each part with its own statistics.
    fn split<'a>(
        &'a self,
        stats: &'a [f64],
    ) -> impl Iterator<Item = (&'a dyn TextMetric, f64, &'a [f64])> {
        let mut start = 0;
        self.parts.iter().map(move |(part, weight)| {
            let own = &stats[start..start + part.width()];
            start += part.width();
            (part.as_ref(), *weight, own)
        })
    }
}

impl Metric for Blend {
    fn width(&self) -> usize {
        self.parts.iter().map(|(part, _)| part.width()).sum()
    }

    fn score(&self, stats: &[f64]) -> f64 {
        self.split(stats).map(|(part, weight, own)| weight * part.score(own)).sum()
    }

    fn gain(&self, stats: &[f64]) -> f64 {
        self.split(stats).map(|(part, weight, own)| weight.abs() * part.gain(own)).sum()
    }

    fn sentence_gain(&self, stats: &[f64]) -> f64 {
        self.split(stats).map(|(part, weight, own)| weight.abs() * part.sentence_gain(own)).sum()
    }
}

impl TextMetric for Blend {
    fn segment(&self, references: &[&str]) -> Box<dyn Segment> {
        let parts = self.parts.iter().map(|(part, _)| (part.segment(references), part.width()));
        Box::new(BlendSegment { parts: parts.collect() })
    }
}

struct BlendSegment {
    parts: Vec<(Box<dyn Segment>, usize)>,
}

impl Segment for BlendSegment {
    fn stats(&self, hypothesis: &str, out: &mut [f64]) {
        let mut start = 0;
        for (part, width) in &self.parts {
            part.stats(hypothesis, &mut out[start..start + width]);
            start += width;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Bleu, Ter, stats_of};

    #[test]
    fn half_of_ter_minus_bleu_and_its_gain() {
        let ter = || {
            let (normalized, no_punct, asian_support) = (false, false, false);
            Ter { normalized, no_punct, asian_support, case_sensitive: false }
        };
        let parts: Vec<(Arc<dyn TextMetric>, f64)> =
            vec![(Arc::new(ter()), 0.5), (Arc::new(Bleu::new(4)), -0.5)];
        let blend = Blend::new(parts);
        let (text, references) = ("the cat sat on a mat today", ["the cat sat on the mat"]);
        let row = stats_of(&blend, text, &references);
        let edits = stats_of(&ter(), text, &references);
        let grams = stats_of(&Bleu::new(4), text, &references);
        assert_eq!(row, [edits.clone(), grams.clone()].concat());
        let bleu = Bleu::new(4);
        assert_eq!(blend.score(&row), 0.5 * ter().score(&edits) - 0.5 * bleu.score(&grams));
        assert_eq!(blend.gain(&row), 0.5 * ter().gain(&edits) + 0.5 * bleu.gain(&grams));
        let alone = 0.5 * ter().sentence_gain(&edits) + 0.5 * bleu.sentence_gain(&grams);
        assert_eq!(blend.sentence_gain(&row), alone);
    }
}
