//! Iterative parameter mixing (McDonald, Hall & Mann 2010).

use tunesmith_solve::Model;

use crate::Learner;

/// Replaces a learner by the mean of copies of it that went on alone, in their order. The average
/// of the mean is the mean of the averages.
pub fn mix(learner: &mut Learner, mut shards: Vec<Learner>) {
    let steps = shards.iter().map(|shard| shard.model.average_state().1).max().unwrap_or(0);
    for shard in &mut shards {
        // A shard with fewer examples waits for the others.
        while shard.model.average_state().1 < steps {
            shard.end_step();
        }
    }
    let count = shards.len() as f64;
    let (known, contexts) = (learner.features.len(), learner.features.names().len());
    let (mut weights, mut lags) = (vec![0.0; known], vec![0.0; known]);
    for shard in &shards {
        let features = &shard.features;
        // In the order of the shard, so that a single one leaves the same ids as if it were alone.
        features.names().iter().skip(contexts).for_each(|name| {
            learner.features.intern(name);
        });
        let (lag, _) = shard.model.average_state();
        for (id, (&weight, &lag)) in shard.model.weights().iter().zip(lag).enumerate() {
            let id = if id < known {
                // A copy keeps the ids of the features that it started with.
                id
            } else {
                let (context, action) = features.owner(id as u32);
                let name = features.names().name(context).unwrap_or_default();
                let context = learner.features.intern(name);
                learner.features.id(context, action) as usize
            };
            if id >= weights.len() {
                weights.resize(id + 1, 0.0);
                lags.resize(id + 1, 0.0);
            }
            weights[id] += weight;
            lags[id] += lag;
        }
    }
    weights.iter_mut().chain(&mut lags).for_each(|sum| *sum /= count);
    learner.model = Model::new(weights);
    learner.model.restore_average(lags, steps);
    if let [only] = &mut shards[..] {
        learner.votes = only.votes.take();
    }
}
