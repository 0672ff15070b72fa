//! Symmetrisation: what to keep of two directed alignments of the same sentence pair.

use std::str::FromStr;

use rustc_hash::FxHashSet;

use crate::Link;

/// What to keep. All but union start from the links that both directions have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Heuristic {
    Intersection,
    Union,
    /// Adds neighbours, diagonal ones too, that reach a word without a link.
    GrowDiag,
    /// Then every link that reaches a word without one on either side.
    GrowDiagFinal,
    /// Then every link between two words that have none.
    GrowDiagFinalAnd,
}

impl Heuristic {
    pub const ALL: [(&'static str, Heuristic); 5] = [
        ("intersection", Heuristic::Intersection),
        ("union", Heuristic::Union),
        ("grow-diag", Heuristic::GrowDiag),
        ("grow-diag-final", Heuristic::GrowDiagFinal),
        ("grow-diag-final-and", Heuristic::GrowDiagFinalAnd),
    ];
}

impl FromStr for Heuristic {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        Heuristic::ALL.iter().find(|known| known.0 == name).map(|known| known.1).ok_or_else(|| {
            let names: Vec<_> = Heuristic::ALL.iter().map(|known| known.0).collect();
            format!("no heuristic {name:?}: {}", names.join(", "))
        })
    }
}

/// One alignment out of two, both with the source position first; sorted by source, then target.
///
/// Growing goes over the open links in that order, again and again until none can be added, and
/// the final step takes the forward links first: results depend on both orders.
pub fn symmetrise(forward: &[Link], backward: &[Link], heuristic: Heuristic) -> Vec<Link> {
    let mut forward = forward.to_vec();
    let mut backward = backward.to_vec();
    for links in [&mut forward, &mut backward] {
        links.sort_unstable();
        links.dedup();
    }
    let mut either = forward.clone();
    either.extend(&backward);
    either.sort_unstable();
    either.dedup();
    if heuristic == Heuristic::Union {
        return either;
    }
    let both = forward.iter().copied().filter(|link| backward.binary_search(link).is_ok());
    let mut kept = Kept::default();
    both.for_each(|link| kept.add(link));
    if heuristic == Heuristic::Intersection {
        return kept.into_links();
    }
    let mut open: Vec<Link> = either.iter().copied().filter(|&link| !kept.has(link)).collect();
    let mut before = usize::MAX;
    while open.len() < before {
        before = open.len();
        open.retain(|&link| {
            let taken = kept.reaches_new(link) && kept.has_neighbour(link);
            if taken {
                kept.add(link);
            }
            !taken
        });
    }
    for &link in forward.iter().chain(&backward) {
        let taken = match heuristic {
            Heuristic::GrowDiagFinal => kept.reaches_new(link),
            Heuristic::GrowDiagFinalAnd => kept.reaches_two_new(link),
            _ => false,
        };
        if taken {
            kept.add(link);
        }
    }
    kept.into_links()
}

/// The links kept so far, with the words they reach. A matrix would not do for long sentences.
#[derive(Default)]
struct Kept {
    links: FxHashSet<Link>,
    sources: FxHashSet<u16>,
    targets: FxHashSet<u16>,
}

impl Kept {
    fn add(&mut self, link: Link) {
        self.links.insert(link);
        self.sources.insert(link.0);
        self.targets.insert(link.1);
    }

    fn has(&self, link: Link) -> bool {
        self.links.contains(&link)
    }

    fn reaches_new(&self, link: Link) -> bool {
        !(self.sources.contains(&link.0) && self.targets.contains(&link.1))
    }

    fn reaches_two_new(&self, link: Link) -> bool {
        !(self.sources.contains(&link.0) || self.targets.contains(&link.1))
    }

    fn has_neighbour(&self, link: Link) -> bool {
        let around = |at: u16| at.saturating_sub(1)..=at.saturating_add(1);
        around(link.0).any(|source| around(link.1).any(|target| self.has((source, target))))
    }

    fn into_links(self) -> Vec<Link> {
        let mut links: Vec<Link> = self.links.into_iter().collect();
        links.sort_unstable();
        links
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn all(forward: &[Link], backward: &[Link]) -> Vec<Vec<Link>> {
        Heuristic::ALL.iter().map(|known| symmetrise(forward, backward, known.1)).collect()
    }

    #[test]
    fn a_hand_made_sentence() {
        // The agreed link 0-0 grows to 0-1; 3-3 touches nothing; 4-1 has a covered target.
        let forward = [(0, 0), (0, 1), (3, 3)];
        let backward = [(0, 0), (4, 1)];
        let results = all(&forward, &backward);
        assert_eq!(results[0], [(0, 0)]);
        assert_eq!(results[1], [(0, 0), (0, 1), (3, 3), (4, 1)]);
        assert_eq!(results[2], [(0, 0), (0, 1)]);
        assert_eq!(results[3], [(0, 0), (0, 1), (3, 3), (4, 1)]);
        assert_eq!(results[4], [(0, 0), (0, 1), (3, 3)]);
        assert!(all(&[], &[]).iter().all(Vec::is_empty));
    }

    #[test]
    fn names_are_read() {
        assert_eq!("grow-diag".parse(), Ok(Heuristic::GrowDiag));
        assert!("grow".parse::<Heuristic>().unwrap_err().contains("grow-diag-final-and"));
    }

    fn links() -> impl Strategy<Value = Vec<Link>> {
        proptest::collection::vec((0u16..8, 0u16..8), 0..14)
    }

    proptest! {
        #[test]
        fn each_lies_between_intersection_and_union(a in links(), b in links()) {
            let results = all(&a, &b);
            let within = |small: &[Link], large: &[Link]| small.iter().all(|l| large.contains(l));
            for result in &results {
                prop_assert!(within(&results[0], result) && within(result, &results[1]));
                prop_assert!(result.is_sorted());
            }
            prop_assert!(within(&results[2], &results[4]));
            prop_assert!(within(&results[2], &results[3]));
            // The final step leaves no link that would reach two new words.
            for (source, target) in &results[1] {
                prop_assert!(results[4].iter().any(|l| l.0 == *source || l.1 == *target));
            }
        }

        #[test]
        fn an_alignment_with_itself_stays(a in links()) {
            let union = symmetrise(&a, &a, Heuristic::Union);
            for result in all(&a, &a) {
                prop_assert_eq!(&result, &union);
            }
        }
    }
}
