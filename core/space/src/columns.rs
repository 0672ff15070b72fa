//! Other ids for the features of many hypotheses.

/// Gives features other ids and puts those of each row in order, for all rows of a sentence at
/// once: they are read as columns, column after column, so that only the names are sorted.
#[derive(Debug, Default)]
pub struct Columns {
    /// How many entries each id has, and then where the next one goes.
    places: Vec<usize>,
    /// The ids that are there.
    present: Vec<u32>,
    /// The row and value of each entry.
    entries: Vec<(u32, f32)>,
    /// How many entries of each row are in order.
    ends: Vec<usize>,
}

impl Columns {
    /// `rows` are the places in `values` where rows begin, and where the last one ends, `heads`
    /// those in `ids`; rows with the same ids may share them.
    pub fn rename(
        &mut self,
        rows: &[usize],
        heads: &[usize],
        ids: &mut [u32],
        values: &mut [f32],
        new: impl Fn(u32) -> u32,
    ) {
        let widths = rows.windows(2).map(|row| row[1] - row[0]);
        for (&head, width) in heads.iter().zip(widths.clone()) {
            for &id in &ids[head..head + width] {
                let size = self.places.len().max(id as usize + 1);
                self.places.resize(size, 0);
                if self.places[id as usize] == 0 {
                    self.present.push(id);
                }
                self.places[id as usize] += 1;
            }
        }
        self.present.sort_unstable_by_key(|&id| new(id));
        let mut place = 0;
        for &id in &self.present {
            let count = std::mem::replace(&mut self.places[id as usize], place);
            place += count;
        }
        self.entries.clear();
        self.entries.resize(place, (0, 0.0));
        for (row, (&head, width)) in heads.iter().zip(widths).enumerate() {
            for at in 0..width {
                let place = &mut self.places[ids[head + at] as usize];
                self.entries[*place] = (row as u32, values[rows[row] + at]);
                *place += 1;
            }
        }
        self.ends.clear();
        self.ends.resize(heads.len(), 0);
        let mut start = 0;
        for id in self.present.drain(..) {
            let end = std::mem::take(&mut self.places[id as usize]);
            let new = new(id);
            for &(row, value) in &self.entries[start..end] {
                let (row, end) = (row as usize, &mut self.ends[row as usize]);
                (ids[heads[row] + *end], values[rows[row] + *end]) = (new, value);
                *end += 1;
            }
            start = end;
        }
    }
}
