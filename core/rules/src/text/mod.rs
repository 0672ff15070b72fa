//! Tables as text: Moses and cdec.

mod build;
mod cdec;
mod general;
mod moses;
mod walk;

pub use build::Imported;
pub use cdec::{GLUE, export_cdec, import_cdec};
pub use moses::{export_phrases, export_reordering, import_moses};
