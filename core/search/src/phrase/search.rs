//! The search itself: a stack for every number of covered words, filled by cube pruning.
//!
//! Hypotheses that cover the same words and end at the same place form a group; a group and the
//! phrases of a span form a cube whose corner is the best hypothesis with the best phrase. A cell
//! enters the queue of its stack with an estimate of the language model, gets its exact score when
//! it comes to the front, and is taken when no other promises more. When too many have got it, those
//! that have are taken, best first.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use hashbrown::HashTable;
use tunesmith_lm::State;
use tunesmith_rules::Symbol;

use super::cover::Covers;
use super::decoder::Decoder;
use super::options::{Choice, Choices};
use super::results::Found;
use crate::features::{OnString, Sink, Total};
use crate::{Input, Stop};

pub const NONE: u32 = u32::MAX;

/// A hypothesis; others that cannot be told apart by what comes later are arcs to it.
#[derive(Debug, Clone)]
pub struct Node {
    pub state: State,
    /// Of the best way here.
    pub score: f32,
    pub cover: u32,
    /// The words of the last phrase; `start` is [`ANY`] where it cannot matter.
    pub start: u16,
    pub end: u16,
    /// What the next phrase's orientation refers to: the last phrase, or the block that it closed;
    /// [`ANY`] where no phrase can touch it.
    pub block: [u16; 2],
    /// Orientations of the last phrase to the next.
    pub class: u32,
    /// A choice with that class, whose orientations to the next phrase hold.
    pub last: u32,
    /// Words of the target so far.
    pub position: u32,
    /// The best way here, first of a list.
    pub arc: u32,
}

/// The last phrase began at a place that no swap can refer to.
const ANY: u16 = u16::MAX;

/// A way to a node.
#[derive(Debug, Clone, Copy)]
pub struct Arc {
    pub from: u32,
    pub choice: u32,
    /// Of the whole hypothesis.
    pub score: f32,
    /// What the language model says, to base ten.
    pub lm: f32,
    /// The next way to the same node.
    pub next: u32,
}

/// All hypotheses with as many words covered.
#[derive(Debug, Clone, Default)]
pub struct Stack {
    /// By cover and end, then best first; what was pruned is gone.
    pub nodes: Vec<u32>,
}

/// Where estimates promise too much, this many cells get their exact score for each one taken.
const ASKED: usize = 2;

/// After so many exact scores it is looked whether the search is to end.
const HEARD: usize = 1 << 12;

/// Cells of one group and one span.
struct Cube {
    /// The group: a range of a stack's nodes.
    stack: u16,
    first: u32,
    count: u32,
    choices: (u32, u32),
    cover: u32,
    /// Distortion, and the estimate for what is left after it.
    base: f32,
    distortion: f32,
}

#[derive(Clone, Copy)]
struct Cell {
    cube: u32,
    node: u32,
    choice: u32,
    /// Where its exact values are; [`NONE`] as long as it is an estimate.
    exact: u32,
}

#[derive(Clone, Copy)]
struct Exact {
    score: f32,
    lm: f32,
    state: State,
}

#[derive(Clone, Copy, PartialEq)]
struct Queued {
    key: f32,
    cell: u32,
}

impl Eq for Queued {}

impl Ord for Queued {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key.total_cmp(&other.key).then(other.cell.cmp(&self.cell))
    }
}

impl PartialOrd for Queued {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// What the search leaves.
pub struct Graph {
    pub nodes: Vec<Node>,
    pub arcs: Vec<Arc>,
    /// States of the features of the string, so many for each node.
    pub strings: Vec<u64>,
    pub stacks: Vec<Stack>,
    pub covers: Covers,
    /// The node that covers everything; if a reference cannot be reached, that which comes
    /// furthest.
    pub goal: Option<u32>,
    /// Whether the goal covers everything.
    pub is_whole: bool,
    /// The first of the arcs that end the sentence.
    pub last: u32,
    /// Cells whose exact score was asked for.
    pub evaluated: u64,
    /// The search was given up because it looked at too many cells.
    pub is_given_up: bool,
}

struct Search<'d, 'c> {
    decoder: &'d Decoder,
    choices: &'c Choices<'d>,
    /// The only string that may come out.
    forced: Option<&'c [u32]>,
    limits: Limits,
    stop: Stop<'c>,
    /// Orientations refer to blocks.
    blocks: bool,
    graph: Graph,
    /// Cubes that fill a stack.
    cubes: Vec<Vec<Cube>>,
    cells: Vec<Cell>,
    /// Cells that were looked at, of all stacks.
    looked: usize,
    exact: Vec<Exact>,
    seen: HashTable<u32>,
}

pub fn search<'d>(decoder: &'d Decoder, input: &Input<'_>) -> Found<'d> {
    let choices = Choices::new(decoder, input);
    let settings = &decoder.settings;
    let limits = Limits {
        stack: if settings.stack == 0 { usize::MAX } else { settings.stack },
        pops: if settings.pop_limit == 0 { usize::MAX } else { settings.pop_limit },
        threshold: settings.threshold,
        distortion: settings.distortion_limit.unwrap_or(usize::MAX),
        cells: usize::MAX,
    };
    let mut graph = run(decoder, &choices, None, &limits, input.stop);
    if graph.goal.is_none() {
        // Walls and zones may leave nothing in the beam that can be finished. From left to right
        // every phrase leads on.
        graph = run(decoder, &choices, None, &Limits { distortion: 0, ..limits }, input.stop);
    }
    Found::new(choices, graph)
}

/// What is left out.
#[derive(Clone, Copy)]
pub struct Limits {
    pub stack: usize,
    pub pops: usize,
    pub threshold: f32,
    pub distortion: usize,
    /// Cells that are looked at in all stacks together; then the search is given up.
    pub cells: usize,
}

/// Fills all stacks; `forced` are ids of target words that must come out.
pub fn run<'d>(
    decoder: &'d Decoder,
    choices: &Choices<'d>,
    forced: Option<&[u32]>,
    limits: &Limits,
    stop: Stop<'_>,
) -> Graph {
    let words = choices.sentence.source().len();
    let mut search = Search {
        decoder,
        choices,
        forced,
        limits: *limits,
        stop,
        blocks: decoder.model.dense.reordering.as_ref().is_some_and(|model| model.blocks),
        graph: Graph {
            nodes: Vec::new(),
            arcs: Vec::new(),
            strings: Vec::new(),
            stacks: vec![Stack::default(); words + 1],
            covers: Covers::new(words, &choices.future),
            goal: None,
            is_whole: false,
            last: NONE,
            evaluated: 0,
            is_given_up: false,
        },
        cubes: (0..=words).map(|_| Vec::new()).collect(),
        cells: Vec::new(),
        looked: 0,
        exact: Vec::new(),
        seen: HashTable::new(),
    };
    search.graph.nodes.push(Node {
        state: decoder.model.lm.begin(),
        score: 0.0,
        cover: 0,
        start: ANY,
        end: 0,
        block: [ANY, 0],
        class: NONE,
        last: NONE,
        position: 0,
        arc: NONE,
    });
    search.graph.strings.extend(decoder.model.extras.string.iter().map(|string| string.begin()));
    search.graph.stacks[0].nodes.push(0);
    search.expand(0);
    for stack in 1..=words {
        search.graph.last = search.graph.arcs.len() as u32;
        search.fill(stack);
        search.prune(stack);
        search.expand(stack);
    }
    let mut graph = search.graph;
    let said = |node: &u32| graph.nodes[*node as usize].position as usize;
    let best = graph.stacks[words].nodes.first().copied();
    graph.goal = best.filter(|node| forced.is_none_or(|forced| said(node) == forced.len()));
    graph.is_whole = graph.goal.is_some();
    graph
}

impl Search<'_, '_> {
    fn words(&self) -> usize {
        self.cubes.len() - 1
    }

    /// Makes the cubes that the groups of a stack lead to.
    fn expand(&mut self, stack: usize) {
        let nodes = std::mem::take(&mut self.graph.stacks[stack].nodes);
        let mut first = 0;
        while first < nodes.len() && !self.stop.is_asked() {
            let node = &self.graph.nodes[nodes[first] as usize];
            let (cover, end) = (node.cover, usize::from(node.end));
            let alike = nodes[first..].iter().take_while(|&&other| {
                let other = &self.graph.nodes[other as usize];
                other.cover == cover && usize::from(other.end) == end
            });
            let count = alike.count();
            self.expand_group(stack, first, count, cover, end);
            first += count;
        }
        self.graph.stacks[stack].nodes = nodes;
    }

    fn expand_group(&mut self, stack: usize, first: usize, count: usize, cover: u32, end: usize) {
        let words = self.words();
        let limit = self.limits.distortion;
        let gap = self.graph.covers.first_gap(cover);
        let (first_word, words) = self.reach(cover, gap, words);
        let mut start = first_word;
        while start < words {
            let jump = start.abs_diff(end);
            if self.graph.covers.has(cover, start) || jump > limit {
                start += 1;
                continue;
            }
            let open = self.graph.covers.next(cover, start, true).unwrap_or(words).min(words);
            for stop in start + 1..=open.min(start + self.choices.longest()) {
                // From elsewhere one must be able to come back to the first gap.
                if start != gap && stop - gap > limit {
                    break;
                }
                let choices = self.choices.open(start, stop);
                if choices.0 == choices.1 {
                    continue;
                }
                let cover = self.graph.covers.extend(cover, start, stop, &self.choices.future);
                let distortion = -(jump as f32) * self.decoder.weighted.distortion;
                self.cubes[stack + stop - start].push(Cube {
                    stack: stack as u16,
                    first: first as u32,
                    count: count as u32,
                    choices,
                    cover,
                    base: distortion + self.graph.covers.future(cover),
                    distortion,
                });
            }
            start += 1;
        }
    }

    /// Where the next phrase may lie: before the first wall that has gaps on its left, and in the
    /// zone that is begun, if there is one.
    fn reach(&self, cover: u32, gap: usize, words: usize) -> (usize, usize) {
        let wall = self.choices.walls.iter().copied().filter(|&wall| wall > gap).min();
        let mut reach = gap..wall.unwrap_or(words);
        for zone in &self.choices.zones {
            let covered = zone.clone().filter(|&word| self.graph.covers.has(cover, word)).count();
            if covered > 0 && covered < zone.len() {
                reach = reach.start.max(zone.start)..reach.end.min(zone.end);
            }
        }
        (reach.start, reach.end)
    }

    fn fill(&mut self, stack: usize) {
        let cubes = std::mem::take(&mut self.cubes[stack]);
        self.cells.clear();
        self.exact.clear();
        self.seen.clear();
        let mut queue = Vec::with_capacity(cubes.len());
        for (number, cube) in cubes.iter().enumerate() {
            queue.push(self.cell(cube, number, 0, 0));
        }
        let mut queue = BinaryHeap::from(queue);
        let complete = stack == self.words();
        let (mut made, mut asked) = (0, 0);
        let budget = self.limits.pops.saturating_mul(ASKED);
        while let Some(top) = queue.pop() {
            let cell = self.cells[top.cell as usize];
            let cube = &cubes[cell.cube as usize];
            let mut at = cell.exact;
            if at == NONE {
                if asked >= budget {
                    continue;
                }
                if asked % HEARD == 0 && self.stop.is_asked() {
                    break;
                }
                asked += 1;
                self.looked += 1;
                if self.looked > self.limits.cells {
                    self.graph.is_given_up = true;
                    break;
                }
                // Its neighbours may now come.
                if cell.choice + 1 < cube.choices.1 - cube.choices.0 {
                    queue.push(self.cell(cube, cell.cube as usize, cell.node, cell.choice + 1));
                }
                if cell.choice == 0 && cell.node + 1 < cube.count {
                    queue.push(self.cell(cube, cell.cube as usize, cell.node + 1, 0));
                }
                let Some(exact) = self.exact(cube, cell, complete) else { continue };
                let key = exact.score + self.graph.covers.future(cube.cover);
                at = self.exact.len() as u32;
                self.exact.push(exact);
                if queue.peek().is_some_and(|next| next.key > key) {
                    self.cells[top.cell as usize].exact = at;
                    queue.push(Queued { key, cell: top.cell });
                    continue;
                }
            }
            self.take(cube, cell, at, stack, complete);
            made += 1;
            if made >= self.limits.pops {
                break;
            }
        }
    }

    fn node_of(&self, cube: &Cube, cell: Cell) -> u32 {
        self.graph.stacks[usize::from(cube.stack)].nodes[(cube.first + cell.node) as usize]
    }

    /// A new cell with its estimate.
    fn cell(&mut self, cube: &Cube, number: usize, node: u32, choice: u32) -> Queued {
        let cell = Cell { cube: number as u32, node, choice, exact: NONE };
        let from = &self.graph.nodes[self.node_of(cube, cell) as usize];
        let chosen = &self.choices.list[(cube.choices.0 + choice) as usize];
        let key = from.score + chosen.estimate + cube.base + self.order(from, chosen);
        self.cells.push(cell);
        Queued { key, cell: self.cells.len() as u32 - 1 }
    }

    /// What the orientations of the two phrases to each other say.
    #[inline]
    fn order(&self, from: &Node, chosen: &Choice) -> f32 {
        if !self.decoder.weighted.oriented {
            return 0.0;
        }
        let [previous, next] = orientations(&self.graph, self.blocks, from, chosen);
        let next = match from.last {
            NONE => 0.0,
            last => self.choices.list[last as usize].next[next],
        };
        next + chosen.previous[previous]
    }

    /// The exact values of a cell; nothing if it does not lead to the string that is asked for.
    fn exact(&mut self, cube: &Cube, cell: Cell, complete: bool) -> Option<Exact> {
        let number = self.node_of(cube, cell);
        let from = &self.graph.nodes[number as usize];
        let chosen = &self.choices.list[(cube.choices.0 + cell.choice) as usize];
        if let Some(forced) = self.forced {
            let rest = &forced[(from.position as usize).min(forced.len())..];
            let target = self.choices.target(chosen);
            if !rest.starts_with(target) || (complete && rest.len() != target.len()) {
                return None;
            }
        }
        self.graph.evaluated += 1;
        let lm = &self.decoder.model.lm;
        let words = chosen.words as usize..chosen.words as usize + usize::from(chosen.length);
        let mut state = from.state;
        let mut log10 = 0.0;
        for (number, at) in words.clone().enumerate() {
            // What is remembered lies within the phrase: the rest is known.
            if number > 0 && state.len() <= number {
                log10 += self.choices.inner[at];
                state = chosen.state;
                break;
            }
            let (scored, next) = lm.score(&state, self.choices.lm[at]);
            log10 += scored.log10;
            state = next;
        }
        if complete {
            log10 += lm.score(&state, lm.end_id()).0.log10;
        }
        let weighted = &self.decoder.weighted;
        let mut score = from.score
            + chosen.score
            + weighted.lm * log10
            + cube.distortion
            + self.order(from, chosen);
        if !self.decoder.model.extras.string.is_empty() {
            let mut total = Total { weights: &weighted.named, sum: 0.0 };
            self.join(number, chosen, complete, &mut total, |_| {});
            score += total.sum as f32;
        }
        Some(Exact { score, lm: log10, state })
    }

    fn join(
        &self,
        from: u32,
        chosen: &Choice,
        complete: bool,
        out: &mut dyn Sink,
        see: impl FnMut(u64),
    ) {
        let strings = &self.decoder.model.extras.string;
        let at = from as usize * strings.len();
        join(self.choices, &self.graph.strings[at..at + strings.len()], chosen, complete, out, see);
    }

    /// Puts a cell on its stack.
    fn take(&mut self, cube: &Cube, cell: Cell, at: u32, stack: usize, complete: bool) {
        let exact = self.exact[at as usize];
        let from = self.node_of(cube, cell);
        let choice = cube.choices.0 + cell.choice;
        let chosen = &self.choices.list[choice as usize];
        let oriented = self.decoder.weighted.oriented && !complete;
        let mut node = Node {
            state: exact.state,
            score: exact.score,
            cover: cube.cover,
            start: ANY,
            end: if complete { 0 } else { chosen.end },
            block: [ANY; 2],
            class: if oriented { chosen.class } else { NONE },
            last: if oriented { choice } else { NONE },
            position: self.graph.nodes[from as usize].position + u32::from(chosen.length),
            arc: NONE,
        };
        if oriented {
            let mut block = [chosen.start, chosen.end];
            if self.blocks {
                let before = &self.graph.nodes[from as usize];
                block = self::block(&self.graph, before, chosen, cube.cover);
                node.start = chosen.start;
            }
            let covers = &self.graph.covers;
            let covered = |word: usize| word >= self.words() || covers.has(cube.cover, word);
            if block[0] > 0 && !covered(usize::from(block[0]) - 1) {
                node.block[0] = block[0];
            }
            if !covered(usize::from(block[1])) {
                node.block[1] = block[1];
            }
        }
        if complete {
            node.state = State::EMPTY;
        }
        let mut strings = Vec::new();
        if !self.decoder.model.extras.string.is_empty() && !complete {
            let mut none = Nowhere;
            self.join(from, chosen, false, &mut none, |state| strings.push(state));
        }
        let forced = self.forced.is_some();
        let arc = self.graph.arcs.len() as u32;
        let (nodes, width) = (&self.graph.nodes, self.decoder.model.extras.string.len());
        let (all, arcs) = (&self.graph.strings, &mut self.graph.arcs);
        let same = |&other: &u32| {
            let twin = &nodes[other as usize];
            let at = other as usize * width;
            twin.cover == node.cover
                && twin.end == node.end
                && twin.start == node.start
                && twin.block == node.block
                && twin.class == node.class
                && twin.state == node.state
                && (!forced || twin.position == node.position)
                && (complete || all[at..at + width] == strings[..])
        };
        let hash = hash_of(&node, &strings);
        if let Some(&twin) = self.seen.find(hash, same) {
            let twin = &mut self.graph.nodes[twin as usize];
            let best = arcs[twin.arc as usize];
            if exact.score > twin.score {
                arcs.push(Arc { from, choice, score: exact.score, lm: exact.lm, next: twin.arc });
                *twin = Node { arc, ..node };
            } else {
                arcs.push(Arc { from, choice, score: exact.score, lm: exact.lm, next: best.next });
                arcs[twin.arc as usize].next = arc;
            }
            return;
        }
        arcs.push(Arc { from, choice, score: exact.score, lm: exact.lm, next: NONE });
        node.arc = arc;
        let number = self.graph.nodes.len() as u32;
        self.graph.nodes.push(node);
        strings.resize(width, 0);
        self.graph.strings.extend(strings);
        self.graph.stacks[stack].nodes.push(number);
        let (nodes, all) = (&self.graph.nodes, &self.graph.strings);
        self.seen.insert_unique(hash, number, |&other| {
            let at = other as usize * width;
            hash_of(&nodes[other as usize], if complete { &[] } else { &all[at..at + width] })
        });
    }

    /// Keeps the best of a stack, in the order that [`expand`](Self::expand) wants.
    fn prune(&mut self, stack: usize) {
        let mut nodes = std::mem::take(&mut self.graph.stacks[stack].nodes);
        let (all, covers) = (&self.graph.nodes, &self.graph.covers);
        let total = |node: u32| {
            let node = &all[node as usize];
            node.score + covers.future(node.cover)
        };
        let keep = self.limits.stack;
        if nodes.len() > keep {
            nodes.select_nth_unstable_by(keep - 1, |&a, &b| {
                total(b).total_cmp(&total(a)).then(a.cmp(&b))
            });
            nodes.truncate(keep);
        }
        let best = nodes.iter().map(|&node| total(node)).fold(f32::NEG_INFINITY, f32::max);
        nodes.retain(|&node| total(node) >= best - self.limits.threshold);
        nodes.sort_unstable_by(|&a, &b| {
            let (left, right) = (&all[a as usize], &all[b as usize]);
            (left.cover, left.end)
                .cmp(&(right.cover, right.end))
                .then(right.score.total_cmp(&left.score))
                .then(a.cmp(&b))
        });
        self.graph.stacks[stack].nodes = nodes;
    }
}

/// How a phrase lies to what is before it, and how what is before it lies to the phrase: 0 monotone,
/// 1 swapped, 2 elsewhere to the left, 3 to the right.
///
/// With blocks the first is exact as long as blocks close in the order in which they can (they are
/// taken to reach as far as everything is covered). For the second the block to come is not known
/// yet: what lies between the two phrases will belong to it if nothing of it is covered next to the
/// last phrase.
#[inline]
pub fn orientations(graph: &Graph, blocks: bool, from: &Node, chosen: &Choice) -> [usize; 2] {
    let previous = if chosen.start == from.block[1] {
        0
    } else if chosen.end == from.block[0] {
        1
    } else {
        2 + usize::from(chosen.start > from.block[1])
    };
    if !blocks || from.last == NONE {
        return [previous; 2];
    }
    let open = |word: u16| !graph.covers.has(from.cover, usize::from(word));
    let next = if chosen.start >= from.end && open(from.end) {
        0
    } else if chosen.end <= from.start && open(from.start - 1) {
        1
    } else {
        2 + usize::from(chosen.start >= from.end)
    };
    [previous, next]
}

/// What the orientation of the phrase after `chosen` refers to.
fn block(graph: &Graph, from: &Node, chosen: &Choice, cover: u32) -> [u16; 2] {
    let touches = chosen.start == from.block[1] || chosen.end == from.block[0];
    if from.last != NONE && !touches {
        return [chosen.start, chosen.end];
    }
    let (mut start, mut end) = (chosen.start, chosen.end);
    while start > 0 && graph.covers.has(cover, usize::from(start) - 1) {
        start -= 1;
    }
    while usize::from(end) < graph.stacks.len() - 1 && graph.covers.has(cover, usize::from(end)) {
        end += 1;
    }
    [start, end]
}

/// Joins a phrase to the string so far, feature by feature; `see` gets the new states. What lies
/// within the phrase is known before.
pub fn join(
    choices: &Choices<'_>,
    states: &[u64],
    chosen: &Choice,
    complete: bool,
    out: &mut dyn Sink,
    mut see: impl FnMut(u64),
) {
    let side = [Symbol::Gap(1), Symbol::Gap(2)];
    let strings: &[Box<dyn OnString>] = &choices.decoder.model.extras.string;
    let inner = choices.strings(chosen);
    for ((feature, &state), &inner) in strings.iter().zip(states).zip(inner) {
        let state = feature.join(&side, &[state, inner], &choices.sentence, out);
        if complete {
            feature.end(state, &choices.sentence, out);
        }
        see(state);
    }
}

struct Nowhere;

impl Sink for Nowhere {
    fn add(&mut self, _: &[&crate::Spelling], _: f32) {}
}

fn hash_of(node: &Node, strings: &[u64]) -> u64 {
    use std::hash::{Hash, Hasher};
    let mut hasher = rustc_hash::FxHasher::default();
    (u64::from(node.cover) << 32 | u64::from(node.end) << 16 | u64::from(node.start))
        .hash(&mut hasher);
    (u64::from(node.class) << 32 | u64::from(node.block[0]) << 16 | u64::from(node.block[1]))
        .hash(&mut hasher);
    for &word in node.state.words() {
        word.hash(&mut hasher);
    }
    strings.hash(&mut hasher);
    hasher.finish()
}
