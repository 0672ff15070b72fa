//! Forests as bytes: small, and checked before use.
//!
//! ```text
//! magic, version | names of features | words | forests | checksum
//! ```
//! Numbers are little-endian base-128 unless they are feature values (32-bit floats). Tails are
//! counted back from their head, words are those of the whole file.

use tunesmith_text::Names;

use super::{Edge, Forest, ForestBuilder, Side};

/// What is read from a damaged file: nothing.
type Read<T> = Option<T>;

#[derive(Default)]
pub struct Encoder {
    pub bytes: Vec<u8>,
}

impl Encoder {
    pub fn number(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.bytes.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.bytes.push(value as u8);
    }

    pub fn names(&mut self, names: &Names) {
        self.number(names.len() as u64);
        for name in names.iter() {
            self.number(name.len() as u64);
            self.bytes.extend_from_slice(name.as_bytes());
        }
    }

    fn row(&mut self, (ids, values): (&[u32], &[f32])) {
        self.number(ids.len() as u64);
        let mut last = 0;
        for (&id, value) in ids.iter().zip(values) {
            self.number(u64::from(id - last));
            last = id;
            self.bytes.extend(value.to_le_bytes());
        }
    }

    /// `words` gives the number of each word in the file.
    pub fn forest(&mut self, forest: &Forest, words: impl FnMut(&str) -> u32) {
        self.number(forest.words.len() as u64);
        let words: Vec<u32> = forest.words.iter().map(words).collect();
        words.into_iter().for_each(|word| self.number(u64::from(word)));
        self.number(forest.rules() as u64);
        for rule in 0..forest.rules() as u32 {
            let side = forest.side(rule);
            self.number(side.len() as u64);
            for symbol in side {
                self.number(match symbol {
                    Side::Gap(gap) => gap as u64,
                    Side::Word(word) => u64::from(word) + 2,
                });
            }
            self.row(forest.rule(rule));
        }
        self.number(forest.nodes() as u64);
        for node in 0..forest.nodes() {
            self.number(forest.incoming(node).len() as u64);
            for at in forest.incoming(node) {
                let edge = &forest.edges[at];
                self.number(u64::from(edge.rule));
                self.number(u64::from(edge.label));
                for tail in edge.tails {
                    let back = if tail == Edge::NONE { 0 } else { node as u64 - u64::from(tail) };
                    self.number(back);
                }
                self.row(forest.own(at));
            }
        }
    }
}

pub struct Decoder<'a> {
    bytes: &'a [u8],
}

impl<'a> Decoder<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        Decoder { bytes }
    }

    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    fn take(&mut self, count: usize) -> Read<&'a [u8]> {
        let (taken, rest) = self.bytes.split_at_checked(count)?;
        self.bytes = rest;
        Some(taken)
    }

    pub fn number(&mut self) -> Read<u64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.take(1)?[0];
            let part = u64::from(byte & 0x7f);
            value |= part.checked_shl(shift).filter(|whole| whole >> shift == part)?;
            if byte < 0x80 {
                return Some(value);
            }
        }
        None
    }

    /// A number of things that each take at least a byte: never more than there can be.
    pub fn count(&mut self) -> Read<usize> {
        let count = usize::try_from(self.number()?).ok()?;
        (count <= self.bytes.len()).then_some(count)
    }

    fn below(&mut self, limit: usize) -> Read<u32> {
        let number = u32::try_from(self.number()?).ok()?;
        ((number as usize) < limit).then_some(number)
    }

    pub fn names(&mut self) -> Read<Names> {
        let mut names = Names::default();
        let count = self.count()?;
        for id in 0..count {
            let length = self.count()?;
            let name = std::str::from_utf8(self.take(length)?).ok()?;
            // A name given twice would leave an id without one.
            if names.intern(name) as usize != id {
                return None;
            }
        }
        Some(names)
    }

    fn row(&mut self, features: usize, row: &mut Vec<(u32, f32)>) -> Read<()> {
        row.clear();
        let mut next = 0;
        for place in 0..self.count()? {
            let id = u32::try_from(self.number()?.checked_add(next)?).ok()?;
            if id as usize >= features || (place > 0 && u64::from(id) == next) {
                return None;
            }
            next = u64::from(id);
            let value = f32::from_le_bytes(self.take(4)?.try_into().ok()?);
            row.push((id, Some(value).filter(|value| value.is_finite())?));
        }
        Some(())
    }

    pub fn forest(&mut self, features: usize, words: &Names) -> Read<Forest> {
        let mut builder = ForestBuilder::default();
        let count = self.count()?;
        for _ in 0..count {
            builder.word(words.name(self.below(words.len())?)?);
        }
        let mut row = Vec::new();
        // Of each rule, how many tails its target side asks for.
        let mut arities = Vec::new();
        for _ in 0..self.count()? {
            let mut side = Vec::new();
            let mut arity = 0;
            for _ in 0..self.count()? {
                side.push(match self.below(count.checked_add(2)?)? {
                    gap @ 0..=1 => {
                        arity = arity.max(gap as usize + 1);
                        Side::Gap(gap as usize)
                    }
                    word => Side::Word(word - 2),
                });
            }
            self.row(features, &mut row)?;
            builder.rule(row.iter().copied(), side);
            arities.push(arity);
        }
        for node in 0..self.count()? {
            builder.node();
            for _ in 0..self.count()? {
                let rule = self.below(arities.len())?;
                let label = u32::try_from(self.number()?).ok()?;
                let mut tails = [Edge::NONE; 2];
                for tail in &mut tails {
                    let back = self.below(node + 1)?;
                    if back > 0 {
                        *tail = node as u32 - back;
                    }
                }
                let gaps = tails.iter().filter(|&&tail| tail != Edge::NONE).count();
                let in_order = tails[0] != Edge::NONE || tails[1] == Edge::NONE;
                if !in_order || gaps < arities[rule as usize] {
                    return None;
                }
                self.row(features, &mut row)?;
                builder.edge(Edge { tails, rule, label }, row.iter().copied());
            }
        }
        Some(builder.finish())
    }
}
