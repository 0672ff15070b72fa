//! What both targets do with their bytes.

use std::io::Cursor;

use tunesmith_formats::{Format, Options, Reader};
use tunesmith_text::Lines;

/// Reads strictly and leniently, whole and in parts.
pub fn read(bytes: &[u8], format: Format) {
    for (skip_bad, keyed, limit) in
        [(false, false, None), (true, false, Some(2)), (true, true, None)]
    {
        let Ok(lines) = Lines::new("fuzz", Cursor::new(bytes.to_vec())) else { return };
        let options = Options { format, skip_bad, keyed, ..Options::default() };
        let Ok(mut reader) = Reader::new(lines, options) else { return };
        while let Ok(Some(pools)) = reader.read(limit) {
            assert!(pools.values().iter().all(|value| value.is_finite()));
        }
    }
}
