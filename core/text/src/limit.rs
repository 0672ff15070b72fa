//! How long a line may be before its file is refused.

use crate::{Error, Result};

/// The environment variable that sets another limit.
const VARIABLE: &str = "TUNESMITH_LINE_LIMIT";
const BYTES: usize = 16 << 20;

/// The most bytes that a line may have. Refuses a setting that is not a number of bytes.
pub fn line_limit() -> Result<usize> {
    let Some(told) = std::env::var_os(VARIABLE) else { return Ok(BYTES) };
    let bytes = told.to_str().and_then(|text| text.parse().ok()).filter(|&bytes| bytes > 0);
    bytes.ok_or_else(|| {
        Error::new(format!("the environment variable {VARIABLE} is not a number of bytes"))
            .remedy(format!("set it to {BYTES}, for instance, or unset it"))
    })
}

/// The error for a line that is longer than `limit`.
pub fn too_long(file: &str, line: u64, limit: usize) -> Error {
    Error::new(format!("the line is longer than {limit} bytes")).at(file, Some(line)).remedy(
        format!("check that this is the right file; for lines this long, set {VARIABLE} to more"),
    )
}
