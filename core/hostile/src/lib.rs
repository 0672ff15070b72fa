//! Arbitrary bytes for every reader of the core: an error or a value, never a panic.
//!
//! `core/formats/fuzz` runs each target under libFuzzer; `tests/smoke.rs` runs all of them with a
//! few damaged inputs; the program `torture` damages inputs for as long as it is told to. Files with
//! a checksum get a right one first, or nothing behind it would be reached. Targets whose names end
//! in `-parts` take the parts of a file apart and put a file together whose lengths are right, too.

mod binary;
mod damage;
mod decoders;
mod examples;
mod text;
mod whole;

use std::cell::{Cell, RefCell};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

pub use damage::{Random, damaged};
use tunesmith_text::Result;

/// A reader and an input that it accepts.
pub struct Target {
    pub name: &'static str,
    pub seed: fn() -> Vec<u8>,
    /// Reads the bytes and uses what was read; says whether they were accepted.
    pub run: fn(&[u8]) -> bool,
}

pub const TARGETS: [Target; 26] = [
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
    Target { name: "lm-parts", seed: whole::lm_seed, run: whole::lm },
    Target { name: "rules-parts", seed: whole::rules_seed, run: whole::rules },
    Target { name: "segment", seed: examples::segment_seed, run: examples::segment },
    Target { name: "segment-parts", seed: examples::parts_seed, run: examples::parts },
    Target { name: "structured", seed: examples::structured_seed, run: examples::structured },
    Target { name: "decode-phrases", seed: decoders::phrases_seed, run: decoders::phrases },
    Target { name: "decode-rules", seed: decoders::rules_seed, run: decoders::rules },
    Target { name: "decode-lm", seed: whole::lm_seed, run: decoders::lm },
    Target { name: "decode-text", seed: decoders::text_seed, run: decoders::text },
];

/// Runs a target by name.
pub fn run(name: &str, bytes: &[u8]) {
    let target = TARGETS.iter().find(|target| target.name == name).expect("a target");
    (target.run)(bytes);
}

thread_local! {
    static PLACE: RefCell<Option<tempfile::TempDir>> = const { RefCell::new(None) };
    static FOLDERS: Cell<usize> = const { Cell::new(0) };
    static NOTED: Cell<u64> = const { Cell::new(0) };
}

/// Files that go away with the value, in a folder that the thread keeps: to make one for each
/// input would take longer than to read the input.
struct Folder {
    place: PathBuf,
    number: usize,
    names: RefCell<Vec<PathBuf>>,
}

impl Folder {
    fn new() -> Folder {
        let number = FOLDERS.get();
        FOLDERS.set(number + 1);
        let place = PLACE.with_borrow_mut(|place| {
            let folder =
                place.get_or_insert_with(|| tempfile::tempdir().expect("a temporary folder"));
            folder.path().to_owned()
        });
        Folder { place, number, names: RefCell::default() }
    }

    fn at(&self, name: &str) -> PathBuf {
        let path = self.place.join(format!("{}.{name}", self.number));
        self.names.borrow_mut().push(path.clone());
        path
    }

    fn file(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.at(name);
        std::fs::write(&path, bytes).expect("a temporary file");
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        for name in self.names.borrow().iter() {
            let _ = std::fs::remove_file(name);
        }
    }
}

/// What a reader gave, with a note of the error that it gave instead.
fn kept<T>(result: Result<T>) -> Option<T> {
    match result {
        Ok(value) => Some(value),
        Err(error) => {
            // Two errors are of one kind if they differ in numbers and quotations only.
            let mut quoted = false;
            let letters = error.message.chars().filter(|&letter| {
                quoted ^= letter == '"' || letter == '`';
                !quoted && letter.is_ascii_alphabetic()
            });
            note(letters.collect::<String>());
            None
        }
    }
}

/// Adds to what [`noted`] tells of the input.
fn note(fact: impl Hash) {
    let mut hasher = DefaultHasher::new();
    (NOTED.get(), fact).hash(&mut hasher);
    NOTED.set(hasher.finish());
}

/// A number that tells apart what became of inputs on this thread since it was last asked for.
pub fn noted() -> u64 {
    NOTED.replace(0)
}

fn read_back(path: &Path) -> Vec<u8> {
    std::fs::read(path).expect("a file that was just written")
}

/// The files in an input, which zeros divide.
fn parts<const N: usize>(bytes: &[u8]) -> [&[u8]; N] {
    let mut parts = bytes.splitn(N, |&byte| byte == 0);
    std::array::from_fn(|_| parts.next().unwrap_or_default())
}
