//! Lists of some examples in one space, without a look at features that they do not have.

use tunesmith_metric::Table;
use tunesmith_space::{Block, Pools, Ready, Sparse, Texts};
use tunesmith_text::{Error, Names, Result};

use crate::examples::{Place, State};
use crate::list::List;

/// Which features occur, and the number of each among those that do.
struct Occurring {
    bits: Vec<u64>,
    /// How many occur before each 64.
    before: Vec<u32>,
}

impl Occurring {
    fn of(ids: impl Iterator<Item = u32>, features: usize) -> Occurring {
        let mut bits = vec![0u64; features.div_ceil(64)];
        ids.for_each(|id| bits[id as usize / 64] |= 1 << (id % 64));
        let sum = |sum: &mut u32, bits: &u64| {
            let before = *sum;
            *sum += bits.count_ones();
            Some(before)
        };
        let before = bits.iter().scan(0, sum).collect();
        Occurring { bits, before }
    }

    /// The number of a feature that occurs; ascends with its id.
    fn number(&self, id: u32) -> u32 {
        let below = self.bits[id as usize / 64] & ((1 << (id % 64)) - 1);
        self.before[id as usize / 64] + below.count_ones()
    }

    fn names(&self, features: &Names) -> Names {
        let mut names = Names::default();
        for (at, &bits) in self.bits.iter().enumerate() {
            let mut rest = bits;
            while rest != 0 {
                let id = 64 * at as u32 + rest.trailing_zeros();
                names.intern(features.name(id).unwrap_or_default());
                rest &= rest - 1;
            }
        }
        names
    }
}

/// The lists at these places, and which features they have. Refuses damaged ones.
fn read<'s>(state: &'s State, places: &[Place]) -> Result<(Vec<List<'s>>, Occurring)> {
    let lists = places
        .iter()
        .map(|&place| Ok(state.held(place).segment.list(place.at as usize)?.0))
        .collect::<Result<Vec<List<'_>>>>()?;
    let ids = places.iter().zip(&lists).flat_map(|(&place, list)| {
        let features = &state.held(place).features;
        list.common().chain(list.others()).map(|id| features[id as usize])
    });
    let occurring = Occurring::of(ids, state.features.len());
    Ok((lists, occurring))
}

/// The lists at these places where they lie, and the names of their features. Columns that are the
/// same in all rows are left out: they teach nothing. Refuses damaged lists, and those without
/// statistics.
pub fn blocks(state: &State, places: &[Place]) -> Result<(Names, Vec<Block>)> {
    let (lists, occurring) = read(state, places)?;
    let mut blocks = Vec::with_capacity(lists.len());
    for (&place, list) in places.iter().zip(&lists) {
        let held = state.held(place);
        let number = |id: u32| occurring.number(held.features[id as usize]);
        let gains: Vec<f64> = list.gains().collect();
        if gains.len() != list.hypotheses {
            return Err(Error::new("the lists have no statistics")
                .at(held.segment.path().display().to_string(), None)
                .remedy("build the index again"));
        }
        let mut sparse = Sparse::default();
        if list.is_sparse() {
            let others: Vec<u32> = list.others().map(number).collect();
            for hypothesis in 0..list.hypotheses {
                for (at, value) in list.sparse(hypothesis) {
                    sparse.ids.push(others[at as usize]);
                    sparse.values.push(value);
                }
                sparse.ends.push(sparse.ids.len());
            }
        }
        let start = held.segment.list_start(place.at as usize) + list.columns_at;
        let teaches = |&(at, _): &(usize, u32)| !held.segment.is_constant(place.at as usize, at);
        let columns = list.common().enumerate().filter(teaches);
        let columns = columns.map(|(at, id)| (number(id), at as u32)).collect();
        blocks.push(Block::new(gains, columns, held.segment.clone(), start, sparse));
    }
    Ok((occurring.names(&state.features), blocks))
}

/// The lists at these places, and their statistics if all have them. Refuses damaged ones.
pub fn lists(state: &State, places: &[Place], with_texts: bool) -> Result<(Pools, Option<Table>)> {
    let (lists, occurring) = read(state, places)?;
    let mut ready = Ready { starts: vec![0], rows: vec![0], ..Ready::default() };
    let hypotheses = lists.iter().map(|list| list.hypotheses).sum();
    ready.rows.reserve(hypotheses);
    ready.heads.reserve(hypotheses);
    ready.scores.reserve(hypotheses);
    ready.values.reserve(lists.iter().map(|list| list.columns().len()).sum());
    for (&place, list) in places.iter().zip(&lists) {
        let number = |id: u32| occurring.number(state.held(place).features[id as usize]);
        append(&mut ready, list, number);
    }
    ready.names = occurring.names(&state.features);
    if with_texts {
        let mut texts = Texts::default();
        for (&place, list) in places.iter().zip(&lists) {
            let held = &state.held(place).segment;
            let text = list.text().ok_or_else(|| held.damaged(place.at as usize))?;
            // As many as there are hypotheses; a line may hold other characters that end lines.
            text.split('\n').take(list.hypotheses).for_each(|line| texts.push(line));
        }
        ready.texts = Some(texts);
    }
    let table = statistics(state, places, &lists);
    Ok((Pools::from(ready), table))
}

/// Adds a list, whose features get new numbers.
fn append(ready: &mut Ready, list: &List<'_>, number: impl Fn(u32) -> u32) {
    let common: Vec<u32> = list.common().map(&number).collect();
    let others: Vec<u32> = list.others().map(&number).collect();
    let in_order = common.is_sorted()
        && others.is_sorted()
        && common.last().zip(others.first()).is_none_or(|(last, first)| last < first);
    let head = ready.ids.len();
    if others.is_empty() && in_order {
        ready.ids.extend(&common);
        let start = ready.rows[ready.rows.len() - 1];
        ready.values.resize(start + list.columns().len(), 0.0);
        rows(list, &mut ready.values[start..]);
        ready.rows.extend((1..=list.hypotheses).map(|row| start + row * common.len()));
        ready.heads.resize(ready.heads.len() + list.hypotheses, head);
    } else {
        let mut row: Vec<(u32, f32)> = Vec::new();
        let mut values = vec![0.0; list.columns().len()];
        rows(list, &mut values);
        let mut values = values.into_iter();
        for hypothesis in 0..list.hypotheses {
            row.clear();
            row.extend(common.iter().map(|&id| (id, values.next().unwrap_or_default())));
            let sparse = list.sparse(hypothesis);
            row.extend(sparse.map(|(place, value)| (others[place as usize], value)));
            if !in_order {
                row.sort_unstable_by_key(|&(id, _)| id);
            }
            ready.heads.push(ready.ids.len());
            ready.ids.extend(row.iter().map(|&(id, _)| id));
            ready.values.extend(row.iter().map(|&(_, value)| value));
            ready.rows.push(ready.values.len());
        }
    }
    ready.scores.extend(list.scores());
    ready.starts.push(ready.scores.len());
}

/// The values of the common features, hypothesis by hypothesis.
fn rows(list: &List<'_>, out: &mut [f32]) {
    let width = list.common().len();
    for (at, value) in list.columns().enumerate() {
        out[(at % list.hypotheses) * width + at / list.hypotheses] = value;
    }
}

fn statistics(state: &State, places: &[Place], lists: &[List<'_>]) -> Option<Table> {
    let mut widths = places.iter().map(|&place| state.held(place).segment.width());
    let width = widths.next().filter(|&width| width > 0)?;
    if widths.any(|other| other != width) {
        return None;
    }
    let (mut starts, mut rows, mut of) = (vec![0], Vec::new(), Vec::new());
    rows.reserve(lists.iter().map(|list| list.rows().len()).sum());
    of.reserve(lists.iter().map(|list| list.hypotheses).sum());
    for list in lists {
        rows.extend(list.rows());
        of.extend(list.of());
        starts.push(rows.len() / width);
    }
    Some(Table::of_distinct(width, starts, rows, of))
}
