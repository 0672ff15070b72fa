//! `Selected`: the constraints of some lines, chosen in one process for a learner in another.

use std::sync::{Mutex, MutexGuard, PoisonError};

use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use tunesmith_solve::{Chosen, Kind, Note, Rows};

/// Constraints that were chosen under one weight vector. Pickles as plain arrays.
#[pyclass(frozen, module = "tunesmith._core")]
pub struct Selected {
    /// The lines, in their order.
    pub lines: Vec<u32>,
    /// How many features were known; those from there on are the `names`.
    pub known: usize,
    pub names: Vec<String>,
    chosen: Mutex<Chosen>,
}

impl Selected {
    pub fn new(lines: Vec<u32>, known: usize, names: Vec<String>, chosen: Chosen) -> Self {
        Selected { lines, known, names, chosen: Mutex::new(chosen) }
    }

    pub fn chosen(&self) -> MutexGuard<'_, Chosen> {
        self.chosen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

const SEEN: u8 = 1;
const PAIRED: u8 = 2;
const WHOLE: u8 = 4;

fn kind(number: u8) -> Option<Kind> {
    [Kind::Margin, Kind::Upper, Kind::Lower].into_iter().find(|&kind| kind as u8 == number)
}

/// The array of a name in a dictionary.
fn array<T: numpy::Element + Clone>(from: &Bound<'_, PyDict>, name: &str) -> PyResult<Vec<T>> {
    let found = from.get_item(name)?;
    let found = found.ok_or_else(|| PyValueError::new_err(format!("no {name}")))?;
    Ok(found.extract::<PyReadonlyArray1<'_, T>>()?.as_slice()?.to_vec())
}

#[pymethods]
impl Selected {
    /// What `arrays` gave.
    #[staticmethod]
    fn of(arrays: &Bound<'_, PyDict>) -> PyResult<Self> {
        let wrong = || PyValueError::new_err("arrays that do not belong together");
        let names = arrays.get_item("names")?.ok_or_else(wrong)?.extract()?;
        let [known, scored]: [u64; 2] = array(arrays, "known")?.try_into().map_err(|_| wrong())?;
        let lines: Vec<u32> = array(arrays, "lines")?;
        let (numbers, flags): (Vec<u32>, Vec<u8>) =
            (array(arrays, "notes")?, array(arrays, "flags")?);
        let seen: Vec<f64> = array(arrays, "seen")?;
        let stats: Vec<f64> = array(arrays, "stats")?;
        if flags.len() != numbers.len() || seen.len() != 4 * numbers.len() {
            return Err(wrong());
        }
        let notes: Vec<Note> = numbers
            .iter()
            .zip(&flags)
            .zip(seen.chunks_exact(4))
            .map(|((&line, flag), seen)| Note {
                line,
                seen: flag & SEEN != 0,
                paired: flag & PAIRED != 0,
                whole: flag & WHOLE != 0,
                model: seen[0],
                oracle: seen[1],
                prediction: seen[2],
                spread: seen[3],
            })
            .collect();
        let rounds: Vec<Bound<'_, PyDict>> =
            arrays.get_item("rounds")?.ok_or_else(wrong)?.extract()?;
        let rounds = rounds.iter().map(|each| {
            let kinds: Vec<u8> = array(each, "kinds")?;
            let kinds = kinds.into_iter().map(kind).collect::<Option<_>>();
            let numbers: Vec<f64> = array(each, "numbers")?;
            let margins: Vec<f64> = array(each, "margins")?;
            let starts: Vec<u64> = array(each, "starts")?;
            Rows::of_arrays(
                starts.into_iter().map(|start| start as usize).collect(),
                (array(each, "ids")?, array(each, "values")?),
                (array(each, "groups")?, kinds.ok_or_else(wrong)?),
                &numbers,
                margins,
            )
            .ok_or_else(wrong)
        });
        let rounds = rounds.collect::<PyResult<Vec<Rows>>>()?;
        let chosen = Chosen { rounds, notes, stats, scored: scored != 0 };
        Ok(Selected::new(lines, known as usize, names, chosen))
    }

    /// Everything as arrays by name.
    fn arrays<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let chosen = self.chosen();
        let dict = PyDict::new(py);
        dict.set_item("names", &self.names)?;
        let known = [self.known as u64, u64::from(chosen.scored)];
        dict.set_item("known", PyArray1::from_slice(py, &known))?;
        dict.set_item("lines", PyArray1::from_slice(py, &self.lines))?;
        let notes = &chosen.notes;
        let lines: Vec<u32> = notes.iter().map(|note| note.line).collect();
        let flag = |note: &Note| {
            u8::from(note.seen) * SEEN
                + u8::from(note.paired) * PAIRED
                + u8::from(note.whole) * WHOLE
        };
        let flags: Vec<u8> = notes.iter().map(flag).collect();
        let seen: Vec<f64> = notes
            .iter()
            .flat_map(|note| [note.model, note.oracle, note.prediction, note.spread])
            .collect();
        dict.set_item("notes", lines.into_pyarray(py))?;
        dict.set_item("flags", flags.into_pyarray(py))?;
        dict.set_item("seen", seen.into_pyarray(py))?;
        dict.set_item("stats", PyArray1::from_slice(py, &chosen.stats))?;
        let rounds = chosen.rounds.iter().map(|rows| {
            let dict = PyDict::new(py);
            let starts: Vec<u64> = rows.starts().into_iter().map(|start| start as u64).collect();
            let kinds: Vec<u8> = rows.kinds.iter().map(|&kind| kind as u8).collect();
            let numbers: Vec<f64> = (0..rows.len()).flat_map(|row| rows.numbers(row)).collect();
            dict.set_item("starts", starts.into_pyarray(py))?;
            dict.set_item("ids", PyArray1::from_slice(py, &rows.ids))?;
            dict.set_item("values", PyArray1::from_slice(py, &rows.values))?;
            dict.set_item("groups", PyArray1::from_slice(py, &rows.groups))?;
            dict.set_item("kinds", kinds.into_pyarray(py))?;
            dict.set_item("numbers", numbers.into_pyarray(py))?;
            dict.set_item("margins", PyArray1::from_slice(py, &rows.margins))?;
            Ok(dict)
        });
        dict.set_item("rounds", rounds.collect::<PyResult<Vec<_>>>()?)?;
        Ok(dict)
    }

    fn __reduce__<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<(Bound<'py, PyAny>, (Bound<'py, PyDict>,))> {
        Ok((py.get_type::<Selected>().getattr("of")?, (self.arrays(py)?,)))
    }

    /// Whether model scores were computed.
    #[getter]
    fn scored(&self) -> bool {
        self.chosen().scored
    }

    /// How many constraints there are.
    fn __len__(&self) -> usize {
        self.chosen().rounds.iter().map(Rows::len).sum()
    }
}
