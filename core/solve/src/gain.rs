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
    /// As `Sentence` until there is a context; then a whole corpus with this sentence exchanged,
    /// the difference multiplied by the number of sentences. With `follow` the corpus gets the
    /// model's best of each sentence that was visited.
    Context { follow: bool },
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
    /// What all gains are multiplied by, to be of the size of scores.
    unit: f64,
    lengths: Arc<[f64]>,
    background: Vec<f64>,
    background_length: f64,
    /// A row of statistics for each sentence, and their sum.
    context: Vec<f64>,
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
        Gain {
            metric,
            kind,
            scale,
            unit: 1.0,
            lengths: lengths.into(),
            background,
            background_length,
            context: Vec::new(),
            corpus: Vec::new(),
        }
    }

    /// The same gains, multiplied by `unit`.
    pub fn in_units(mut self, unit: f64) -> Self {
        self.unit = unit;
        self
    }

    /// The metric behind the gains.
    pub fn metric(&self) -> Arc<dyn Metric> {
        Arc::clone(&self.metric)
    }

    /// Gains of sentences alone, as they are.
    pub fn sentence(metric: Arc<dyn Metric>) -> Self {
        Gain::new(metric, GainKind::Sentence, GainScale::One, Vec::new(), &[])
    }

    /// Gains in the context of what was chosen for every sentence, a row of statistics each.
    pub fn among(metric: Arc<dyn Metric>, chosen: Vec<f64>) -> Self {
        let sentences = chosen.len() / metric.width();
        let lengths = vec![0.0; sentences];
        let kind = GainKind::Context { follow: false };
        let mut gain = Gain::new(metric, kind, GainScale::One, lengths, &[]);
        gain.set_context(chosen);
        gain
    }

    /// How statistics of a sentence become gains now.
    pub fn worth(&self, sentence: usize) -> Worth {
        let width = self.metric.width();
        let base = match self.kind {
            GainKind::Background { .. } => Some((self.background.clone(), 0.0, 1.0)),
            GainKind::Context { .. } if !self.context.is_empty() => {
                let own = &self.context[sentence * width..(sentence + 1) * width];
                let base = self.corpus.iter().zip(own).map(|(corpus, own)| corpus - own).collect();
                Some((base, self.metric.gain(&self.corpus), self.lengths.len() as f64))
            }
            _ => None,
        };
        Worth { metric: Arc::clone(&self.metric), base, scale: self.scale(sentence) }
    }

    /// What the gains of a sentence are multiplied by.
    pub fn scale(&self, sentence: usize) -> f64 {
        let scale = match self.scale {
            GainScale::One => 1.0,
            GainScale::Length => self.lengths[sentence],
            GainScale::Background => self.background_length + self.lengths[sentence],
        };
        self.unit * scale
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
            GainKind::Context { follow: true } if !self.context.is_empty() => {
                let width = self.metric.width();
                let own = &mut self.context[sentence * width..(sentence + 1) * width];
                for ((sum, old), &new) in self.corpus.iter_mut().zip(own).zip(model) {
                    *sum += new - *old;
                    *old = new;
                }
            }
            GainKind::Context { .. } | GainKind::Sentence => {}
        }
    }

    /// Whether gains are more than those of sentences alone.
    pub fn is_wide(&self) -> bool {
        self.kind != GainKind::Sentence
    }

    /// Takes what was chosen for every sentence, a row of statistics each; false if these are of
    /// another corpus. Only gains in context care.
    pub fn set_context(&mut self, chosen: Vec<f64>) -> bool {
        let width = self.metric.width();
        if chosen.len() != self.lengths.len() * width {
            return false;
        }
        self.corpus = vec![0.0; width];
        for row in chosen.chunks_exact(width) {
            self.corpus.iter_mut().zip(row).for_each(|(sum, value)| *sum += value);
        }
        self.context = chosen;
        true
    }

    /// What is chosen for every sentence now, a row of statistics each; empty without a context.
    pub fn context(&self) -> &[f64] {
        &self.context
    }

    /// What goes from sentence to sentence, for a checkpoint between epochs.
    pub fn state(&self) -> Vec<f64> {
        let mut state = self.background.clone();
        state.push(self.background_length);
        state
    }

    /// Takes back what [`state`](Self::state) gave; false if it belongs to another metric.
    pub fn restore(&mut self, state: &[f64]) -> bool {
        let fits = state.len() == self.background.len() + 1;
        if let (true, Some((length, background))) = (fits, state.split_last()) {
            self.background.copy_from_slice(background);
            self.background_length = *length;
        }
        fits
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
