//! Pools back into a `|||` list.

use std::fmt::Write as _;
use std::path::Path;

use tunesmith_space::Pools;
use tunesmith_text::{AtomicWriter, Error, Result};

use crate::Format;

/// What is written and how.
#[derive(Debug, Clone, Default)]
pub struct Layout<'a> {
    pub format: Format,
    /// Hypotheses of each sentence in a new order, as positions in the whole; all of them in
    /// their own order where nothing is given.
    pub order: Option<&'a [usize]>,
    /// One more named score per hypothesis, by position.
    pub scores: Vec<(&'a str, &'a [f64])>,
    /// Keys instead of numbers in the first field.
    pub keyed: bool,
    pub first_id: u64,
}

/// Writes a list that [`Reader`](crate::Reader) reads back to the same pools, but for empty lists
/// at the end. Columns become features; a missing score becomes 0. Refuses what a line cannot
/// hold: a line break in a text, white space in a name.
pub fn write(pools: &Pools, path: impl AsRef<Path>, layout: &Layout<'_>) -> Result<()> {
    let file = path.as_ref().display().to_string();
    let mut out = AtomicWriter::create(path)?;
    let names = Spelling::new(pools, layout, &file)?;
    let columns: Vec<Vec<f64>> =
        (0..pools.columns.len()).map(|column| pools.column(column).collect()).collect();
    let own: Vec<usize>;
    let order = match layout.order {
        Some(order) => order,
        None => {
            own = (0..pools.hypotheses()).collect();
            &own
        }
    };
    check(pools, order, layout).map_err(|error| error.at(&file, None))?;
    let mut line = String::new();
    let mut written = 0;
    let mut sentence = 0;
    for &hypothesis in order {
        while !pools.list(sentence).contains(&hypothesis) {
            sentence += 1;
        }
        line.clear();
        let _ = match pools.keys.get(sentence).filter(|_| layout.keyed) {
            Some(key) => write!(line, "{key} ||| "),
            None => write!(line, "{} ||| ", sentence as u64 + layout.first_id),
        };
        written += 1;
        for text in [pools.text(hypothesis), pools.extra(hypothesis)] {
            if text.contains('\n') {
                return Err(Error::new("a text holds a line break, which a list cannot")
                    .at(&file, Some(written))
                    .remedy("write JSONL, or replace the line break"));
            }
        }
        line.push_str(pools.text(hypothesis));
        let score = pools.score(hypothesis);
        let score = if score.is_nan() { 0.0 } else { score };
        if layout.format == Format::Travatar {
            let _ = write!(line, " ||| {score}");
        }
        line.push_str(" |||");
        names.features(pools, hypothesis, layout.format, &mut line);
        for (name, cells) in names.columns.iter().zip(&columns) {
            names.value(name, cells[hypothesis], layout.format, &mut line);
        }
        for (name, scores) in &layout.scores {
            names.value(name, scores[hypothesis], layout.format, &mut line);
        }
        if layout.format != Format::Travatar {
            let _ = write!(line, " ||| {score}");
        }
        if !pools.extra(hypothesis).is_empty() {
            line.push_str(" ||| ");
            line.push_str(pools.extra(hypothesis));
        }
        line.push('\n');
        out.write_all(line.as_bytes())?;
    }
    out.finish()
}

/// A new order must name every hypothesis of a sentence at most once and keep to the order of
/// the sentences.
fn check(pools: &Pools, order: &[usize], layout: &Layout<'_>) -> Result<()> {
    let mut sentence = 0;
    let mut used = vec![false; pools.hypotheses()];
    for &hypothesis in order {
        let fresh = used.get_mut(hypothesis).is_some_and(|used| !std::mem::replace(used, true));
        while fresh && sentence < pools.sentences() && pools.list(sentence).end <= hypothesis {
            sentence += 1;
        }
        if !fresh || hypothesis < pools.list(sentence).start {
            return Err(Error::new(format!(
                "the new order has hypothesis {hypothesis} out of place"
            ))
            .remedy("give each hypothesis once, sentence by sentence"));
        }
    }
    if layout.scores.iter().any(|(_, scores)| scores.len() != pools.hypotheses()) {
        return Err(Error::new("the new scores are not one per hypothesis")
            .remedy("give as many scores as there are hypotheses"));
    }
    Ok(())
}

/// How each feature is written, worked out once per file.
struct Spelling {
    labels: Vec<Label>,
    columns: Vec<String>,
}

struct Label {
    name: String,
    /// For `TM0_2`: the length of `TM0`, and 2.
    part: Option<(usize, u32)>,
}

impl Spelling {
    fn new(pools: &Pools, layout: &Layout<'_>, file: &str) -> Result<Self> {
        let columns: Vec<String> = pools.columns.iter().map(str::to_owned).collect();
        let scores = layout.scores.iter().map(|(name, _)| *name);
        let others: Vec<&str> = columns.iter().map(String::as_str).chain(scores).collect();
        for (index, name) in pools.names.iter().chain(others.iter().copied()).enumerate() {
            let spaced = name.chars().any(|letter| letter.is_ascii_whitespace());
            let again = index >= pools.names.len()
                && (pools.names.id(name).is_some()
                    || others[..index - pools.names.len()].contains(&name));
            if name.is_empty() || spaced || again {
                let why = if again { "is there already" } else { "cannot be written" };
                return Err(Error::new(format!(
                    "the name {name:?} {why} in a {} list",
                    layout.format.name()
                ))
                .at(file, None)
                .remedy("choose another name, without white space"));
            }
        }
        let labels = pools
            .names
            .iter()
            .map(|name| Label { name: name.to_owned(), part: part(name) })
            .collect();
        Ok(Spelling { labels, columns })
    }

    fn features(&self, pools: &Pools, hypothesis: usize, format: Format, line: &mut String) {
        let (ids, values) = pools.features(hypothesis);
        let mut at = 0;
        while at < ids.len() {
            let run = match format {
                Format::Moses => self.run(&ids[at..]),
                Format::Cdec | Format::Travatar => 1,
            };
            let label = &self.labels[ids[at] as usize];
            let name = match label.part {
                Some((length, _)) if run > 1 => &label.name[..length],
                _ => &label.name,
            };
            let _ = write!(line, " {name}=");
            for value in &values[at..at + run] {
                if format == Format::Moses {
                    line.push(' ');
                }
                let _ = write!(line, "{value}");
            }
            at += run;
        }
    }

    /// How many of the next features are `X_1`, `X_2`… and can share one label.
    fn run(&self, ids: &[u32]) -> usize {
        let stem = |id: u32| {
            let label = &self.labels[id as usize];
            label.part.map(|(length, number)| (&label.name[..length], number))
        };
        let Some((base, 1)) = stem(ids[0]) else { return 1 };
        1 + ids[1..]
            .iter()
            .zip(2..)
            .take_while(|&(&id, number)| stem(id) == Some((base, number)))
            .count()
    }

    fn value(&self, name: &str, value: f64, format: Format, line: &mut String) {
        if value.is_finite() {
            let gap = if format == Format::Moses { " " } else { "" };
            let _ = write!(line, " {name}={gap}{value}");
        }
    }
}

fn part(name: &str) -> Option<(usize, u32)> {
    let (base, digits) = name.rsplit_once('_')?;
    let plain = digits.bytes().all(|byte| byte.is_ascii_digit()) && !digits.starts_with('0');
    let number = plain.then(|| digits.parse().ok()).flatten()?;
    (!base.is_empty()).then_some((base.len(), number))
}
