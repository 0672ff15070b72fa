//! The cells of a search: built one after the other, or grown as far as they are asked for.

use super::chart::{Chart, Vertex};
use super::cube::{Context, Frontier, Tails};

/// The vertices of the spans, by numbers that are given out from small spans to large ones.
pub enum Cells {
    Pruned(Box<Pruned>),
    Grown(Grown),
}

/// Cube pruning (Chiang 2007): each cell is built before it is used.
#[derive(Default)]
pub struct Pruned {
    frontier: Frontier,
    order: Vec<u32>,
    moved: Vec<Vertex>,
    moved_strings: Vec<u64>,
    built: Built,
}

/// Where the vertices of each cell are, best first.
#[derive(Default)]
struct Built(Vec<(u32, u32)>);

/// Cube growing (Huang and Chiang 2007): cells grow when their vertices are asked for.
#[derive(Default)]
pub struct Grown(Vec<Frontier>);

impl Cells {
    pub fn new(growing: bool) -> Cells {
        if growing { Cells::Grown(Grown::default()) } else { Cells::Pruned(Box::default()) }
    }

    /// The cell that the bundles from `first` on build; `None` if there are none.
    pub fn add(&mut self, context: Context<'_>, chart: &mut Chart, first: usize) -> Option<u32> {
        let end = chart.bundles.len();
        if first == end {
            return None;
        }
        match self {
            Cells::Pruned(cells) => cells.build(context, chart, first),
            Cells::Grown(Grown(list)) => {
                let mut frontier = Frontier::default();
                frontier.turn(first, end);
                list.push(frontier);
            }
        }
        Some(self.len() - 1)
    }

    /// A cell with one vertex, the last of the chart.
    pub fn single(&mut self, chart: &Chart) -> u32 {
        let last = chart.vertices.len() as u32 - 1;
        match self {
            Cells::Pruned(cells) => cells.built.0.push((last, last + 1)),
            Cells::Grown(Grown(list)) => {
                let mut frontier = Frontier::default();
                frontier.list.push(last);
                list.push(frontier);
            }
        }
        self.len() - 1
    }

    fn len(&self) -> u32 {
        match self {
            Cells::Pruned(cells) => cells.built.0.len() as u32,
            Cells::Grown(Grown(list)) => list.len() as u32,
        }
    }

    /// All vertices of a cell, which is the last one. What was grown gets its final scores here.
    pub fn finish(&mut self, context: Context<'_>, chart: &mut Chart, cell: u32) -> Vec<u32> {
        match self {
            Cells::Pruned(cells) => {
                chart.order = (0..chart.vertices.len() as u32).collect();
                let (start, end) = cells.built.0[cell as usize];
                (start..end).collect()
            }
            Cells::Grown(cells) => {
                cells.vertex(context, chart, cell, u32::MAX);
                chart.order = cells.0.iter().flat_map(|frontier| &frontier.list).copied().collect();
                chart.settle();
                cells.0[cell as usize].list.clone()
            }
        }
    }

    /// How often an exact score was asked for.
    pub fn evaluated(&self) -> u64 {
        match self {
            Cells::Pruned(cells) => cells.frontier.evaluated,
            Cells::Grown(Grown(list)) => list.iter().map(|frontier| frontier.evaluated).sum(),
        }
    }
}

impl Pruned {
    fn build(&mut self, context: Context<'_>, chart: &mut Chart, first: usize) {
        let start = chart.vertices.len();
        let limit = context.decoder.settings.most();
        self.frontier.turn(first, chart.bundles.len());
        self.frontier.run(context, chart, &mut self.built, |found| found.taken >= limit);
        self.sort(chart, start, context.decoder.model.extras.string.len());
        self.built.0.push((start as u32, chart.vertices.len() as u32));
    }

    /// Puts the vertices from `start` on in order, best first.
    fn sort(&mut self, chart: &mut Chart, start: usize, width: usize) {
        self.order.clear();
        self.order.extend(start as u32..chart.vertices.len() as u32);
        let score = |&vertex: &u32| chart.vertices[vertex as usize].score;
        self.order.sort_by(|a, b| score(b).total_cmp(&score(a)));
        self.moved.clear();
        self.moved_strings.clear();
        for vertex in self.order.iter().map(|&vertex| vertex as usize) {
            self.moved.push(chart.vertices[vertex]);
            self.moved_strings.extend_from_slice(&chart.strings[vertex * width..][..width]);
        }
        chart.vertices[start..].copy_from_slice(&self.moved);
        chart.strings[start * width..].copy_from_slice(&self.moved_strings);
    }
}

impl Tails for Built {
    const BUILT: bool = true;

    #[inline]
    fn vertex(&mut self, _: Context<'_>, _: &mut Chart, cell: u32, rank: u32) -> Option<u32> {
        let (start, end) = self.0[cell as usize];
        (rank < end - start).then(|| start + rank)
    }
}

impl Tails for Grown {
    const BUILT: bool = false;

    fn vertex(
        &mut self,
        context: Context<'_>,
        chart: &mut Chart,
        cell: u32,
        rank: u32,
    ) -> Option<u32> {
        let (cell, rank) = (cell as usize, rank as usize);
        if self.0[cell].list.len() <= rank {
            let limit = context.decoder.settings.most();
            // Tails are smaller: no cell asks for itself.
            let mut frontier = std::mem::take(&mut self.0[cell]);
            let enough = |found: &Frontier| found.list.len() > rank || found.taken >= limit;
            frontier.run(context, chart, self, enough);
            self.0[cell] = frontier;
        }
        self.0[cell].list.get(rank).copied()
    }
}
