//! Where to update when the search itself makes mistakes (Huang, Fayong & Guo 2012).
//!
//! An update from a gold derivation to a worse-scoring one is no repair: the search lost the gold
//! one, the weights did not. Updates that fix violations look for a step of the search at which the
//! weights themselves prefer something else to everything gold.

/// The step of a beam search at which its mistake is corrected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Violation {
    /// The last step, whether the weights are to blame or not: the textbook update, which need not
    /// converge with a beam.
    Unchecked,
    /// The last step, if it is a violation.
    Standard,
    /// The first step that leaves no gold derivation in the beam; the last one if none does.
    Early,
    /// The step at which gold falls behind the beam's best by most.
    Max,
}

/// The best scores after one step of a search.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rung {
    /// Of all gold derivations that can still be finished.
    pub gold: f64,
    /// Of what the beam holds.
    pub beam: f64,
    /// Whether the beam still holds a gold derivation.
    pub held: bool,
    /// Whether the beam's best is gold: then the step is right.
    pub right: bool,
}

impl Rung {
    /// How far the gold derivation is behind; not positive where the weights are not to blame.
    pub fn violation(&self) -> f64 {
        self.beam - self.gold
    }

    fn is_violated(&self) -> bool {
        !self.right && self.violation() >= 0.0
    }
}

impl Violation {
    pub const ALL: [(&'static str, Violation); 4] = [
        ("unchecked", Violation::Unchecked),
        ("standard", Violation::Standard),
        ("early", Violation::Early),
        ("max-violation", Violation::Max),
    ];

    pub fn named(name: &str) -> Option<Violation> {
        Self::ALL.iter().find(|(known, _)| *known == name).map(|&(_, violation)| violation)
    }

    /// The step to update at; `None` where nothing is to be repaired. The first among equals.
    pub fn step(self, rungs: &[Rung]) -> Option<usize> {
        let last = rungs.len().checked_sub(1)?;
        let at = match self {
            Violation::Unchecked => return (!rungs[last].right).then_some(last),
            Violation::Standard => last,
            Violation::Early => rungs.iter().position(|rung| !rung.held).unwrap_or(last),
            Violation::Max => {
                let mut worst: Option<usize> = None;
                for (at, rung) in rungs.iter().enumerate().filter(|(_, rung)| rung.is_violated()) {
                    if worst.is_none_or(|best| rung.violation() > rungs[best].violation()) {
                        worst = Some(at);
                    }
                }
                worst?
            }
        };
        rungs[at].is_violated().then_some(at)
    }
}

#[cfg(test)]
mod tests {
    use super::{Rung, Violation};

    fn rung(gold: f64, beam: f64, held: bool) -> Rung {
        Rung { gold, beam, held, right: held && gold == beam }
    }

    #[test]
    fn each_update_has_its_step() {
        // Gold falls behind at once, is lost at the third step, and would have won in the end.
        let rungs = [
            rung(1.0, 1.0, true),
            rung(1.5, 2.5, true),
            rung(2.0, 2.5, false),
            rung(1.0, 4.0, false),
            rung(5.0, 4.5, false),
        ];
        assert_eq!(Violation::Unchecked.step(&rungs), Some(4));
        assert_eq!(Violation::Standard.step(&rungs), None);
        assert_eq!(Violation::Early.step(&rungs), Some(2));
        assert_eq!(Violation::Max.step(&rungs), Some(3));
    }

    #[test]
    fn a_search_that_ends_right_needs_only_the_largest_violation_repaired() {
        let rungs = [rung(0.0, 1.0, true), rung(3.0, 3.0, true)];
        assert_eq!(Violation::Standard.step(&rungs), None);
        assert_eq!(Violation::Early.step(&rungs), None);
        assert_eq!(Violation::Max.step(&rungs), Some(0));
    }

    #[test]
    fn a_single_step_is_the_same_for_all() {
        for (_, each) in Violation::ALL {
            assert_eq!(each.step(&[rung(1.0, 2.0, true)]), Some(0));
            assert_eq!(each.step(&[rung(2.0, 2.0, true)]), None);
            assert_eq!(each.step(&[]), None);
        }
    }

    #[test]
    fn equal_scores_of_something_else_are_a_violation() {
        let tie = [Rung { gold: 0.0, beam: 0.0, held: true, right: false }];
        assert_eq!(Violation::Standard.step(&tie), Some(0));
    }

    #[test]
    fn names_lead_back() {
        for (name, each) in Violation::ALL {
            assert_eq!(Violation::named(name), Some(each));
        }
        assert_eq!(Violation::named("late"), None);
    }
}
