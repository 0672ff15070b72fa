//! Lists of some examples in one space, without a look at features that they do not have.

use tunesmith_metric::Table;
use tunesmith_space::{Pools, Ready, Texts};
use tunesmith_text::{Names, Result};

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

/// The lists at these places, and their statistics if all have them. Refuses damaged ones.
pub fn lists(state: &State, places: &[Place], with_texts: bool) -> Result<(Pools, Option<Table>)> {
    let lists = places
        .iter()
        .map(|&place| Ok(state.held(place).segment.list(place.at as usize)?.0))
        .collect::<Result<Vec<List<'_>>>>()?;
    let common = |(&place, id): (&Place, u32)| state.held(place).features[id as usize];
    let ids = places.iter().zip(&lists).flat_map(|(place, list)| {
        list.common().chain(list.others()).map(move |id| common((place, id)))
    });
    let occurring = Occurring::of(ids, state.features.len());
    let mut ready = Ready { starts: vec![0], rows: vec![0], ..Ready::default() };
    let hypotheses = lists.iter().map(|list| list.hypotheses).sum();
    ready.rows.reserve(hypotheses);
    ready.heads.reserve(hypotheses);
    ready.scores.reserve(hypotheses);
    ready.values.reserve(lists.iter().map(|list| list.block().len()).sum());
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
        ready.values.extend(list.block());
        let start = ready.rows[ready.rows.len() - 1];
        ready.rows.extend((1..=list.hypotheses).map(|row| start + row * common.len()));
        ready.heads.resize(ready.heads.len() + list.hypotheses, head);
    } else {
        let mut row: Vec<(u32, f32)> = Vec::new();
        let mut block = list.block();
        for hypothesis in 0..list.hypotheses {
            row.clear();
            row.extend(common.iter().map(|&id| (id, block.next().unwrap_or_default())));
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
