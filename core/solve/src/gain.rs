//! A metric put in context for one sentence.

use std::sync::Arc;

use tunesmith_metric::Metric;

/// How a sentence's statistics become a gain.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum GainKind {
    /// The sentence alone, smoothed (BLEU+1).
    Sentence,
    /// `gain(B + b(e))`, B the statistics chosen so far, multiplied by `decay` after each
    /// sentence; with `oracle` the background follows y+ instead of the model's best.
    Background { decay: f64, oracle: bool },
    /// Epoch 1: as `Sentence`. Later: the previous epoch's corpus with this sentence exchanged,
    /// the difference multiplied by the number of sentences.
    Context,
}

/// What gains are multiplied by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GainScale {
    One,
    /// Length of the sentence.
    Length,
    /// Length of the sentence and of the decayed background.
    Background,
}

/// Gains of all sentences, with the state that goes from sentence to sentence.
#[derive(Clone)]
pub struct Gain {
    metric: Arc<dyn Metric>,
    kind: GainKind,
    scale: GainScale,
    lengths: Arc<[f64]>,
    background: Vec<f64>,
    background_length: f64,
    previous: Vec<f64>,
    current: Vec<f64>,
    corpus: Vec<f64>,
}

impl Gain {
    /// `first` holds the statistics of every sentence's first-ranked hypothesis, `lengths` one
    /// number per sentence. The background starts at the mean of `first`, so that no gain is
    /// taken against nothing.
    pub fn new(
        metric: Arc<dyn Metric>,
        kind: GainKind,
        scale: GainScale,
        lengths: Vec<f64>,
        first: &[f64],
    ) -> Self {
        let width = metric.width();
        let count = (first.len() / width).max(1) as f64;
        let mut background = vec![0.0; width];
        for row in first.chunks_exact(width) {
            background.iter_mut().zip(row).for_each(|(sum, value)| *sum += value / count);
        }
        let background_length = lengths.iter().sum::<f64>() / count;
        let context = if kind == GainKind::Context { lengths.len() * width } else { 0 };
        Gain {
            metric,
            kind,
            scale,
            lengths: lengths.into(),
            background,
            background_length,
            previous: Vec::new(),
            current: vec![0.0; context],
            corpus: Vec::new(),
        }
    }

    /// Gains of sentences alone, as they are.
    pub fn sentence(metric: Arc<dyn Metric>) -> Self {
        Gain::new(metric, GainKind::Sentence, GainScale::One, Vec::new(), &[])
    }

    /// Gains in the context of what was chosen for every sentence, a row of statistics each.
    pub fn among(metric: Arc<dyn Metric>, chosen: Vec<f64>) -> Self {
        let sentences = chosen.len() / metric.width();
        let lengths = vec![0.0; sentences];
        let mut gain = Gain::new(metric, GainKind::Context, GainScale::One, lengths, &[]);
        gain.set_previous(chosen);
        gain
    }

    /// How statistics of a sentence become gains now.
    pub fn worth(&self, sentence: usize) -> Worth {
        let width = self.metric.width();
        let base = match self.kind {
            GainKind::Background { .. } => Some((self.background.clone(), 0.0, 1.0)),
            GainKind::Context if !self.previous.is_empty() => {
                let own = &self.previous[sentence * width..(sentence + 1) * width];
                let base = self.corpus.iter().zip(own).map(|(corpus, own)| corpus - own).collect();
                Some((base, self.metric.gain(&self.corpus), self.lengths.len() as f64))
            }
            _ => None,
        };
        Worth { metric: Arc::clone(&self.metric), base, scale: self.scale(sentence) }
    }

    /// What the gains of a sentence are multiplied by.
    pub fn scale(&self, sentence: usize) -> f64 {
        match self.scale {
            GainScale::One => 1.0,
            GainScale::Length => self.lengths[sentence],
            GainScale::Background => self.background_length + self.lengths[sentence],
        }
    }

    /// Tells what was chosen for a sentence, so that the next gain can know.
    pub fn observe(&mut self, sentence: usize, model: &[f64], oracle: &[f64]) {
        match self.kind {
            GainKind::Background { decay, oracle: follow } => {
                let chosen = if follow { oracle } else { model };
                for (sum, value) in self.background.iter_mut().zip(chosen) {
                    *sum = decay * (*sum + value);
                }
                self.background_length = decay * (self.background_length + self.lengths[sentence]);
            }
            GainKind::Context => {
                let width = self.metric.width();
                self.current[sentence * width..(sentence + 1) * width].copy_from_slice(model);
            }
            GainKind::Sentence => {}
        }
    }

    /// Whether [`observe`](Self::observe) changes anything.
    pub fn observes(&self) -> bool {
        self.kind != GainKind::Sentence
    }

    /// The statistics observed so far, a row per sentence, for gains in context; else nothing.
    pub fn observed(&self) -> &[f64] {
        &self.current
    }

    /// Takes what several learners observed together; false if it belongs to another corpus.
    pub fn set_observed(&mut self, observed: &[f64]) -> bool {
        let fits = observed.len() == self.current.len();
        if fits {
            self.current.copy_from_slice(observed);
        }
        fits
    }

    /// Makes what was observed the context of the next epoch.
    pub fn end_epoch(&mut self) {
        if self.kind == GainKind::Context {
            self.set_previous(self.current.clone());
        }
    }

    fn set_previous(&mut self, previous: Vec<f64>) {
        let width = self.metric.width();
        self.corpus = vec![0.0; width];
        for row in previous.chunks_exact(width) {
            self.corpus.iter_mut().zip(row).for_each(|(sum, value)| *sum += value);
        }
        self.previous = previous;
    }

    /// Everything that changes between sentences, for a checkpoint between epochs.
    pub fn state(&self) -> Vec<f64> {
        let mut state = self.background.clone();
        state.push(self.background_length);
        state.extend_from_slice(&self.previous);
        state
    }

    /// Takes back what [`state`](Self::state) gave; false if it belongs to another corpus.
    pub fn restore(&mut self, state: &[f64]) -> bool {
        let width = self.metric.width();
        let rest = match state.len().checked_sub(width + 1) {
            Some(0) => Vec::new(),
            Some(rest) if rest == self.current.len() => state[width + 1..].to_vec(),
            _ => return false,
        };
        self.background.copy_from_slice(&state[..width]);
        self.background_length = state[width];
        if !rest.is_empty() {
            self.current.copy_from_slice(&rest);
            self.set_previous(rest);
        }
        true
    }
}

/// The gain of a sentence as it is at one moment.
#[derive(Clone)]
pub struct Worth {
    metric: Arc<dyn Metric>,
    /// What statistics are added to, a gain in the middle, and what differences to it are
    /// multiplied by; nothing for a sentence alone.
    base: Option<(Vec<f64>, f64, f64)>,
    scale: f64,
}

impl Worth {
    /// The smoothed gain of a sentence alone.
    pub fn alone(metric: Arc<dyn Metric>) -> Self {
        Worth { metric, base: None, scale: 1.0 }
    }

    /// `centre + count · (gain(base + statistics) - centre)`.
    pub fn over(metric: Arc<dyn Metric>, base: Vec<f64>, centre: f64, count: f64) -> Self {
        Worth { metric, base: Some((base, centre, count)), scale: 1.0 }
    }

    pub fn metric(&self) -> &dyn Metric {
        self.metric.as_ref()
    }

    /// What gains are multiplied by, if they are those of the sentence alone.
    pub fn scale_alone(&self) -> Option<f64> {
        self.base.is_none().then_some(self.scale)
    }

    /// Gains of rows of statistics.
    pub fn gains(&self, rows: &[f64], out: &mut Vec<f64>) {
        match &self.base {
            None => self.metric.sentence_gains(rows, out),
            Some((base, centre, count)) => {
                self.metric.gains(base, rows, out);
                if *count != 1.0 {
                    out.iter_mut().for_each(|gain| *gain = centre + count * (*gain - centre));
                }
            }
        }
        if self.scale != 1.0 {
            out.iter_mut().for_each(|gain| *gain *= self.scale);
        }
    }

    /// The gain of one row.
    pub fn gain(&self, row: &[f64]) -> f64 {
        let gain = match &self.base {
            None => self.metric.sentence_gain(row),
            Some((base, centre, count)) => {
                let sum: Vec<f64> = base.iter().zip(row).map(|(base, row)| base + row).collect();
                let gain = self.metric.gain(&sum);
                if *count == 1.0 { gain } else { centre + count * (gain - centre) }
            }
        };
        if self.scale == 1.0 { gain } else { gain * self.scale }
    }
}
