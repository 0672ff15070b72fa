//! The binary file: one image that is written once and mapped ever after.
//!
//! All numbers are little-endian. Four lines of header are followed by unigrams, inner n-grams,
//! longest n-grams, the table of words, the ends of words and their letters, each from the start
//! of a line. The header has a checksum of its own and one of everything behind it.

use std::fs::File;
use std::path::Path;

use tunesmith_text::{AtomicWriter, Error, Mapped, Names, Result};

use crate::MAX_ORDER;
use crate::grams::{Grams, Order};
use crate::line::{LINE, Line, bytes, checksum, lines_for, numbers_mut};
use crate::table::Prob;
use crate::vocabulary;

#[cfg(target_endian = "big")]
compile_error!("models are mapped as little-endian memory");

pub const MAGIC: &[u8; 8] = b"tunes-lm";
const VERSION: u64 = 1;
const HEADER: usize = 4;

/// What the header says. Its numbers are 64 bits wide, in the order of [`Layout::write`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Layout {
    pub order: usize,
    pub seed: u64,
    pub begin: u32,
    pub end: u32,
    /// N-grams of each order, without those that were put in.
    pub counts: [usize; MAX_ORDER],
    /// Lines of the six parts.
    pub parts: [usize; 6],
}

impl Layout {
    pub fn of(grams: &Grams, blanks: &[Order], seed: u64) -> Self {
        debug_assert_eq!(grams.order(), blanks.len());
        let mut counts = [0; MAX_ORDER];
        for (count, order) in counts.iter_mut().zip(&grams.orders) {
            *count = order.values.len();
        }
        Layout {
            order: grams.order(),
            seed,
            begin: grams.begin,
            end: grams.end,
            counts,
            ..Layout::default()
        }
    }

    fn write(&self, sum: u64) -> [Line; HEADER] {
        let mut lines = [Line::ZERO; HEADER];
        let mut fields = vec![u64::from_le_bytes(*MAGIC), VERSION, self.order as u64, self.seed];
        fields.extend([u64::from(self.begin), u64::from(self.end)]);
        fields.extend(self.counts.iter().map(|&count| count as u64));
        fields.extend(self.parts.iter().map(|&count| count as u64));
        fields.push(sum);
        for (at, field) in fields.into_iter().enumerate() {
            lines[at / 8].set_wide(at % 8, field);
        }
        let own = checksum(&lines);
        lines[HEADER - 1].set_wide(7, own);
        lines
    }

    /// The header and the sum of what follows it.
    fn read(lines: &[Line]) -> std::result::Result<(Self, u64), String> {
        let mut header: [Line; HEADER] = lines
            .get(..HEADER)
            .and_then(|lines| lines.try_into().ok())
            .ok_or("it ends inside its header")?;
        if header[0].wide(1) != VERSION {
            return Err(format!("it has version {}, not {VERSION}", header[0].wide(1)));
        }
        let own = header[HEADER - 1].wide(7);
        header[HEADER - 1].set_wide(7, 0);
        if checksum(&header) != own {
            return Err("the checksum of its header is wrong".into());
        }
        let field = |at: usize| header[at / 8].wide(at % 8);
        let layout = Layout {
            order: field(2) as usize,
            seed: field(3),
            begin: field(4) as u32,
            end: field(5) as u32,
            counts: std::array::from_fn(|at| field(6 + at) as usize),
            parts: std::array::from_fn(|at| field(12 + at) as usize),
        };
        let words = layout.counts[0];
        let sound = (1..=MAX_ORDER).contains(&layout.order)
            && words < u32::MAX as usize
            && (layout.begin as usize) < words
            && (layout.end as usize) < words
            && layout.parts[0] == lines_for(words * 8)
            && layout.parts[4] == lines_for(words * 4)
            && (layout.order < 2 || layout.parts[2] > 0)
            && (layout.order < 3 || layout.parts[1] > 0);
        if !sound {
            return Err("its header contradicts itself".into());
        }
        let size = layout.parts.iter().try_fold(HEADER, |sum, &part| sum.checked_add(part));
        match size {
            Some(size) if size == lines.len() => Ok((layout, field(18))),
            Some(size) if size > lines.len() => Err(format!(
                "it has {} of {} bytes: it is truncated",
                lines.len() * LINE,
                size.saturating_mul(LINE)
            )),
            _ => Err("it is longer than its header says".into()),
        }
    }
}

enum Memory {
    Own(Vec<Line>),
    Mapped(Mapped),
}

/// The lines of a model, in memory or mapped, whose header was checked.
pub struct Image {
    memory: Memory,
    pub layout: Layout,
}

impl Image {
    pub fn lines(&self) -> &[Line] {
        match &self.memory {
            Memory::Own(lines) => lines,
            Memory::Mapped(map) => as_lines(map),
        }
    }

    /// One of the six parts.
    pub fn part(&self, which: usize) -> &[Line] {
        let start = HEADER + self.layout.parts[..which].iter().sum::<usize>();
        &self.lines()[start..start + self.layout.parts[which]]
    }

    pub fn assemble(
        layout: &Layout,
        names: &Names,
        unigrams: Vec<(Prob, u32)>,
        inner: Vec<Line>,
        longest: Vec<Line>,
    ) -> Result<Self> {
        let words = vocabulary::lay_out(names)?;
        let mut first = vec![Line::ZERO; lines_for(unigrams.len() * 8)];
        for (pair, (prob, backoff)) in numbers_mut(&mut first).chunks_exact_mut(2).zip(unigrams) {
            pair.copy_from_slice(&[prob.0, backoff]);
        }
        let parts = [first, inner, longest, words.table, words.ends, words.letters];
        let mut layout = layout.clone();
        layout.parts = std::array::from_fn(|at| parts[at].len());
        let mut lines = vec![Line::ZERO; HEADER];
        lines.reserve_exact(layout.parts.iter().sum());
        for part in parts {
            lines.extend_from_slice(&part);
        }
        let sum = checksum(&lines[HEADER..]);
        lines[..HEADER].copy_from_slice(&layout.write(sum));
        Ok(Image { memory: Memory::Own(lines), layout })
    }

    /// Maps a file. Refuses one that is truncated or changed in any bit.
    pub fn open(path: &Path) -> Result<Self> {
        let name = path.display().to_string();
        let map = Mapped::open(path)?;
        let bad = |message: String| {
            Error::new(format!("cannot be used as a language model: {message}"))
                .at(&name, None)
                .remedy("make it again with tunesmith lm binarize")
        };
        if map.len() % LINE != 0 {
            return Err(bad(format!("{} bytes are no whole model: it is truncated", map.len())));
        }
        let lines = as_lines(&map);
        let (layout, sum) = Layout::read(lines).map_err(bad)?;
        if checksum(&lines[HEADER..]) != sum {
            return Err(bad("its checksum is wrong".into()));
        }
        Ok(Image { memory: Memory::Mapped(map), layout })
    }

    /// Writes the file whole or not at all.
    pub fn save(&self, path: &Path) -> Result<()> {
        if matches!(path.extension().and_then(|end| end.to_str()), Some("gz" | "zst")) {
            return Err(Error::new("a compressed binary cannot be mapped")
                .at(path.display().to_string(), None)
                .remedy("choose a name without .gz or .zst, such as lm.tlm"));
        }
        let mut out = AtomicWriter::create(path)?;
        out.write_all(bytes(self.lines()))?;
        out.finish()
    }
}

/// A file in memory starts on a page, so whole lines can be read in place.
fn as_lines(map: &[u8]) -> &[Line] {
    assert_eq!(map.as_ptr() as usize % LINE, 0, "the start of a page");
    // SAFETY: aligned as checked, inside the slice, and any bits make a line.
    unsafe { std::slice::from_raw_parts(map.as_ptr().cast(), map.len() / LINE) }
}

/// Whether a file begins as a binary does.
pub fn is_binary(path: &Path) -> bool {
    use std::io::Read;
    // What is read from a pipe is gone.
    if !std::fs::metadata(path).is_ok_and(|meta| meta.is_file()) {
        return false;
    }
    let mut head = [0; MAGIC.len()];
    let read = File::open(path).and_then(|mut file| file.read_exact(&mut head));
    read.is_ok() && &head == MAGIC
}
