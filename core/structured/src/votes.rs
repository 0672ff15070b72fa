//! Voted weights (Freund & Schapire 1999): weights that made no mistake for long have more votes.

/// The weights that survived the largest number of examples, and for how long.
#[derive(Debug, Clone)]
pub struct Votes {
    most: usize,
    /// Examples since the weights last changed.
    survived: u64,
    /// Most votes first, the earlier first among equals.
    kept: Vec<(u64, Vec<f64>)>,
}

impl Votes {
    /// Keeps `most` weight vectors: all of them would be one for every update.
    pub fn new(most: usize) -> Self {
        Votes { most, survived: 0, kept: Vec::new() }
    }

    /// Counts an example after which the weights stand as they are.
    pub fn survive(&mut self) {
        self.survived += 1;
    }

    /// Takes the weights that are about to change.
    pub fn retire(&mut self, weights: &[f64]) {
        let survived = std::mem::take(&mut self.survived);
        let full = self.kept.len() == self.most;
        let least = self.kept.last().map_or(0, |&(votes, _)| votes);
        if survived == 0 || (full && survived <= least) {
            return;
        }
        let place = self.kept.partition_point(|&(votes, _)| votes >= survived);
        self.kept.insert(place, (survived, weights.to_vec()));
        self.kept.truncate(self.most);
    }

    /// All that vote, the present weights among them, as long as these have survived enough.
    pub fn cast(&self, weights: &[f64]) -> Vec<(u64, Vec<f64>)> {
        let mut all = self.clone();
        all.retire(weights);
        if all.kept.is_empty() {
            all.kept.push((1, weights.to_vec()));
        }
        for (_, each) in &mut all.kept {
            each.resize(weights.len(), 0.0);
        }
        all.kept
    }
}

#[cfg(test)]
mod tests {
    use super::Votes;

    #[test]
    fn the_longest_lived_weights_vote() {
        let mut votes = Votes::new(2);
        for (weight, examples) in [(1.0, 2), (2.0, 5), (3.0, 1), (4.0, 5)] {
            (0..examples).for_each(|_| votes.survive());
            votes.retire(&[weight]);
        }
        assert_eq!(votes.cast(&[9.0, 0.0]), [(5, vec![2.0, 0.0]), (5, vec![4.0, 0.0])]);
        (0..6).for_each(|_| votes.survive());
        assert_eq!(votes.cast(&[9.0, 0.0])[0], (6, vec![9.0, 0.0]));
    }

    #[test]
    fn weights_that_saw_nothing_vote_alone() {
        assert_eq!(Votes::new(3).cast(&[0.5]), [(1, vec![0.5])]);
    }
}
