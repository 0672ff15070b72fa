//! Damages inputs of every target for a number of executions or seconds, and counts.
//!
//! ```text
//! cargo run --release -p tunesmith-hostile --bin torture -- --executions 1000000
//! ```
//! An input is kept and damaged further if something new became of it. A panic, more than
//! [`MEMORY`] bytes or more than [`PATIENCE`] seconds for an input is a finding: the input is saved
//! and the program ends with 1. What kills the process leaves its input in `<target>.running`.

use std::alloc::{GlobalAlloc, Layout, System};
use std::collections::HashSet;
use std::fs::{self, File};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use tunesmith_hostile::{Random, TARGETS, Target, damaged, noted};

/// Bytes that an input of a few thousand may take.
const MEMORY: usize = 512 << 20;
/// Seconds for one input.
const PATIENCE: u64 = 20;
/// Inputs that are damaged further.
const KEPT: usize = 500;
/// Findings of a target after which it is left alone.
const ENOUGH: usize = 5;

/// Counts the bytes of all threads.
struct Counting;

static TAKEN: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every call goes on to the system's allocator with the arguments that it came with.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let taken = TAKEN.fetch_add(layout.size(), Ordering::Relaxed) + layout.size();
        PEAK.fetch_max(taken, Ordering::Relaxed);
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        TAKEN.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(place, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

struct Options {
    executions: u64,
    seconds: u64,
    seed: u64,
    threads: usize,
    folder: PathBuf,
    results: Option<PathBuf>,
    targets: Vec<String>,
    inputs: Vec<PathBuf>,
}

fn options() -> Result<Options, String> {
    let mut options = Options {
        executions: u64::MAX,
        seconds: u64::MAX,
        seed: 1,
        threads: 1,
        folder: PathBuf::from("target/torture"),
        results: None,
        targets: Vec::new(),
        inputs: Vec::new(),
    };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let value = words.next().ok_or_else(|| format!("{word} wants a value"))?;
        let number = || value.parse::<u64>().map_err(|_| format!("{word} {value}: no number"));
        match word.as_str() {
            "--executions" => options.executions = number()?,
            "--seconds" => options.seconds = number()?,
            "--seed" => options.seed = number()?,
            "--threads" => options.threads = number()?.max(1) as usize,
            "--crashes" => options.folder = PathBuf::from(value),
            "--results" => options.results = Some(PathBuf::from(value)),
            "--target" => options.targets.push(value),
            "--input" => options.inputs.push(PathBuf::from(value)),
            _ => return Err(format!("no option {word}")),
        }
    }
    if let Some(name) =
        options.targets.iter().find(|name| TARGETS.iter().all(|target| target.name != **name))
    {
        return Err(format!("no target {name}"));
    }
    if options.executions == u64::MAX && options.seconds == u64::MAX && options.inputs.is_empty() {
        return Err("give --executions or --seconds, both for each target".into());
    }
    Ok(options)
}

/// What one thread is doing, for the one that watches.
#[derive(Default)]
struct Doing {
    /// Seconds since the start when the input began, plus one; 0 while there is none.
    since: AtomicU64,
    input: Mutex<(String, Vec<u8>)>,
}

struct Outcome {
    name: &'static str,
    executions: u64,
    accepted: u64,
    kept: usize,
    seconds: f64,
    findings: usize,
}

fn main() -> ExitCode {
    let options = match options() {
        Ok(options) => options,
        Err(message) => {
            eprintln!("error: {message}");
            return ExitCode::from(2);
        }
    };
    fs::create_dir_all(&options.folder).expect("a folder for findings");
    let wanted = |target: &&Target| {
        options.targets.is_empty() || options.targets.iter().any(|name| name == target.name)
    };
    let targets: Vec<&Target> = TARGETS.iter().filter(wanted).collect();
    if !options.inputs.is_empty() {
        return again(&targets, &options.inputs);
    }
    let seeds: Vec<Vec<u8>> = targets.iter().map(|target| (target.seed)()).collect();
    std::panic::set_hook(Box::new(|_| {}));
    let (next, start) = (AtomicUsize::new(0), Instant::now());
    let doing: Vec<Doing> = (0..options.threads).map(|_| Doing::default()).collect();
    let outcomes = Mutex::new(Vec::new());
    println!("seed {}", options.seed);
    println!(
        "{:16} {:>11} {:>11} {:>6} {:>8}",
        "target", "executions", "accepted", "kept", "found"
    );
    std::thread::scope(|scope| {
        for own in &doing {
            let (targets, seeds, next) = (&targets, &seeds, &next);
            let (outcomes, options) = (&outcomes, &options);
            scope.spawn(move || {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    let Some(target) = targets.get(number) else { break };
                    let outcome = torture(target, &seeds[number], options, own, start);
                    println!(
                        "{:16} {:>11} {:>11} {:>6} {:>8}   {:.0} s",
                        outcome.name,
                        outcome.executions,
                        outcome.accepted,
                        outcome.kept,
                        outcome.findings,
                        outcome.seconds
                    );
                    outcomes.lock().expect("no panic").push(outcome);
                }
                own.since.store(u64::MAX, Ordering::Relaxed);
            });
        }
        scope.spawn(|| watch(&doing, start, &options.folder));
    });
    let outcomes = outcomes.into_inner().expect("no panic");
    let sum = |of: fn(&Outcome) -> u64| outcomes.iter().map(of).sum::<u64>();
    let findings = sum(|outcome| outcome.findings as u64);
    println!(
        "{:16} {:>11} {:>11} {:>6} {:>8}",
        "all",
        sum(|outcome| outcome.executions),
        sum(|outcome| outcome.accepted),
        sum(|outcome| outcome.kept as u64),
        findings
    );
    if let Some(file) = &options.results {
        record(file, &outcomes, start.elapsed()).expect("a file for the results");
    }
    if findings > 0 { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

/// Writes what was done, for `python -m benchmarks.docs`.
fn record(file: &Path, outcomes: &[Outcome], spent: Duration) -> std::io::Result<()> {
    let sum = |of: fn(&Outcome) -> u64| outcomes.iter().map(of).sum::<u64>();
    if let Some(folder) = file.parent() {
        fs::create_dir_all(folder)?;
    }
    let row = format!(
        r#"{{"what": "damaged inputs are refused or read by the core", "cases": {}, "times": {}, "s": {:.0}, "outcome": "{} findings, {} accepted"}}"#,
        outcomes.len(),
        sum(|outcome| outcome.executions),
        spent.as_secs_f64(),
        sum(|outcome| outcome.findings as u64),
        sum(|outcome| outcome.accepted),
    );
    let text = format!(
        "{{\n \"part\": \"readers\",\n \"rows\": [\n  {row}\n ],\n \"claims\": [],\n \"notes\": []\n}}\n"
    );
    fs::write(file, text)
}

/// Runs saved inputs once more, with their panics.
fn again(targets: &[&Target], inputs: &[PathBuf]) -> ExitCode {
    for input in inputs {
        let bytes = fs::read(input).expect("an input");
        for target in targets {
            println!("{} {} {}", target.name, input.display(), (target.run)(&bytes));
        }
    }
    ExitCode::SUCCESS
}

/// Ends the program if an input takes too long, and saves it.
fn watch(doing: &[Doing], start: Instant, folder: &Path) {
    loop {
        std::thread::sleep(Duration::from_millis(200));
        let since: Vec<u64> = doing.iter().map(|one| one.since.load(Ordering::Relaxed)).collect();
        if since.iter().all(|&one| one == u64::MAX) {
            return;
        }
        for (one, since) in doing.iter().zip(since) {
            let now = start.elapsed().as_secs() + 1;
            if since > 0 && since != u64::MAX && now > since + PATIENCE {
                let (name, bytes) = &*one.input.lock().expect("no panic");
                save(folder, name, "slow", bytes);
                eprintln!("error: {name}: an input took more than {PATIENCE} s");
                std::process::exit(1);
            }
        }
    }
}

fn save(folder: &Path, name: &str, what: &str, bytes: &[u8]) {
    let file = folder.join(format!("{name}-{what}-{:08x}", crc32fast::hash(bytes)));
    fs::write(&file, bytes).expect("a file for a finding");
    println!("{name}: {what}: {}", file.display());
}

fn torture(
    target: &Target,
    seed: &[u8],
    options: &Options,
    doing: &Doing,
    start: Instant,
) -> Outcome {
    let began = Instant::now();
    let mut random = Random(options.seed ^ u64::from(crc32fast::hash(target.name.as_bytes())));
    let mut running = Running::new(&options.folder.join(format!("{}.running", target.name)));
    let (mut corpus, mut seen) = (vec![seed.to_vec()], HashSet::new());
    let mut outcome = Outcome {
        name: target.name,
        executions: 0,
        accepted: 0,
        kept: 1,
        seconds: 0.0,
        findings: 0,
    };
    doing.input.lock().expect("no panic").0 = target.name.to_owned();
    let mut messages = HashSet::new();
    while outcome.executions < options.executions && outcome.findings < ENOUGH {
        if outcome.executions.is_multiple_of(64) && began.elapsed().as_secs() >= options.seconds {
            break;
        }
        // The seed as often as all others: most of what can go wrong is near it.
        let from = if random.below(2) == 0 { 0 } else { random.below(corpus.len()) };
        let bytes = match outcome.executions {
            0 => corpus[0].clone(),
            _ => damaged(&corpus[from], &corpus, &mut random),
        };
        running.set(&bytes);
        doing.input.lock().expect("no panic").1.clone_from(&bytes);
        doing.since.store(start.elapsed().as_secs() + 1, Ordering::Relaxed);
        noted();
        let before = TAKEN.load(Ordering::Relaxed);
        PEAK.store(before, Ordering::Relaxed);
        let ended = catch_unwind(AssertUnwindSafe(|| (target.run)(&bytes)));
        doing.since.store(0, Ordering::Relaxed);
        outcome.executions += 1;
        match ended {
            Ok(accepted) => {
                outcome.accepted += u64::from(accepted);
                if seen.insert((accepted, noted())) && corpus.len() < KEPT {
                    corpus.push(bytes.clone());
                }
            }
            Err(panic) => {
                let message = panic
                    .downcast_ref::<String>()
                    .cloned()
                    .or_else(|| panic.downcast_ref::<&str>().map(|text| text.to_string()))
                    .unwrap_or_default();
                let letters: String = message.chars().filter(|one| !one.is_numeric()).collect();
                if messages.insert(letters) {
                    println!("{}: {message}", target.name);
                    save(&options.folder, target.name, "panic", &bytes);
                    outcome.findings += 1;
                }
            }
        }
        if PEAK.load(Ordering::Relaxed).saturating_sub(before) > MEMORY {
            save(&options.folder, target.name, "memory", &bytes);
            outcome.findings += 1;
        }
    }
    running.done();
    outcome.kept = corpus.len();
    outcome.seconds = began.elapsed().as_secs_f64();
    outcome
}

/// The input that is being read, in a file that is there when the process is not.
struct Running {
    path: PathBuf,
    map: memmap2::MmapMut,
}

impl Running {
    fn new(path: &Path) -> Running {
        let file = File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(true)
            .open(path)
            .expect("a file for the running input");
        file.set_len((1 << 16) + 8).expect("a file for the running input");
        // SAFETY: no other process knows the file, and this one maps it once.
        let map = unsafe { memmap2::MmapMut::map_mut(&file) }.expect("a map");
        Running { path: path.to_owned(), map }
    }

    /// The length, then the bytes.
    fn set(&mut self, bytes: &[u8]) {
        let length = bytes.len().min(1 << 16);
        self.map[..8].copy_from_slice(&(length as u64).to_le_bytes());
        self.map[8..8 + length].copy_from_slice(&bytes[..length]);
    }

    fn done(self) {
        let _ = fs::remove_file(&self.path);
    }
}
