//! Forests made from others, and from lists.

use rustc_hash::FxHashMap;

use super::{Edge, Forest, ForestBuilder, Side};

impl Forest {
    /// A forest of whole hypotheses: one node, one edge for each, in their order. Words are what
    /// single spaces separate, so the strings are those of the list to the letter.
    pub fn of_list<'a>(
        hypotheses: impl IntoIterator<Item = (&'a str, (&'a [u32], &'a [f32]))>,
    ) -> Forest {
        let mut builder = ForestBuilder::default();
        let mut words: FxHashMap<&str, u32> = FxHashMap::default();
        let mut open = false;
        for (text, (ids, values)) in hypotheses {
            if !std::mem::replace(&mut open, true) {
                builder.node();
            }
            // An empty string has no words, not an empty one.
            let spelt = text.split(' ').filter(|_| !text.is_empty());
            let side: Vec<Side> = spelt
                .map(|word| {
                    let known = words.entry(word).or_insert_with(|| builder.word(word));
                    Side::Word(*known)
                })
                .collect();
            let rule = builder.rule(ids.iter().copied().zip(values.iter().copied()), side);
            builder.edge(Edge { tails: [Edge::NONE; 2], rule, label: 0 }, []);
        }
        builder.finish()
    }

    /// All derivations of several forests in one: their goals become one node. A derivation that
    /// two of them have comes twice.
    pub fn union<'a>(parts: impl IntoIterator<Item = &'a Forest>) -> Forest {
        let mut builder = ForestBuilder::default();
        let mut goals: Vec<(Edge, Vec<(u32, f32)>)> = Vec::new();
        for part in parts {
            let words: Vec<u32> = part.words.iter().map(|word| builder.word(word)).collect();
            let rule = |rule: u32| {
                let side = part.side(rule).map(|symbol| match symbol {
                    Side::Gap(gap) => Side::Gap(gap),
                    Side::Word(word) => Side::Word(words[word as usize]),
                });
                builder.rule(pairs(part.rule(rule)), side)
            };
            let rules: Vec<u32> = (0..part.rules() as u32).map(rule).collect();
            let mut numbers: Vec<u32> = Vec::with_capacity(part.nodes());
            for node in 0..part.nodes() {
                let goal = Some(node) == part.goal();
                if !goal {
                    numbers.push(builder.node());
                }
                for at in part.incoming(node) {
                    let edge = &part.edges[at];
                    let moved = |tail: u32| numbers.get(tail as usize).copied();
                    let tails = edge.tails.map(|tail| moved(tail).unwrap_or(Edge::NONE));
                    let edge = Edge { tails, rule: rules[edge.rule as usize], ..*edge };
                    if goal {
                        goals.push((edge, pairs(part.own(at)).collect()));
                    } else {
                        builder.edge(edge, pairs(part.own(at)));
                    }
                }
            }
        }
        // Without an edge it says that there is no derivation, whatever other nodes there are.
        builder.node();
        goals.into_iter().for_each(|(edge, own)| builder.edge(edge, own));
        builder.finish()
    }

    /// The part of the forest that derivations of some edges need: nodes that cannot be built from
    /// these or do not lead to the goal are left out, and so are rules and words without a use.
    pub fn keep(&self, wanted: impl Fn(usize) -> bool) -> Forest {
        let mut built = vec![false; self.nodes()];
        let mut kept = vec![false; self.edges.len()];
        for node in 0..self.nodes() {
            for edge in self.incoming(node) {
                kept[edge] = wanted(edge) && self.edges[edge].tails().all(|tail| built[tail]);
                built[node] |= kept[edge];
            }
        }
        let mut used = vec![false; self.nodes()];
        for node in (0..self.nodes()).rev() {
            used[node] |= Some(node) == self.goal();
            if used[node] {
                for edge in self.incoming(node).filter(|&edge| kept[edge]) {
                    self.edges[edge].tails().for_each(|tail| used[tail] = true);
                }
            }
        }
        let mut builder = ForestBuilder::default();
        let mut rules: FxHashMap<u32, u32> = FxHashMap::default();
        let mut words: FxHashMap<u32, u32> = FxHashMap::default();
        let mut numbers = vec![Edge::NONE; self.nodes()];
        for node in (0..self.nodes()).filter(|&node| used[node] && built[node]) {
            numbers[node] = builder.node();
            for at in self.incoming(node).filter(|&edge| kept[edge]) {
                let edge = &self.edges[at];
                let rule = *rules.entry(edge.rule).or_insert_with(|| {
                    let side: Vec<Side> = self
                        .side(edge.rule)
                        .map(|symbol| match symbol {
                            Side::Gap(gap) => Side::Gap(gap),
                            Side::Word(word) => Side::Word(
                                *words.entry(word).or_insert_with(|| builder.word(self.word(word))),
                            ),
                        })
                        .collect();
                    builder.rule(pairs(self.rule(edge.rule)), side)
                });
                let moved = |tail: u32| match tail {
                    Edge::NONE => Edge::NONE,
                    tail => numbers[tail as usize],
                };
                let edge = Edge { tails: edge.tails.map(moved), rule, ..*edge };
                builder.edge(edge, pairs(self.own(at)));
            }
        }
        builder.finish()
    }
}

fn pairs<'a>((ids, values): (&'a [u32], &'a [f32])) -> impl Iterator<Item = (u32, f32)> + 'a {
    ids.iter().copied().zip(values.iter().copied())
}
