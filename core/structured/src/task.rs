//! The protocol between the learner and a task.

use std::hash::Hash;

use crate::{Contexts, Fault};

/// An output that is built by actions, one after the other.
///
/// A state holds what actions, features and the gold actions depend on, and nothing else: states
/// that are equal have the same future, so the search keeps the better of two derivations that
/// lead to the same state. The output is read from the actions.
pub trait Task: Send + Sync {
    /// What is given, and in training also the right output.
    type Input: Send + Sync;
    type State: Clone + Eq + Hash + Send + Sync;
    /// What actions and features see of a state: they are the same for states of the same view.
    type View: Eq + Hash;

    fn start(&self, input: &Self::Input) -> Result<Self::State, Fault>;

    /// Whether the output is complete.
    fn is_end(&self, input: &Self::Input, state: &Self::State) -> Result<bool, Fault>;

    fn view(&self, state: &Self::State) -> Self::View;

    /// Lists the actions of a state that is not an end; an empty list is an error.
    fn actions(
        &self,
        input: &Self::Input,
        state: &Self::State,
        out: &mut Vec<u32>,
    ) -> Result<(), Fault>;

    fn apply(
        &self,
        input: &Self::Input,
        state: &Self::State,
        action: u32,
    ) -> Result<Self::State, Fault>;

    /// Names the contexts of a state. Each of them is a feature together with each action.
    fn contexts(
        &self,
        _input: &Self::Input,
        _state: &Self::State,
        _out: &mut Contexts<'_>,
    ) -> Result<(), Fault> {
        Ok(())
    }

    /// Names the features of one action in a state, beside those that its contexts make.
    fn features(
        &self,
        _input: &Self::Input,
        _state: &Self::State,
        _action: u32,
        _out: &mut Contexts<'_>,
    ) -> Result<(), Fault> {
        Ok(())
    }

    /// Whether [`features`](Self::features) names anything.
    fn has_features(&self) -> bool {
        false
    }

    /// Whether a derivation that was gold so far stays gold with the action. There may be several
    /// such actions, and some may lead nowhere: the learner leaves out what cannot be finished.
    fn is_gold(&self, input: &Self::Input, state: &Self::State, action: u32)
    -> Result<bool, Fault>;

    /// Looks up contexts that depend on the input only, once for all searches.
    fn prepare(&self, _input: &mut Self::Input, _contexts: &mut Contexts<'_>) {}
}
