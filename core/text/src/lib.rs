//! Names, word classes, compressed text files and errors that say where and what to do.

mod classes;
mod error;
mod key;
mod limit;
mod lines;
mod mapped;
mod names;
mod number;
mod watch;
mod write;

pub use classes::{Classes, Clustering};
pub use error::{Error, Result};
pub use key::Piece;
pub use limit::{line_limit, too_long};
pub use lines::{Lines, read_packed, utf8};
pub use mapped::{Mapped, tell_bus_errors};
pub use names::Names;
pub use number::{Number, number};
pub use watch::{Progress, Steps, Watch};
pub use write::AtomicWriter;
