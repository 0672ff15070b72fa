//! Arbitrary bytes as a Cdec list: an error or pools, never a panic.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tunesmith_formats::Format;

mod read;

fuzz_target!(|bytes: &[u8]| read::read(bytes, Format::Cdec));
