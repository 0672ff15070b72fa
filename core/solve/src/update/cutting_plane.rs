//! Working sets that grow by the most violated constraint (Chiang 2012; Eidelman et al. 2013).

use super::{Separate, Stepped, Update};
use crate::Fault;
use crate::model::Model;
use crate::rows::Rows;

/// Each sentence and each kind of constraint has a simplex of dual mass, `C` for margins and the
/// row's own price for bounds, all of it on y+ at the start (no change yet). Rounds add the
/// largest violation among the kinds; then mass moves between two members of a set, at most
/// `moves` times, until the weights stop changing.
#[derive(Debug, Clone)]
pub struct CuttingPlane {
    pub c: f64,
    /// Violations below this are left alone: of margins, and of bounds.
    pub epsilon: f64,
    pub epsilon_bound: f64,
    /// MaxIter: moves of dual mass per set and round.
    pub moves: usize,
    /// Constraints added per visit at the most.
    pub planes: usize,
}

/// One member of a working set. The first member of a set is y+ itself: an empty row.
#[derive(Debug, Clone, Default)]
struct Member {
    ids: Vec<u32>,
    values: Vec<f64>,
    /// Target minus the contribution of fixed weights.
    target: f64,
    alpha: f64,
}

impl Member {
    /// How much the member is violated: what the simplex spends its mass on.
    fn violation(&self, model: &Model) -> f64 {
        self.target - model.dot(&self.ids, &self.values)
    }
}

struct WorkingSet {
    name: (u32, u8),
    members: Vec<Member>,
}

impl WorkingSet {
    fn slack(&self, model: &Model) -> f64 {
        self.members.iter().map(|member| member.violation(model)).fold(0.0, f64::max)
    }

    /// Moves mass from the least to the most violated members; true if the weights changed.
    fn optimise(&mut self, model: &mut Model, moves: usize, tolerance: f64) -> bool {
        let mut changed = false;
        for _ in 0..moves {
            let violations: Vec<f64> =
                self.members.iter().map(|member| member.violation(model)).collect();
            let Some((to, most)) = tunesmith_space::argmax(violations.iter().copied()) else {
                break;
            };
            let holders = violations.iter().zip(&self.members).map(|(&violation, member)| {
                if member.alpha > 0.0 { -violation } else { f64::NEG_INFINITY }
            });
            let Some((from, least)) = tunesmith_space::argmax(holders) else { break };
            if to == from || most + least <= tolerance {
                break;
            }
            let (ids, values) = difference(&self.members[to], &self.members[from]);
            let norm2 = model.norm2(&ids, &values);
            let available = self.members[from].alpha;
            // Equal features: no weight moves, and all of the mass belongs to the more violated.
            let delta = if norm2 == 0.0 {
                available
            } else {
                ((most + least) / norm2).clamp(-self.members[to].alpha, available)
            };
            self.members[to].alpha += delta;
            self.members[from].alpha =
                if delta == available { 0.0 } else { self.members[from].alpha - delta };
            model.add(&ids, &values, delta);
            changed |= norm2 > 0.0 && delta != 0.0;
        }
        changed
    }
}

/// `x_to - x_from`, sparse.
fn difference(to: &Member, from: &Member) -> (Vec<u32>, Vec<f64>) {
    let mut all: Vec<(u32, f64)> = to.ids.iter().copied().zip(to.values.iter().copied()).collect();
    all.extend(from.ids.iter().copied().zip(from.values.iter().map(|value| -value)));
    all.sort_by_key(|&(id, _)| id);
    all.dedup_by(|next, sum| {
        let same = next.0 == sum.0;
        if same {
            sum.1 += next.1;
        }
        same
    });
    all.into_iter().filter(|&(_, value)| value != 0.0).unzip()
}

impl Update for CuttingPlane {
    /// The step is exact; what can shrink is how far it may go.
    fn slow_down(&mut self, factor: f64) {
        self.c *= factor;
    }

    fn step(&mut self, model: &mut Model, batch: &mut dyn Separate) -> Result<Stepped, Fault> {
        let mut stepped = Stepped::default();
        let mut rows = Rows::default();
        let mut sets: Vec<WorkingSet> = Vec::new();
        for plane in 0..self.planes {
            // The largest violation of each sentence, over the kinds of constraint.
            let mut worst: Vec<(u32, f64, usize, Member, f64)> = Vec::new();
            for round in 0..batch.rounds() {
                batch.separate(model, round, &mut rows)?;
                for row in 0..rows.len() {
                    let (name, group) =
                        ((rows.groups[row], rows.kinds[row] as u8), rows.groups[row]);
                    let place = sets.iter().position(|set| set.name == name).unwrap_or_else(|| {
                        sets.push(WorkingSet { name, members: vec![Member::default()] });
                        sets.len() - 1
                    });
                    let violation = rows.violation(row, model);
                    if plane == 0 && name.1 == 0 {
                        stepped.loss += violation.max(0.0);
                    }
                    let excess = violation - sets[place].slack(model);
                    let tolerance = if name.1 == 0 { self.epsilon } else { self.epsilon_bound };
                    let cap = if rows.caps[row].is_nan() { self.c } else { rows.caps[row] };
                    if excess <= tolerance {
                        continue;
                    }
                    let (ids, values) = rows.row(row);
                    let member = Member {
                        ids: ids.to_vec(),
                        values: values.to_vec(),
                        target: rows.gains[row] - rows.offsets[row],
                        alpha: 0.0,
                    };
                    match worst.iter_mut().find(|entry| entry.0 == group) {
                        Some(entry) if entry.1 >= excess => {}
                        Some(entry) => *entry = (group, excess, place, member, cap),
                        None => worst.push((group, excess, place, member, cap)),
                    }
                }
            }
            if worst.is_empty() {
                break;
            }
            for (_, _, place, member, cap) in worst {
                let members = &mut sets[place].members;
                if members.len() == 1 {
                    members[0].alpha = cap;
                }
                members.push(member);
                stepped.updates += 1;
            }
            for _ in 0..self.moves {
                let mut changed = false;
                for set in sets.iter_mut().filter(|set| set.members.len() > 1) {
                    let tolerance = if set.name.1 == 0 { self.epsilon } else { self.epsilon_bound };
                    changed |= set.optimise(model, self.moves, tolerance);
                }
                if !changed {
                    break;
                }
            }
        }
        Ok(stepped)
    }
}
