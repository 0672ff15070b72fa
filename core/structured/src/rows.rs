//! What two derivations differ in.

use tunesmith_solve::{Model, Rows, Separate};

use crate::{ALONE, Fault, Features, Task};

/// `f(gold) - f(rival)` by ascending feature id. Features that are new get ids.
pub fn difference<T: Task>(
    task: &T,
    input: &T::Input,
    gold: &[(T::State, u32)],
    rival: &[(T::State, u32)],
    features: &mut Features,
) -> Result<Vec<(u32, f64)>, Fault> {
    let common = gold.iter().zip(rival).take_while(|(one, other)| one == other).count();
    let mut entries: Vec<((u32, u32), f64)> = Vec::new();
    let mut contexts = features.grow();
    let mut found = Vec::new();
    for (path, sign) in [(&gold[common..], 1.0), (&rival[common..], -1.0)] {
        for (state, action) in path {
            task.contexts(input, state, &mut contexts)?;
            contexts.take(&mut found)?;
            entries.extend(found.iter().map(|&(id, value)| ((id, *action), sign * value)));
            if task.has_features() {
                task.features(input, state, *action, &mut contexts)?;
                contexts.take(&mut found)?;
                entries.extend(found.iter().map(|&(id, value)| ((id, ALONE), sign * value)));
            }
        }
    }
    entries.sort_by_key(|&(key, _)| key);
    let mut row: Vec<(u32, f64)> = Vec::new();
    for same in entries.chunk_by(|(one, _), (other, _)| one == other) {
        let sum: f64 = same.iter().map(|(_, value)| value).sum();
        if sum != 0.0 {
            let (context, action) = same[0].0;
            row.push((features.id(context, action), sum));
        }
    }
    row.sort_unstable_by_key(|&(id, _)| id);
    Ok(row)
}

/// Rows that were selected already.
pub struct Given(pub Rows);

impl Separate for Given {
    fn rounds(&self) -> usize {
        1
    }

    fn separate(&mut self, _model: &Model, _round: usize, rows: &mut Rows) -> Result<(), Fault> {
        rows.clone_from(&self.0);
        Ok(())
    }
}
