//! Weights that are learnt: what a model file holds.

use tunesmith_text::{Error, Result};

use crate::Features;

/// Features with the weights of one vector, or of several that vote.
#[derive(Debug, Clone, Default)]
pub struct Weights {
    pub features: Features,
    /// One vector for each voter.
    pub voters: Vec<Vec<f64>>,
    pub votes: Vec<f64>,
}

impl Weights {
    /// Keeps the features that some voter has a weight for.
    pub fn pruned(features: &Features, cast: &[(u64, Vec<f64>)]) -> Self {
        let mut kept = Weights {
            features: Features::default(),
            voters: vec![Vec::new(); cast.len()],
            votes: cast.iter().map(|&(votes, _)| votes as f64).collect(),
        };
        for id in 0..features.len() {
            if cast.iter().all(|(_, weights)| weights[id] == 0.0) {
                continue;
            }
            let (context, action) = features.owner(id as u32);
            let name = features.names().name(context).unwrap_or_default();
            let context = kept.features.intern(name);
            kept.features.id(context, action);
            for (voter, (_, weights)) in kept.voters.iter_mut().zip(cast) {
                voter.push(weights[id]);
            }
        }
        kept
    }

    /// Puts together what a file held; refuses what no training can have written.
    pub fn new(
        letters: &[u8],
        ends: &[u64],
        contexts: &[u32],
        actions: &[u32],
        voters: Vec<Vec<f64>>,
        votes: Vec<f64>,
    ) -> Result<Self> {
        let text = std::str::from_utf8(letters).map_err(|_| Error::new("names are not UTF-8"))?;
        let mut features = Features::default();
        let mut start = 0;
        for (place, &end) in ends.iter().enumerate() {
            let end = usize::try_from(end).unwrap_or(usize::MAX);
            let name = text.get(start..end).ok_or_else(|| Error::new("names do not fit"))?;
            if features.intern(name) as usize != place {
                return Err(Error::new(format!("the context {name:?} occurs twice")));
            }
            start = end;
        }
        if contexts.len() != actions.len() {
            return Err(Error::new("contexts and actions differ in number"));
        }
        for (place, (&context, &action)) in contexts.iter().zip(actions).enumerate() {
            if context as usize >= ends.len() || features.id(context, action) as usize != place {
                return Err(Error::new(format!("feature {place} has no context, or occurs twice")));
            }
        }
        if voters.is_empty() || voters.len() != votes.len() {
            return Err(Error::new("votes and weights differ in number"));
        }
        for voter in &voters {
            if voter.len() != contexts.len() || voter.iter().any(|weight| !weight.is_finite()) {
                return Err(Error::new("weights do not fit their features, or are not finite"));
            }
        }
        if votes.iter().any(|&vote| !(vote > 0.0 && vote.is_finite())) {
            return Err(Error::new("a number of votes is not positive"));
        }
        Ok(Weights { features, voters, votes })
    }
}
