//! Many small heaps in one allocation.

use super::Choice;

/// Choices of many nodes, the best of each node at the top of its heap.
#[derive(Debug, Default)]
pub(super) struct Heaps {
    choices: Vec<Choice>,
}

/// Where a heap is.
#[derive(Debug, Clone, Copy)]
pub(super) struct Heap {
    start: u32,
    len: u32,
    room: u32,
}

impl Heaps {
    pub fn with_capacity(choices: usize) -> Heaps {
        Heaps { choices: Vec::with_capacity(choices) }
    }

    /// A heap of some choices.
    pub fn open(&mut self, choices: impl Iterator<Item = Choice>) -> Heap {
        let start = self.choices.len();
        self.choices.extend(choices);
        // What is in order is a heap. Zero added: -0 and 0 are equal.
        self.choices[start..].sort_unstable_by(|a, b| {
            let by_score = (b.score + 0.0).total_cmp(&(a.score + 0.0));
            by_score.then_with(|| (a.edge, a.tails).cmp(&(b.edge, b.tails)))
        });
        let len = (self.choices.len() - start) as u32;
        Heap { start: start as u32, len, room: len }
    }

    #[inline]
    pub fn top(&self, heap: Heap) -> Option<Choice> {
        (heap.len > 0).then(|| self.choices[heap.start as usize])
    }

    #[inline]
    fn slice(&mut self, heap: Heap) -> &mut [Choice] {
        &mut self.choices[heap.start as usize..][..heap.len as usize]
    }

    /// Puts a choice in the place of the top.
    #[inline]
    pub fn replace(&mut self, heap: Heap, choice: Choice) {
        sink(self.slice(heap), choice);
    }

    /// Takes the top away.
    #[inline]
    pub fn pop(&mut self, heap: &mut Heap) {
        heap.len -= 1;
        if heap.len > 0 {
            let last = self.choices[(heap.start + heap.len) as usize];
            sink(self.slice(*heap), last);
        }
    }

    /// Adds a choice; a heap without room moves to the end.
    pub fn push(&mut self, heap: &mut Heap, choice: Choice) {
        if heap.len == heap.room {
            let old = heap.start as usize..(heap.start + heap.len) as usize;
            heap.start = self.choices.len() as u32;
            heap.room = 2 * heap.len.max(2);
            self.choices.extend_from_within(old);
            self.choices.resize((heap.start + heap.room) as usize, choice);
        }
        heap.len += 1;
        let choices = self.slice(*heap);
        let mut at = choices.len() - 1;
        while at > 0 && choice.is_before(&choices[(at - 1) / 2]) {
            choices[at] = choices[(at - 1) / 2];
            at = (at - 1) / 2;
        }
        choices[at] = choice;
    }
}

/// Puts a choice in the place of the top, or below it where it belongs.
#[inline]
fn sink(heap: &mut [Choice], choice: Choice) {
    let mut at = 0;
    while let Some(first) = heap.get(2 * at + 1) {
        let (mut below, mut best) = (2 * at + 1, first);
        if let Some(second) = heap.get(below + 1)
            && second.is_before(first)
        {
            (below, best) = (below + 1, second);
        }
        if choice.is_before(best) {
            break;
        }
        heap[at] = *best;
        at = below;
    }
    heap[at] = choice;
}

impl Choice {
    /// It comes before the other: its score is higher, or it was there earlier.
    #[inline]
    fn is_before(&self, other: &Choice) -> bool {
        if self.score != other.score {
            return self.score > other.score;
        }
        // Of one tail, what was made later is numbered higher.
        (self.edge, self.tails) < (other.edge, other.tails)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn choices_come_out_in_order_whatever_the_heaps_went_through(
            begun in proptest::collection::vec(proptest::collection::vec(0u8..5, 0..6), 1..4),
            steps in proptest::collection::vec((0usize..4, 0u8..3, 0u8..5), 0..60),
        ) {
            let mut number = 0;
            let mut choice = |score: u8| {
                number += 1;
                Choice { score: f64::from(score), edge: number, tails: [0; 2] }
            };
            let mut heaps = Heaps::default();
            let mut all = Vec::new();
            for scores in begun {
                let choices: Vec<Choice> = scores.into_iter().map(&mut choice).collect();
                all.push((heaps.open(choices.iter().copied()), choices));
            }
            for (which, what, score) in steps {
                let which = which % all.len();
                let (heap, twin) = &mut all[which];
                // The slow twin: the best first.
                twin.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.edge.cmp(&b.edge)));
                let top = heaps.top(*heap).map(|top| (top.score, top.edge));
                prop_assert_eq!(top, twin.first().map(|top| (top.score, top.edge)));
                let new = choice(score);
                match (what, twin.is_empty()) {
                    (0, false) => {
                        twin[0] = new;
                        heaps.replace(*heap, new);
                    }
                    (1, false) => {
                        twin.remove(0);
                        heaps.pop(heap);
                    }
                    _ => {
                        twin.push(new);
                        heaps.push(heap, new);
                    }
                }
            }
        }
    }
}
