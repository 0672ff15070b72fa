//! `tunesmith._core`: one file per bound type, nothing but conversion.

mod align;
mod anchored;
mod blocks;
mod contest;
mod corpus;
mod decoder;
mod error;
mod examples;
mod features;
mod following;
mod forest;
mod formats;
mod learner;
mod lm;
mod metric;
mod pools;
mod rules;
mod sampler;
mod search;
mod select;
mod selected;
mod structured;
mod text;
mod threads;
mod update;
mod watch;

use pyo3::prelude::*;

#[pymodule]
fn _core(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    metric::register(module)?;
    formats::register(module)?;
    text::register(module)?;
    lm::register(module)?;
    align::register(module)?;
    rules::register(module)?;
    decoder::register(module)?;
    module.add_class::<contest::Contest>()?;
    features::register(module)?;
    module.add_class::<examples::Examples>()?;
    module.add_class::<examples::Near>()?;
    structured::register(module)?;
    module.add_class::<pools::Pools>()?;
    module.add_class::<forest::Forests>()?;
    module.add_class::<forest::Segments>()?;
    module.add_class::<select::Selector>()?;
    module.add_class::<update::Update>()?;
    module.add_class::<learner::Learner>()?;
    module.add_class::<sampler::Constraints>()?;
    module.add_class::<selected::Selected>()?;
    module.add_class::<sampler::Sampler>()?;
    module.add_class::<search::LineSearch>()?;
    module.add_class::<search::Expectation>()?;
    module.add_class::<search::Walker>()?;
    module.add_function(wrap_pyfunction!(search::sweep, module)?)?;
    module.add_function(wrap_pyfunction!(search::worth, module)?)?;
    module.add_function(wrap_pyfunction!(learner::permutation, module)?)?;
    module.add_class::<anchored::Blocks>()?;
    module.add_function(wrap_pyfunction!(anchored::margin_update, module)?)?;
    module.add_function(wrap_pyfunction!(anchored::error_update, module)?)?;
    Ok(())
}
