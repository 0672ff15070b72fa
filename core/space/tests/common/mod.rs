//! Small forests drawn at random, and everything that is in them, found the slow way.

#![allow(dead_code)] // each test program uses a part

use proptest::prelude::*;
use tunesmith_space::{Edge, Forest, ForestBuilder, Side};

/// Derivations a node may have, so that all can be written down.
const MOST: usize = 300;
pub const WORDS: [&str; 4] = ["a", "b", "c", "a"];
pub const FEATURES: usize = 4;

type Raw = (u8, [u32; 2], Vec<u8>, Vec<(u32, i8)>);

/// Features in halves, so that sums are exact and ties are common.
fn values(raw: &[(u32, i8)]) -> Vec<(u32, f32)> {
    let mut values: Vec<(u32, f32)> =
        raw.iter().map(|&(id, value)| (id, f32::from(value) / 2.0)).collect();
    values.sort_by_key(|&(id, _)| id);
    values.dedup_by_key(|&mut (id, _)| id);
    values
}

fn build(nodes: &[Vec<Raw>], told_apart: bool) -> Forest {
    let mut builder = ForestBuilder::default();
    let mut number = 0.0f32;
    for word in WORDS {
        builder.word(word);
    }
    let mut counts: Vec<usize> = Vec::new();
    for edges in nodes {
        let open = counts.len() as u32;
        let mut count = 0;
        builder.node();
        for (arity, tails, order, features) in edges {
            let mut tails = tails.map(|tail| if open == 0 { Edge::NONE } else { tail % open });
            let ways = |tails: [u32; 2]| -> usize {
                let known = tails.into_iter().filter(|&tail| tail != Edge::NONE);
                known.map(|tail| counts[tail as usize]).product()
            };
            for gap in (usize::from(*arity)..2).chain([1, 0]) {
                if gap >= usize::from(*arity) || count + ways(tails) > MOST {
                    tails[gap] = Edge::NONE;
                }
            }
            count += ways(tails);
            let gaps = tails.iter().filter(|&&tail| tail != Edge::NONE).count();
            let mut side: Vec<Side> =
                order.iter().map(|&word| Side::Word(u32::from(word % 4))).collect();
            for gap in 0..gaps {
                let place = usize::from(order.first().copied().unwrap_or(0)) % (side.len() + 1);
                side.insert(place, Side::Gap(gap));
            }
            let (rule, own) = features.split_at(features.len() / 2);
            let rule = builder.rule(values(rule), side);
            let mut own = values(own);
            if told_apart {
                number += 1.0;
                // Few digits: sums are exact here too.
                let value = ((0.737 * number).sin() * 4096.0).round() / 4096.0;
                own.push((FEATURES as u32, value));
            }
            builder.edge(Edge { tails, rule, label: 0 }, own);
        }
        counts.push(count);
    }
    builder.finish()
}

fn raw() -> impl Strategy<Value = Vec<Vec<Raw>>> {
    let features = proptest::collection::vec((0..FEATURES as u32, -4i8..5), 0..5);
    let words = proptest::collection::vec(0u8..8, 0..3);
    let edge = (0u8..3, [0u32..16, 0u32..16], words, features);
    proptest::collection::vec(proptest::collection::vec(edge, 0..4), 1..7)
}

/// Forests with every kind of edge, words spelt alike, dead nodes, and many ties.
pub fn forests() -> impl Strategy<Value = Forest> {
    raw().prop_map(|nodes| build(&nodes, false))
}

/// The same with a feature more that tells all derivations apart.
pub fn forests_without_ties() -> impl Strategy<Value = Forest> {
    raw().prop_map(|nodes| build(&nodes, true))
}

pub fn weights() -> impl Strategy<Value = Vec<f64>> {
    proptest::collection::vec((-4i8..5).prop_map(|value| f64::from(value) / 2.0), FEATURES)
}

/// Every derivation of a node: its edges from the top down.
pub fn all_of(forest: &Forest, node: usize) -> Vec<Vec<u32>> {
    let mut all = Vec::new();
    for edge in forest.incoming(node) {
        let mut partial = vec![vec![edge as u32]];
        for tail in forest.edges()[edge].tails() {
            let below = all_of(forest, tail);
            partial = partial
                .iter()
                .flat_map(|start| below.iter().map(move |end| [&start[..], &end[..]].concat()))
                .collect();
        }
        all.extend(partial);
    }
    all
}

/// Every derivation of the goal.
pub fn all(forest: &Forest) -> Vec<Vec<u32>> {
    forest.goal().map_or(Vec::new(), |goal| all_of(forest, goal))
}

/// The string of a derivation, and how many of its edges that takes.
pub fn text_of(forest: &Forest, edges: &[u32]) -> (Vec<String>, usize) {
    let edge = &forest.edges()[edges[0] as usize];
    let mut used = 1;
    let mut gaps = Vec::new();
    for _ in edge.tails() {
        let (words, more) = text_of(forest, &edges[used..]);
        used += more;
        gaps.push(words);
    }
    let mut words = Vec::new();
    for symbol in forest.side(edge.rule) {
        match symbol {
            Side::Word(word) => words.push(forest.word(word).to_string()),
            Side::Gap(gap) => words.extend_from_slice(&gaps[gap]),
        }
    }
    (words, used)
}

/// A forest whose derivations have any of `width` words in each of so many places: words are added
/// one by one, or with `pair` chosen beforehand and then joined. Edges that add word `n` have the
/// label `n + 1`, others have 0. There are only so many spellings of words.
pub fn levels(levels: usize, width: usize, spellings: usize, pair: bool) -> Forest {
    let mut builder = ForestBuilder::default();
    for word in 0..width {
        builder.word(&(word % spellings).to_string());
    }
    let empty = builder.rule([], []);
    let joined = builder.rule([], [Side::Gap(0), Side::Gap(1)]);
    let mut last = builder.node();
    builder.edge(Edge { tails: [Edge::NONE; 2], rule: empty, label: 0 }, []);
    for _ in 0..levels {
        let node = builder.node();
        for word in 0..width as u32 {
            let gap = (!pair).then_some(Side::Gap(0));
            let rule = builder.rule([], gap.into_iter().chain([Side::Word(word)]));
            let tails = [if pair { Edge::NONE } else { last }, Edge::NONE];
            builder.edge(Edge { tails, rule, label: word + 1 }, []);
        }
        if pair {
            let whole = builder.node();
            builder.edge(Edge { tails: [last, node], rule: joined, label: 0 }, []);
            last = whole;
        } else {
            last = node;
        }
    }
    builder.finish()
}
