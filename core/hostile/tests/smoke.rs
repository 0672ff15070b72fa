//! A few damaged inputs for every target, and a fuzz target for each.

use proptest::prelude::*;
use proptest::sample::Index;
use proptest::test_runner::{Config, TestRunner};
use tunesmith_hostile::{TARGETS, Target};

#[test]
fn every_seed_is_accepted() {
    for target in &TARGETS {
        assert!((target.run)(&(target.seed)()), "{}", target.name);
    }
}

#[test]
fn damaged_inputs_never_panic() {
    let edits = prop::collection::vec((any::<Index>(), 0..5u8, any::<u8>()), 1..6);
    for target in &TARGETS {
        let seed = (target.seed)();
        let mut runner = TestRunner::new(Config::with_cases(150));
        let outcome = runner.run(&edits, |edits| {
            let mut bytes = seed.clone();
            for (at, how, byte) in edits {
                let at = at.index(bytes.len() + 1);
                match how {
                    0 => bytes.truncate(at.max(1)),
                    1 => bytes.insert(at, byte),
                    2 if at < bytes.len() => drop(bytes.remove(at)),
                    3 if at < bytes.len() => bytes[at] ^= 1 << (byte % 8),
                    _ if at < bytes.len() => bytes[at] = byte,
                    _ => {}
                }
            }
            (target.run)(&bytes);
            Ok(())
        });
        assert!(outcome.is_ok(), "{}: {}", target.name, outcome.unwrap_err());
    }
}

/// Inputs that once were too much, each named after its target.
#[test]
fn old_findings_stay_mended() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/findings");
    let mut count = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        let of = |target: &&Target| name.starts_with(target.name);
        // The longest name that fits: some targets are named after others.
        let target = TARGETS.iter().filter(of).max_by_key(|target| target.name.len());
        (target.expect("a target").run)(&std::fs::read(&path).unwrap());
        count += 1;
    }
    assert!(count > 0);
}

#[test]
fn every_target_can_be_fuzzed() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../formats/fuzz");
    let listed = std::fs::read_to_string(format!("{folder}/Cargo.toml")).unwrap();
    for target in &TARGETS {
        assert!(listed.contains(&format!("path = \"fuzz_targets/{}.rs\"", target.name)));
        let path = format!("{folder}/fuzz_targets/{}.rs", target.name);
        assert!(std::fs::read_to_string(path).unwrap().contains(&format!("\"{}\"", target.name)));
    }
    assert_eq!(listed.matches("[[bin]]").count(), TARGETS.len());
}
