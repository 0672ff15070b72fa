//! Other ids for the features of many hypotheses.

/// Gives features other ids and puts those of each row in order, for all rows of a sentence at
/// once: they are read as columns, column after column, so that only the names are sorted.
#[derive(Default)]
pub struct Columns {
    /// How many entries each id has, and then where the next one goes.
    places: Vec<usize>,
    /// The ids that are there.
    present: Vec<u32>,
    /// The row and value of each entry.
    entries: Vec<(u32, f32)>,
    /// Where the next entry of each row goes.
    ends: Vec<usize>,
}

impl Columns {
    /// `rows` are the places in `ids` and `values` where rows begin, and where the last one ends.
    pub fn rename(
        &mut self,
        rows: &[usize],
        ids: &mut [u32],
        values: &mut [f32],
        new: impl Fn(u32) -> u32,
    ) {
        let Some((&first, &last)) = rows.first().zip(rows.last()) else { return };
        for &id in &ids[first..last] {
            let size = self.places.len().max(id as usize + 1);
            self.places.resize(size, 0);
            if self.places[id as usize] == 0 {
                self.present.push(id);
            }
            self.places[id as usize] += 1;
        }
        self.present.sort_unstable_by_key(|&id| new(id));
        let mut place = 0;
        for &id in &self.present {
            let count = std::mem::replace(&mut self.places[id as usize], place);
            place += count;
        }
        self.entries.clear();
        self.entries.resize(place, (0, 0.0));
        for (row, window) in rows.windows(2).enumerate() {
            for at in window[0]..window[1] {
                let place = &mut self.places[ids[at] as usize];
                self.entries[*place] = (row as u32, values[at]);
                *place += 1;
            }
        }
        self.ends.clear();
        self.ends.extend_from_slice(rows);
        let mut start = 0;
        for id in self.present.drain(..) {
            let end = std::mem::take(&mut self.places[id as usize]);
            let new = new(id);
            for &(row, value) in &self.entries[start..end] {
                let place = &mut self.ends[row as usize];
                (ids[*place], values[*place]) = (new, value);
                *place += 1;
            }
            start = end;
        }
    }
}
