//! Arbitrary bytes for every reader of the core: an error or a value, never a panic.
//!
//! `core/formats/fuzz` runs each target under libFuzzer; `tests/smoke.rs` runs all of them with a
//! few damaged inputs. Files with a checksum get a right one first, or nothing behind it would be
//! reached.

mod binary;
mod text;

use std::path::{Path, PathBuf};

/// A reader and an input that it accepts.
pub struct Target {
    pub name: &'static str,
    pub seed: fn() -> Vec<u8>,
    /// Reads the bytes and uses what was read; says whether they were accepted.
    pub run: fn(&[u8]) -> bool,
}

pub const TARGETS: [Target; 17] = [
    Target { name: "lines", seed: || b"a b\nc\n".to_vec(), run: text::lines },
    Target { name: "moses", seed: || b"0 ||| a ||| A= 1 2 ||| 1\n".to_vec(), run: text::moses },
    Target { name: "cdec", seed: || b"0 ||| a ||| A=1 B=2 ||| 1\n".to_vec(), run: text::cdec },
    Target { name: "columns", seed: text::columns_seed, run: text::columns },
    Target { name: "input", seed: text::input_seed, run: text::input },
    Target { name: "classes", seed: || b"a\t1\nb\t2\n".to_vec(), run: text::classes },
    Target { name: "frequent", seed: text::frequent_seed, run: text::frequent },
    Target { name: "links", seed: || b"0-0 1-2\n\n2-1\n".to_vec(), run: text::links },
    Target { name: "corpus", seed: text::corpus_seed, run: text::corpus },
    Target { name: "phrases", seed: text::phrases_seed, run: text::phrases },
    Target { name: "reordering", seed: text::reordering_seed, run: text::reordering },
    Target { name: "grammar", seed: text::grammar_seed, run: text::grammar },
    Target { name: "arpa", seed: text::arpa_seed, run: text::arpa },
    Target { name: "sentences", seed: || b"a b\nb a b\n".to_vec(), run: text::sentences },
    Target { name: "lm", seed: binary::lm_seed, run: binary::lm },
    Target { name: "rules", seed: binary::rules_seed, run: binary::rules },
    Target { name: "forests", seed: binary::forests_seed, run: binary::forests },
];

/// Runs a target by name.
pub fn run(name: &str, bytes: &[u8]) {
    let target = TARGETS.iter().find(|target| target.name == name).expect("a target");
    (target.run)(bytes);
}

/// A folder that goes away with the value.
struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Folder {
        Folder(tempfile::tempdir().expect("a temporary folder"))
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn file(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.at(name);
        std::fs::write(&path, bytes).expect("a temporary file");
        path
    }
}

fn read_back(path: &Path) -> Vec<u8> {
    std::fs::read(path).expect("a file that was just written")
}

/// The files in an input, which zeros divide.
fn parts<const N: usize>(bytes: &[u8]) -> [&[u8]; N] {
    let mut parts = bytes.splitn(N, |&byte| byte == 0);
    std::array::from_fn(|_| parts.next().unwrap_or_default())
}
