//! Gains by the names that Python gives them.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use tunesmith_solve::{Corpus as CoreCorpus, Gain, GainKind, GainScale};

use crate::metric::Metric;

pub fn gain_kind(gain: &str, decay: f64, history: &str, follow: bool) -> PyResult<GainKind> {
    Ok(match gain {
        "sentence" => GainKind::Sentence,
        "background" => {
            let oracle = match history {
                "1best" => false,
                "oracle" => true,
                _ => return Err(PyValueError::new_err("history is 1best or oracle")),
            };
            GainKind::Background { decay, oracle }
        }
        "context" => GainKind::Context { follow },
        _ => return Err(PyValueError::new_err("gain is sentence, background or context")),
    })
}

pub fn gain_of(
    corpus: &dyn CoreCorpus,
    metric: &Bound<'_, Metric>,
    weights: &[f64],
    kind: GainKind,
    scale: &str,
    lengths: Option<Vec<f64>>,
) -> PyResult<Gain> {
    let scale = match scale {
        "one" => GainScale::One,
        "length" => GainScale::Length,
        "background" => GainScale::Background,
        _ => return Err(PyValueError::new_err("gain_scale is one, length or background")),
    };
    let mut first = Vec::new();
    let mut words = vec![0.0; corpus.lines()];
    for (line, words) in words.iter_mut().enumerate() {
        let last = corpus.of_line(line).last();
        if let Some((row, count)) = last.and_then(|space| corpus.first(space, weights)) {
            first.extend(row);
            *words = count as f64;
        }
    }
    let lengths = match lengths {
        Some(lengths) if lengths.len() == corpus.lines() => lengths,
        Some(_) => return Err(PyValueError::new_err("one length per line")),
        None => words,
    };
    Ok(Gain::new(metric.get().inner(), kind, scale, lengths, &first))
}
