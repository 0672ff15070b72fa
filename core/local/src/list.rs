//! One n-best list as bytes: features, scores, statistics and, packed, its texts.
//!
//! Features that all hypotheses have stand in columns, which learners use where they lie. The others
//! are sparse: places in the list's own table of features, which is short however many features the
//! model has.

use rustc_hash::FxHashMap;
use tunesmith_metric::Table;
use tunesmith_space::Pools;
use tunesmith_text::{Error, Names, Result};

use crate::layout::{array, doubles, floats, words};

/// Numbers at the start of a list.
const HEAD: usize = 7;
/// Texts of a list are not larger than this.
const MOST_TEXT: usize = 1 << 30;
const LEVEL: i32 = 3;

/// A list, whose bytes were checked.
#[derive(Debug, Clone, Copy)]
pub struct List<'m> {
    pub hypotheses: usize,
    /// Features of all hypotheses, ascending.
    common: &'m [u8],
    /// Features of some, ascending.
    others: &'m [u8],
    /// Where the columns begin in the bytes of the list.
    pub columns_at: usize,
    /// Values of the common features, column by column.
    columns: &'m [u8],
    /// The end of each hypothesis in `places` and `values`; nothing if there are no others.
    ends: &'m [u8],
    /// Places in `others`, ascending in each hypothesis.
    places: &'m [u8],
    values: &'m [u8],
    scores: &'m [u8],
    /// Distinct statistics.
    rows: &'m [u8],
    /// The row of each hypothesis.
    of: &'m [u8],
    /// The gain of each hypothesis, where there are statistics.
    gains: &'m [u8],
    text: &'m [u8],
    text_length: usize,
}

impl<'m> List<'m> {
    /// Reads a list with features below `features` and `width` statistics; nothing if its parts do
    /// not fit together. The content need not be looked at again if it `was_sound` before.
    pub fn read(
        bytes: &'m [u8],
        width: usize,
        features: usize,
        was_sound: bool,
    ) -> Option<List<'m>> {
        let (head, mut rest) = bytes.split_at_checked(4 * HEAD)?;
        let [hypotheses, common, others, nonzeros, rows, packed, text_length] =
            std::array::from_fn(|at| u32::from_le_bytes(array(&head[4 * at..4 * at + 4])) as usize);
        let mut take = |count: usize, size: usize| {
            let (part, behind) = rest.split_at_checked(count.checked_mul(size)?)?;
            rest = behind;
            Some(part)
        };
        let sparse = if others > 0 { hypotheses } else { 0 };
        let list = List {
            hypotheses,
            common: take(common, 4)?,
            others: take(others, 4)?,
            columns_at: 4 * (HEAD + common + others),
            columns: take(hypotheses.checked_mul(common)?, 4)?,
            ends: take(sparse, 4)?,
            places: take(nonzeros, 4)?,
            values: take(nonzeros, 4)?,
            scores: take(hypotheses, 8)?,
            rows: take(rows.checked_mul(width)?, 4)?,
            of: take(if width > 0 { hypotheses } else { 0 }, 4)?,
            gains: take(if width > 0 { hypotheses } else { 0 }, 8)?,
            text: take(packed, 1)?,
            text_length,
        };
        let fills = rest.is_empty() && text_length <= MOST_TEXT;
        (fills && (was_sound || list.is_sound(rows, features))).then_some(list)
    }

    /// Numbers are finite, ids ascend, nothing points outside.
    fn is_sound(&self, rows: usize, features: usize) -> bool {
        let ascending = |ids: &[u8]| words(ids).is_sorted_by(|one, other| one < other);
        let below = |ids: &[u8], end: usize| words(ids).all(|id| (id as usize) < end);
        let finite = |numbers: &[u8]| floats(numbers).all(f32::is_finite);
        let nonzeros = self.places.len() / 4;
        let sound = ascending(self.common)
            && ascending(self.others)
            && self.is_apart()
            && below(self.common, features)
            && below(self.others, features)
            && words(self.ends).is_sorted()
            && words(self.ends).last().map_or(0, |end| end as usize) == nonzeros
            && below(self.places, self.others.len() / 4)
            && below(self.of, rows)
            && [self.columns, self.values, self.rows].into_iter().all(finite)
            && doubles(self.gains).all(f64::is_finite)
            // A list need not have scores: those are not numbers.
            && doubles(self.scores).all(|score| !score.is_infinite());
        sound
            && (0..self.ends.len() / 4).all(|hypothesis| {
                self.sparse(hypothesis).map(|(place, _)| place).is_sorted_by(|a, b| a < b)
            })
    }

    /// Whether no feature is both one of all hypotheses and one of some; both must ascend.
    fn is_apart(&self) -> bool {
        let mut others = words(self.others).peekable();
        words(self.common).all(|id| {
            while others.next_if(|&other| other < id).is_some() {}
            others.peek() != Some(&id)
        })
    }

    pub fn common(&self) -> impl ExactSizeIterator<Item = u32> + 'm {
        words(self.common)
    }

    pub fn others(&self) -> impl ExactSizeIterator<Item = u32> + 'm {
        words(self.others)
    }

    /// The values of the common features, column by column.
    pub fn columns(&self) -> impl ExactSizeIterator<Item = f32> + Clone + 'm {
        floats(self.columns)
    }

    /// Bits of the columns, of the first 64, whose values are the same in all rows.
    pub fn constant(&self) -> u64 {
        let columns = self.columns.chunks_exact(4 * self.hypotheses.max(1)).take(64).enumerate();
        let same = |column: &[u8]| column.chunks_exact(4).all(|value| value == &column[..4]);
        columns.map(|(at, column)| u64::from(same(column)) << at).sum()
    }

    /// Whether there are features that not all hypotheses have.
    pub fn is_sparse(&self) -> bool {
        !self.others.is_empty()
    }

    /// Places in `others` and values of a hypothesis.
    pub fn sparse(&self, hypothesis: usize) -> impl Iterator<Item = (u32, f32)> + 'm {
        let end = |at: usize| crate::layout::word(self.ends, at).unwrap_or(0) as usize;
        let start = if hypothesis == 0 { 0 } else { end(hypothesis - 1) };
        let range = 4 * start..4 * end(hypothesis);
        words(&self.places[range.clone()]).zip(floats(&self.values[range]))
    }

    pub fn scores(&self) -> impl ExactSizeIterator<Item = f64> + 'm {
        doubles(self.scores)
    }

    pub fn rows(&self) -> impl ExactSizeIterator<Item = f64> + 'm {
        floats(self.rows).map(f64::from)
    }

    pub fn of(&self) -> impl ExactSizeIterator<Item = u32> + 'm {
        words(self.of)
    }

    /// The gains of the hypotheses; none if there are no statistics.
    pub fn gains(&self) -> impl ExactSizeIterator<Item = f64> + 'm {
        doubles(self.gains)
    }

    /// The texts of all hypotheses, each with a line break behind it; nothing if they are damaged.
    pub fn text(&self) -> Option<String> {
        let bytes = zstd::bulk::decompress(self.text, self.text_length).ok()?;
        let text = String::from_utf8(bytes).ok()?;
        (text.matches('\n').count() == self.hypotheses).then_some(text)
    }
}

/// Writes lists with the features of one file.
#[derive(Default)]
pub struct ListWriter {
    pub names: Names,
    rows: FxHashMap<Vec<u32>, u32>,
}

impl ListWriter {
    /// Adds the bytes of one list of `pools` to `out`, with statistics and gains of all hypotheses
    /// of `pools`. Refuses texts with line breaks and statistics that 32 bits do not hold.
    pub fn write(
        &mut self,
        pools: &Pools,
        worth: Option<(&Table, &[f64])>,
        sentence: usize,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        let list = pools.list(sentence);
        // The longest run of features that all hypotheses begin with.
        let mut common = match list.clone().next() {
            Some(first) => pools.features(first).0.len(),
            None => 0,
        };
        for hypothesis in list.clone().skip(1) {
            let (one, other) = (pools.features(list.start).0, pools.features(hypothesis).0);
            common =
                one[..common].iter().zip(other).take_while(|(one, other)| one == other).count();
        }
        let name =
            |names: &mut Names, id: u32| names.intern(pools.names.name(id).unwrap_or_default());
        let mut columns: Vec<(u32, usize)> = Vec::with_capacity(common);
        if common > 0 {
            let ids = &pools.features(list.start).0[..common];
            columns.extend(ids.iter().enumerate().map(|(at, &id)| (name(&mut self.names, id), at)));
            columns.sort_unstable();
        }
        let mut entries: Vec<Vec<(u32, f32)>> = Vec::new();
        let mut others: Vec<u32> = Vec::new();
        for hypothesis in list.clone() {
            let (ids, values) = pools.features(hypothesis);
            let mut row: Vec<(u32, f32)> = ids[common..]
                .iter()
                .zip(&values[common..])
                .map(|(&id, &value)| (name(&mut self.names, id), value))
                .collect();
            row.sort_unstable_by_key(|&(id, _)| id);
            others.extend(row.iter().map(|&(id, _)| id));
            entries.push(row);
        }
        others.sort_unstable();
        others.dedup();
        let nonzeros: usize = entries.iter().map(Vec::len).sum();
        let table = worth.map(|(table, _)| table);
        let (rows, of) = self.statistics(table, sentence, list.clone())?;
        let mut text = String::new();
        for hypothesis in list.clone() {
            if pools.text(hypothesis).contains('\n') {
                return Err(Error::new("a hypothesis with a line break")
                    .remedy("give each hypothesis as one line"));
            }
            text.push_str(pools.text(hypothesis));
            text.push('\n');
        }
        let packed = zstd::bulk::compress(text.as_bytes(), LEVEL)
            .map_err(|error| Error::new(format!("cannot pack texts: {error}")))?;
        let width = table.map_or(0, Table::width);
        let count = rows.len().checked_div(width).unwrap_or(0);
        let head = [list.len(), common, others.len(), nonzeros, count, packed.len(), text.len()];
        for number in head {
            let number = u32::try_from(number).map_err(|_| {
                Error::new("a list that is too long").remedy("keep fewer hypotheses: --k 100")
            })?;
            out.extend(number.to_le_bytes());
        }
        columns.iter().for_each(|&(id, _)| out.extend(id.to_le_bytes()));
        others.iter().for_each(|id| out.extend(id.to_le_bytes()));
        for &(_, at) in &columns {
            let column = list.clone().map(|hypothesis| pools.features(hypothesis).1[at]);
            out.extend(column.flat_map(f32::to_le_bytes));
        }
        if !others.is_empty() {
            let mut end = 0;
            for row in &entries {
                end += row.len() as u32;
                out.extend(end.to_le_bytes());
            }
        }
        let place = |id: u32| others.partition_point(|&other| other < id) as u32;
        entries.iter().flatten().for_each(|&(id, _)| out.extend(place(id).to_le_bytes()));
        entries.iter().flatten().for_each(|&(_, value)| out.extend(value.to_le_bytes()));
        list.clone().for_each(|hypothesis| out.extend(pools.score(hypothesis).to_le_bytes()));
        rows.iter().for_each(|value| out.extend(value.to_le_bytes()));
        of.iter().for_each(|row| out.extend(row.to_le_bytes()));
        if let Some((_, gains)) = worth {
            gains[list].iter().for_each(|gain| out.extend(gain.to_le_bytes()));
        }
        out.extend(packed);
        Ok(())
    }

    /// Distinct rows, and the row of each hypothesis.
    fn statistics(
        &mut self,
        table: Option<&Table>,
        sentence: usize,
        list: std::ops::Range<usize>,
    ) -> Result<(Vec<f32>, Vec<u32>)> {
        let (mut rows, mut of) = (Vec::new(), Vec::new());
        let Some(table) = table else { return Ok((rows, of)) };
        self.rows.clear();
        for hypothesis in list {
            let stats = table.stats(sentence, hypothesis);
            let narrow: Vec<f32> = stats.iter().map(|&value| value as f32).collect();
            if narrow.iter().zip(stats).any(|(&narrow, &value)| f64::from(narrow) != value) {
                return Err(Error::new("a statistic that 32 bits do not hold")
                    .remedy("use a metric that counts, such as bleu:tokenize=none"));
            }
            let next = self.rows.len() as u32;
            let key = narrow.iter().map(|value| value.to_bits()).collect();
            let row = *self.rows.entry(key).or_insert(next);
            if row == next {
                rows.extend(narrow);
            }
            of.push(row);
        }
        Ok((rows, of))
    }

    /// Adds the bytes of a list of another file, whose features have `names`.
    pub fn copy<'n>(
        &mut self,
        bytes: &[u8],
        list: &List<'_>,
        names: impl Fn(u32) -> &'n str,
        out: &mut Vec<u8>,
    ) {
        let start = out.len();
        out.extend_from_slice(bytes);
        let common: Vec<u32> = list.common().map(|id| self.names.intern(names(id))).collect();
        let others: Vec<u32> = list.others().map(|id| self.names.intern(names(id))).collect();
        let ids = common.iter().chain(&others);
        for (at, id) in ids.enumerate() {
            let place = start + 4 * (HEAD + at);
            out[place..place + 4].copy_from_slice(&id.to_le_bytes());
        }
        if !(common.is_sorted() && others.is_sorted()) {
            self.reorder(list, &common, &others, &mut out[start..]);
        }
    }

    /// Puts features in order whose ids came out of order in another file.
    fn reorder(&self, list: &List<'_>, common: &[u32], others: &[u32], out: &mut [u8]) {
        let order = |ids: &[u32]| {
            let mut order: Vec<usize> = (0..ids.len()).collect();
            order.sort_unstable_by_key(|&at| ids[at]);
            order
        };
        let (columns, rest) = (order(common), order(others));
        let mut place = 4 * HEAD;
        let mut put = |bytes: [u8; 4]| {
            out[place..place + 4].copy_from_slice(&bytes);
            place += 4;
        };
        columns.iter().for_each(|&at| put(common[at].to_le_bytes()));
        rest.iter().for_each(|&at| put(others[at].to_le_bytes()));
        let values: Vec<f32> = list.columns().collect();
        for &at in &columns {
            let column = &values[at * list.hypotheses..][..list.hypotheses];
            column.iter().for_each(|value| put(value.to_le_bytes()));
        }
        if others.is_empty() {
            return;
        }
        let mut new = vec![0; others.len()];
        rest.iter().enumerate().for_each(|(to, &from)| new[from] = to as u32);
        words(list.ends).for_each(|end| put(end.to_le_bytes()));
        let rows: Vec<Vec<(u32, f32)>> = (0..list.hypotheses)
            .map(|hypothesis| {
                let entries = list.sparse(hypothesis);
                let mut row: Vec<_> =
                    entries.map(|(place, value)| (new[place as usize], value)).collect();
                row.sort_unstable_by_key(|&(place, _)| place);
                row
            })
            .collect();
        rows.iter().flatten().for_each(|&(place, _)| put(place.to_le_bytes()));
        rows.iter().flatten().for_each(|&(_, value)| put(value.to_le_bytes()));
    }
}
