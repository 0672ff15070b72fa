//! Forced decoding: the derivations of a given translation, and no others.
//!
//! Gold derivations use what the search itself may use: phrases within the table limit and the
//! phrase limit, jumps within the distortion limit, walls and zones. Only the beam does not bind
//! them. What leads nowhere is left out.

use super::decoder::Decoder;
use super::options::Choices;
use super::results::Found;
use super::search::{Graph, Limits, NONE, Node, run};
use crate::Input;

/// The derivations of a reference, or of as much of it from its beginning as can be reached.
pub fn force<'d>(decoder: &'d Decoder, input: &Input<'_>, reference: &[&str]) -> Found<'d> {
    let mut choices = Choices::new(decoder, input);
    let words = choices.spelled(reference);
    choices.confine(&words);
    let settings = &decoder.settings;
    let limits = Limits {
        stack: usize::MAX,
        pops: usize::MAX,
        threshold: f32::INFINITY,
        distortion: settings.distortion_limit.unwrap_or(usize::MAX),
        cells: if settings.force_limit == 0 { usize::MAX } else { settings.force_limit },
    };
    let mut graph = run(decoder, &choices, Some(&words), &limits, input.stop);
    if graph.goal.is_none() {
        graph.goal = furthest(&graph);
        graph.last = graph.arcs.len() as u32;
    }
    keep_gold(&mut graph);
    Found::new(choices, graph)
}

/// The most promising of the nodes with the longest strings.
fn furthest(graph: &Graph) -> Option<u32> {
    let promise = |node: &Node| node.score + graph.covers.future(node.cover);
    graph.stacks.iter().flat_map(|stack| &stack.nodes).copied().max_by(|&a, &b| {
        let (left, right) = (&graph.nodes[a as usize], &graph.nodes[b as usize]);
        (left.position.cmp(&right.position))
            .then(promise(left).total_cmp(&promise(right)))
            .then(b.cmp(&a))
    })
}

/// Drops the nodes from which the goal cannot be reached. If the reference cannot be reached, all
/// nodes that come as far as the goal are goals.
fn keep_gold(graph: &mut Graph) {
    let Some(goal) = graph.goal else { return };
    let mut gold = vec![false; graph.nodes.len()];
    gold[goal as usize] = true;
    if !graph.is_whole {
        let most = graph.nodes[goal as usize].position;
        for &node in graph.stacks.iter().flat_map(|stack| &stack.nodes) {
            gold[node as usize] |= graph.nodes[node as usize].position == most;
        }
    }
    // A node has a higher number than those before it.
    for node in (0..graph.nodes.len()).rev().filter(|&node| graph.nodes[node].arc != NONE) {
        let mut arc = graph.nodes[node].arc;
        while gold[node] && arc != NONE {
            gold[graph.arcs[arc as usize].from as usize] = true;
            arc = graph.arcs[arc as usize].next;
        }
    }
    for stack in &mut graph.stacks {
        stack.nodes.retain(|&node| gold[node as usize]);
    }
}
