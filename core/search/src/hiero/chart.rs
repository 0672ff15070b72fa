//! What a search builds: vertices with what matters at the ends of their strings, and the ways to
//! build them.

use std::sync::Arc;

use tunesmith_lm::Ends;
use tunesmith_rules::Node;

use super::group::{Entry, Group};

pub const NONE: u32 = u32::MAX;

/// All strings for a span that look the same from outside.
#[derive(Debug, Clone, Copy)]
pub struct Vertex {
    /// Of the best way to build it.
    pub score: f32,
    pub best: u32,
    /// The way found last; the others follow it.
    pub ways: u32,
    pub ends: Ends,
}

/// A rule over vertices.
#[derive(Debug, Clone, Copy)]
pub struct Way {
    pub bundle: u32,
    /// Which rule of the bundle's group.
    pub entry: u32,
    pub tails: [u32; 2],
    /// The score without those of the tails.
    pub own: f32,
    /// Decimal logarithm of what the language model gives beyond the tails.
    pub lm: f32,
    /// Another way to build the same vertex.
    pub next: u32,
}

/// The rules of a source side at one place.
#[derive(Debug, Clone, Copy)]
pub struct Bundle {
    pub group: u32,
    pub span: (u32, u32),
    /// Spans under the gaps.
    pub gaps: [(u32, u32); 2],
    /// Cells with the vertices for the gaps.
    pub tails: [u32; 2],
    /// Where [`Chart::placed`] has its rules, if the place matters for their scores.
    pub placed: u32,
}

/// A rule at a place that gives features of its own.
#[derive(Debug, Clone, Copy)]
pub struct Placed {
    pub entry: u32,
    pub score: f32,
}

/// Where the rules of a group come from.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum From {
    Table(Node),
    /// A word stands for itself.
    PassThrough,
    /// The user gave it, with a score.
    Given(f32),
    /// S → X, with the beginning of the sentence in its first gap.
    First,
    /// S → S X.
    Glue,
}

#[derive(Default)]
pub struct Chart {
    pub vertices: Vec<Vertex>,
    /// The vertices so that tails come first; known when all are built.
    pub order: Vec<u32>,
    /// States of the features of strings, some for each vertex.
    pub strings: Vec<u64>,
    pub ways: Vec<Way>,
    pub bundles: Vec<Bundle>,
    pub placed: Vec<Placed>,
    pub groups: Vec<(Arc<Group>, From)>,
}

impl Chart {
    /// A rule of a bundle by its rank, and what its place adds.
    #[inline]
    pub fn ranked(&self, bundle: &Bundle, rank: u32) -> (u32, f32) {
        if bundle.placed == NONE {
            return (rank, 0.0);
        }
        let placed = self.placed[(bundle.placed + rank) as usize];
        (placed.entry, placed.score)
    }

    /// Adds rules, which bundles know by the number returned.
    pub fn add(&mut self, group: Arc<Group>, from: From) -> u32 {
        self.groups.push((group, from));
        self.groups.len() as u32 - 1
    }

    pub fn group(&self, bundle: &Bundle) -> &Group {
        &self.groups[bundle.group as usize].0
    }

    pub fn from(&self, bundle: &Bundle) -> From {
        self.groups[bundle.group as usize].1
    }

    pub fn entry(&self, way: &Way) -> &Entry {
        &self.group(&self.bundles[way.bundle as usize]).entries[way.entry as usize]
    }

    /// The score of a way, with the best of its tails.
    pub fn score(&self, way: u32) -> f32 {
        let Way { tails, own, .. } = self.ways[way as usize];
        let tails = tails.into_iter().filter(|&tail| tail != NONE);
        own + tails.map(|tail| self.vertices[tail as usize].score).sum::<f32>()
    }

    /// Finds the best way to each vertex anew: those found late may make others better.
    pub fn settle(&mut self) {
        for at in 0..self.order.len() {
            let vertex = self.order[at];
            let scored = |way: u32| (self.score(way), way);
            let best = self.ways_to(vertex).map(scored).max_by(|a, b| a.0.total_cmp(&b.0));
            if let Some((score, best)) = best {
                let vertex = &mut self.vertices[vertex as usize];
                (vertex.score, vertex.best) = (score, best);
            }
        }
    }

    /// Numbers of all ways to build a vertex.
    pub fn ways_to(&self, vertex: u32) -> impl Iterator<Item = u32> {
        let known = |way: u32| (way != NONE).then_some(way);
        let first = known(self.vertices[vertex as usize].ways);
        std::iter::successors(first, move |&way| known(self.ways[way as usize].next))
    }
}
