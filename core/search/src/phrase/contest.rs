//! Gold derivations against the beam, step by step: where a search goes wrong.

use rustc_hash::FxHashSet;

use super::decoder::Decoder;
use super::results::Found;
use crate::Input;
use crate::features::Collected;
use crate::outcome::{Partial, Reached};

/// What a beam held of a sentence, and what leads to its reference.
///
/// A derivation is gold if the words that it says are a beginning of the reference, and if it can
/// be finished within the limits of the search: as the whole reference, or if that cannot be
/// reached as its longest part from the beginning. Whether the beam loses it does not matter.
pub struct Contest<'d> {
    reached: Reached,
    gold: Found<'d>,
    beam: Option<Beam<'d>>,
}

/// The beam's side.
struct Beam<'d> {
    found: Found<'d>,
    /// The reference, in words of the sentence.
    reference: Vec<u32>,
    /// Where gold derivations are: a cover of the gold search, the end of the last phrase, the
    /// number of words said. Whether one can be finished depends on nothing else.
    golden: FxHashSet<(u32, u16, u32)>,
}

/// The two sides after so many words are covered.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Stage {
    pub covered: usize,
    /// The best score of a gold derivation.
    pub gold: f32,
    /// The best score in the beam.
    pub beam: f32,
    /// Whether the beam holds a gold derivation, be it behind a better one with the same future.
    pub held: bool,
    /// Whether the beam's best derivation is gold.
    pub right: bool,
}

impl<'d> Contest<'d> {
    /// Searches only once for a reference of no use: one of which fewer than `least` words are
    /// reached, if it is not reached as a whole; and one that had to be given up.
    pub fn new(
        decoder: &'d Decoder,
        input: &Input<'_>,
        reference: &[&str],
        least: usize,
    ) -> Contest<'d> {
        let gold = decoder.search_for(input, reference);
        let reached = gold.reached();
        let is_used = reached.given_up.is_none()
            && reached.words > 0
            && (reached.is_whole || reached.words >= least);
        let beam = is_used.then(|| {
            let mut found = decoder.search(input);
            let reference = found.choices.spelled(reference);
            let graph = &gold.graph;
            let place = |&node: &u32| {
                let node = &graph.nodes[node as usize];
                (node.cover, node.end, node.position)
            };
            let golden = graph.stacks.iter().flat_map(|stack| &stack.nodes).map(place).collect();
            Beam { found, reference, golden }
        });
        Contest { reached, gold, beam }
    }

    pub fn reached(&self) -> Reached {
        self.reached
    }

    /// The steps at which there are gold derivations and the beam holds something. With `future`,
    /// scores have what is hoped for the rest. Empty if the reference is of no use.
    pub fn stages(&self, future: bool) -> Vec<Stage> {
        let Some(beam) = &self.beam else { return Vec::new() };
        let held = self.held(beam);
        let stage = |covered: usize| {
            let gold = best(&self.gold, covered, future)?;
            let found = best(&beam.found, covered, future)?;
            let right = self.is_gold(beam, &found);
            let held = held[covered];
            Some(Stage { covered, gold: gold.score, beam: found.score, held, right })
        };
        (1..self.gold.graph.stacks.len()).filter_map(stage).collect()
    }

    /// The best gold derivation after so many words are covered.
    pub fn gold(&self, covered: usize, future: bool, collected: &mut Collected) -> Option<Partial> {
        let way = best(&self.gold, covered, future)?;
        self.gold.partials(&[way.arc], collected).pop()
    }

    /// The `k` best derivations in the beam that are not gold, best first; each hypothesis counts
    /// with at most its `k` best ways.
    pub fn others(
        &self,
        covered: usize,
        k: usize,
        future: bool,
        collected: &mut Collected,
    ) -> Vec<Partial> {
        let Some(beam) = &self.beam else { return Vec::new() };
        let ways = ranked(&beam.found, covered, k, future).into_iter();
        let others = ways.filter(|way| !self.is_gold(beam, way)).map(|way| way.arc);
        beam.found.partials(&others.take(k).collect::<Vec<_>>(), collected)
    }

    /// Whether the beam holds a gold derivation, by the number of covered words.
    fn held(&self, beam: &Beam<'_>) -> Vec<bool> {
        let Found { graph, choices, .. } = &beam.found;
        let mut held = vec![false; graph.stacks.len()];
        // How many words the gold derivations to a node say.
        let mut said: Vec<Vec<u32>> = vec![Vec::new(); graph.nodes.len()];
        said[0].push(0);
        for (covered, stack) in graph.stacks.iter().enumerate().skip(1) {
            for &node in &stack.nodes {
                let mut here: Vec<u32> = Vec::new();
                for arc in beam.found.arcs(node) {
                    let arc = &graph.arcs[arc];
                    let words = choices.target(&choices.list[arc.choice as usize]);
                    for &before in &said[arc.from as usize] {
                        let after = before + words.len() as u32;
                        if beam.reference[before as usize..].starts_with(words)
                            && self.is_golden(beam, node, after)
                            && !here.contains(&after)
                        {
                            here.push(after);
                        }
                    }
                }
                held[covered] |= !here.is_empty();
                said[node as usize] = here;
            }
        }
        held
    }

    /// Whether a node of the beam with so many words said can be finished as the reference.
    fn is_golden(&self, beam: &Beam<'_>, node: u32, said: u32) -> bool {
        let graph = &beam.found.graph;
        let node = &graph.nodes[node as usize];
        let cover = self.gold.graph.covers.find(graph.covers.bits(node.cover));
        cover.is_some_and(|cover| beam.golden.contains(&(cover, node.end, said)))
    }

    /// Whether a derivation of the beam is gold.
    fn is_gold(&self, beam: &Beam<'_>, way: &Way) -> bool {
        let mut said = 0;
        let is_said = beam.found.phrases(way.arc).into_iter().all(|choice| {
            let words = beam.found.choices.target(&beam.found.choices.list[choice as usize]);
            let is_next = beam.reference[said..].starts_with(words);
            said += words.len();
            is_next
        });
        is_said && self.is_golden(beam, way.node, said as u32)
    }
}

/// A derivation: the best that ends with an arc to a node.
struct Way {
    score: f32,
    node: u32,
    arc: usize,
}

/// The best derivation after so many words are covered.
fn best(found: &Found<'_>, covered: usize, future: bool) -> Option<Way> {
    ranked(found, covered, 1, future).into_iter().next()
}

/// The derivations after so many words are covered, best first, at most so many for each node.
fn ranked(found: &Found<'_>, covered: usize, ways: usize, future: bool) -> Vec<Way> {
    let graph = &found.graph;
    let mut all: Vec<Way> = Vec::new();
    for &node in &graph.stacks[covered].nodes {
        let hoped =
            if future { graph.covers.future(graph.nodes[node as usize].cover) } else { 0.0 };
        let arcs = found.best_arcs(node, ways);
        let way = |arc: usize| Way { score: graph.arcs[arc].score + hoped, node, arc };
        all.extend(arcs.into_iter().map(way));
    }
    all.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.arc.cmp(&b.arc)));
    all
}
