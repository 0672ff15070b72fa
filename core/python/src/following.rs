//! `Features`: what a decoder knows of the weights that it follows.

use std::sync::Arc;

use tunesmith_search::Weights;
use tunesmith_text::{Names, Piece};

/// The features by name, for a decoder that follows the weights; nothing where ids are enough.
#[derive(Default)]
pub struct Features {
    pub names: Names,
    /// Of each name, for the decoder.
    keys: Vec<u64>,
    /// The weights as the decoder has them.
    pub told: Vec<f64>,
    pub weights: Arc<Weights>,
}

impl Features {
    pub fn new(names: &[String]) -> Self {
        let mut features = Features::default();
        for name in names {
            features.names.intern(name);
        }
        features.complete();
        features
    }

    /// Takes in names that are new.
    pub fn complete(&mut self) {
        let new = self.keys.len() as u32..self.names.len() as u32;
        let names = new.filter_map(|id| self.names.name(id));
        self.keys.extend(names.map(|name| Piece::of(name).key()));
        self.told.resize(self.keys.len(), 0.0);
    }

    /// Forgets the names from id `known` on; the decoder has no weights for them.
    pub fn truncate(&mut self, known: usize) {
        let own = self.keys.drain(known..).zip(self.told.drain(known..));
        let told: Vec<u64> = own.filter(|&(_, told)| told != 0.0).map(|(key, _)| key).collect();
        if !told.is_empty() {
            let table = Arc::make_mut(&mut self.weights);
            told.into_iter().for_each(|key| table.set(key, 0.0));
        }
        self.names.truncate(known);
    }

    /// Tells the decoder which weights have changed.
    pub fn tell(&mut self, weights: &[f64], constants: &[(String, f64)]) {
        let table = Arc::make_mut(&mut self.weights);
        for ((key, told), &weight) in self.keys.iter().zip(&mut self.told).zip(weights) {
            if *told != weight {
                *told = weight;
                table.set(*key, weight);
            }
        }
        constants.iter().for_each(|(name, value)| table.set(Piece::of(name).key(), *value));
    }
}
