//! The n-best formats that are read and written at the speed of the disk: Moses, cdec and Travatar.

mod features;
mod fields;
mod read;
mod write;

pub use read::{Options, Reader, Skip};
pub use write::{Layout, write};

/// How the features field of a `|||` list is spelled, and where it stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Format {
    /// `LM0= -44.1 TM0= -1 -2 -3`: a label, then its values; or values without any label.
    #[default]
    Moses,
    /// `LanguageModel=-19.1 Glue=7`: one value per name.
    Cdec,
    /// As cdec, but the score stands before the features: `id ||| text ||| score ||| features`.
    Travatar,
}

impl Format {
    pub fn name(self) -> &'static str {
        match self {
            Format::Moses => "Moses",
            Format::Cdec => "cdec",
            Format::Travatar => "Travatar",
        }
    }
}
