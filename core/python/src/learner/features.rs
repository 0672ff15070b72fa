//! Ids of a learner's features, and spaces with the same ids.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use tunesmith_space::{Forests as CoreForests, PoolsBuilder};

use super::Learner;
use crate::corpus::Spaces;
use crate::following::Features;
use crate::forest::Forests;
use crate::pools::{Parts, Pools};
use crate::update::fault;

impl Learner {
    /// Gives the features the ids that they have in `names`, whose others are new.
    pub(super) fn rearrange(&mut self, names: Features) -> PyResult<()> {
        let own = std::mem::replace(&mut self.features, names);
        let place = |name: &str| {
            let id = self.features.names.id(name);
            id.ok_or_else(|| PyValueError::new_err(format!("the feature {name} is missing")))
        };
        let places: Vec<u32> = own.names.iter().map(place).collect::<PyResult<_>>()?;
        self.features.weights = own.weights;
        for (&place, &told) in places.iter().zip(&own.told) {
            self.features.told[place as usize] = told;
        }
        self.resize(&places)
    }

    /// As many weights as there are names; those there were go to `places`.
    pub(super) fn resize(&mut self, places: &[u32]) -> PyResult<()> {
        let features = self.features.names.len();
        self.model.rearrange(places, features);
        self.update.rearrange(places, features).map_err(fault)
    }

    pub(super) fn take_spaces<'py>(
        &mut self,
        py: Python<'py>,
        spaces: Spaces<'py>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let before = self.features.names.len();
        let names = &mut self.features.names;
        let taken = match spaces {
            Spaces::Lists(pools) => {
                let pools = pools.get();
                let taken = py.detach(|| match &*pools.parts() {
                    Some(Parts { dense, lists }) => {
                        for name in dense {
                            names.intern(name);
                        }
                        PoolsBuilder::joined(lists, names)
                    }
                    None => pools.inner().renamed(names),
                });
                Bound::new(py, Pools::new(taken))?.into_any()
            }
            Spaces::Forests(forests) => {
                let CoreForests { forests, names: own } = &*forests.get().inner;
                let map: Vec<u32> = own.iter().map(|name| names.intern(name)).collect();
                let mut taken = CoreForests { forests: forests.clone(), ..Default::default() };
                py.detach(|| taken.forests.iter_mut().for_each(|forest| forest.rename(&map)));
                Bound::new(py, Forests::new(taken))?.into_any()
            }
        };
        self.features.complete();
        if self.features.names.len() > before {
            self.resize(&(0..before as u32).collect::<Vec<_>>())?;
        }
        Ok(taken)
    }
}
