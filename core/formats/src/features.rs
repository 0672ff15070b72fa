//! Features of a line: names to slots, values to numbers.

use rustc_hash::FxHashMap;
use tunesmith_text::{Names, Number, number};

use crate::Format;
use crate::fields::{Fault, tokens};

/// Set on slots that lead to a column instead of a feature.
const COLUMN: u32 = 1 << 31;

/// One label of the previous line, the number of its values, and where they went.
#[derive(Debug)]
struct Block {
    label_end: usize,
    slots_end: usize,
}

/// Parses features fields. Names are looked up only where the line's labels differ from those of
/// the line before, which in a decoder's output is almost never.
#[derive(Debug)]
pub(crate) struct FeatureParser {
    format: Format,
    pub columns: Names,
    labels: Vec<u8>,
    slots: Vec<u32>,
    blocks: Vec<Block>,
    /// The slots of labels with several values; those with one are in `Names` themselves.
    several: FxHashMap<Box<[u8]>, Vec<u32>>,
    values: Vec<f64>,
    name: String,
    pub features: Vec<(u32, f32)>,
    /// One per column.
    pub cells: Vec<f64>,
    seen: Vec<u32>,
}

impl FeatureParser {
    pub fn new(format: Format, columns: Names) -> Self {
        FeatureParser {
            format,
            columns,
            labels: Vec::new(),
            slots: Vec::new(),
            blocks: Vec::new(),
            several: FxHashMap::default(),
            values: Vec::new(),
            name: String::new(),
            features: Vec::new(),
            cells: Vec::new(),
            seen: Vec::new(),
        }
    }

    /// Reads a field into `features` and `cells`.
    pub fn parse(&mut self, field: &str, names: &mut Names) -> Result<(), Fault> {
        self.features.clear();
        self.cells.clear();
        self.cells.resize(self.columns.len(), f64::NAN);
        let before = names.len();
        let mut line = Line { blocks: 0, known: true };
        let outcome = match self.format {
            Format::Moses => self.moses(field.as_bytes(), names, &mut line),
            Format::Cdec | Format::Travatar => self.cdec(field.as_bytes(), names, &mut line),
        };
        let whole = line.known && line.blocks == self.blocks.len();
        let outcome = outcome.and_then(|()| {
            self.forget(line.blocks);
            if whole { Ok(()) } else { self.distinct(names) }
        });
        if outcome.is_err() {
            // A line that was refused is no model for the next one, and its names are not ours.
            self.forget(0);
            if names.len() > before {
                names.truncate(before);
                self.several.clear();
            }
        }
        outcome
    }

    fn moses(&mut self, field: &[u8], names: &mut Names, line: &mut Line) -> Result<(), Fault> {
        let mut label: Option<&[u8]> = None;
        self.values.clear();
        for token in tokens(field) {
            match token.last() {
                // Releases before 2013 wrote `lm: -44.1`.
                Some(b'=' | b':') => {
                    self.block(label, names, line)?;
                    label = Some(&token[..token.len() - 1]);
                }
                _ => self.value(token, token)?,
            }
        }
        self.block(label, names, line)
    }

    fn cdec(&mut self, field: &[u8], names: &mut Names, line: &mut Line) -> Result<(), Fault> {
        self.values.clear();
        for token in tokens(field) {
            let Some(at) = memchr::memrchr(b'=', token) else {
                return Err(Fault::new(
                    "text where a number should be",
                    format!("{} is not Name=value", quoted(token)),
                    "write every feature as Name=value, without a space",
                ));
            };
            if at + 1 == token.len() {
                return Err(Fault::new(
                    "text where a number should be",
                    format!("{} has no value", quoted(token)),
                    "write every feature as Name=value; Name= value is the Moses format",
                ));
            }
            self.value(&token[at + 1..], token)?;
            self.block(Some(&token[..at]), names, line)?;
        }
        Ok(())
    }

    #[inline]
    fn value(&mut self, digits: &[u8], token: &[u8]) -> Result<(), Fault> {
        match number(digits) {
            Number::Finite(value) if (value as f32).is_finite() => {
                self.values.push(value);
                Ok(())
            }
            Number::Text => Err(Fault::new(
                "text where a number should be",
                format!("{} is not a number", quoted(token)),
                match self.format {
                    Format::Moses => {
                        "write features as Label= value; Name=value is the cdec format"
                    }
                    Format::Cdec | Format::Travatar => "write every feature as Name=value",
                },
            )),
            _ => Err(Fault::new(
                "NaN or infinity",
                format!("{} is not a finite number", quoted(token)),
                "give every feature a finite value; leave out what is unknown",
            )),
        }
    }

    /// Closes a block: the values collected so far belong to `label`, or to nobody.
    #[inline]
    fn block(
        &mut self,
        label: Option<&[u8]>,
        names: &mut Names,
        line: &mut Line,
    ) -> Result<(), Fault> {
        if label.is_none() && self.values.is_empty() {
            return Ok(());
        }
        if self.values.is_empty() {
            return Err(Fault::new(
                "missing fields",
                format!("label {} has no value", quoted(label.unwrap_or_default())),
                "give the label a value or take it out",
            ));
        }
        let bytes = label.unwrap_or_default();
        if label.is_some() && bytes.is_empty() {
            return Err(Fault::new(
                "missing fields",
                "a feature has no name",
                "write a name in front of the =",
            ));
        }
        let count = self.values.len();
        let (label_start, slot_start) = match line.blocks.checked_sub(1) {
            Some(last) => (self.blocks[last].label_end, self.blocks[last].slots_end),
            None => (0, 0),
        };
        line.known = line.known
            && self.blocks.get(line.blocks).is_some_and(|block| {
                block.slots_end - slot_start == count
                    && self.labels[label_start..block.label_end] == *bytes
            });
        if !line.known {
            self.forget(line.blocks);
            self.resolve(label, names);
            self.labels.extend_from_slice(bytes);
            self.blocks.push(Block { label_end: self.labels.len(), slots_end: self.slots.len() });
        }
        line.blocks += 1;
        for (&slot, &value) in self.slots[slot_start..].iter().zip(&self.values) {
            if slot & COLUMN == 0 {
                self.features.push((slot, value as f32));
            } else {
                self.cells[(slot & !COLUMN) as usize] = value;
            }
        }
        self.values.clear();
        Ok(())
    }

    fn forget(&mut self, from: usize) {
        self.blocks.truncate(from);
        let (labels, slots) =
            self.blocks.last().map_or((0, 0), |block| (block.label_end, block.slots_end));
        self.labels.truncate(labels);
        self.slots.truncate(slots);
    }

    /// Appends the slots of a label's values: `LM0` for one value, `TM0_1`, `TM0_2`… for several,
    /// `F0`, `F1`… where there is no label.
    fn resolve(&mut self, label: Option<&[u8]>, names: &mut Names) {
        let count = self.values.len();
        let bytes = label.unwrap_or_default();
        // The line was checked as a whole, and white space cannot cut a character.
        let text = std::str::from_utf8(bytes).unwrap_or_default();
        if label.is_some() && count == 1 {
            let slot = slot(&self.columns, names, text);
            self.slots.push(slot);
            return;
        }
        if !self.several.contains_key(bytes) {
            self.several.insert(bytes.into(), Vec::new());
        }
        let known = self.several.get_mut(bytes).expect("inserted above");
        while known.len() < count {
            use std::fmt::Write;
            self.name.clear();
            let position = known.len();
            let _ = match label {
                Some(_) => write!(self.name, "{text}_{}", position + 1),
                None => write!(self.name, "F{position}"),
            };
            known.push(slot(&self.columns, names, &self.name));
        }
        self.slots.extend_from_slice(&known[..count]);
    }

    fn distinct(&mut self, names: &Names) -> Result<(), Fault> {
        self.seen.clear();
        self.seen.extend_from_slice(&self.slots);
        self.seen.sort_unstable();
        let Some(pair) = self.seen.windows(2).find(|pair| pair[0] == pair[1]) else {
            return Ok(());
        };
        let name = match pair[0] & COLUMN {
            0 => names.name(pair[0]),
            _ => self.columns.name(pair[0] & !COLUMN),
        };
        Err(Fault::new(
            "a feature twice",
            format!("feature {} is given twice", name.unwrap_or_default()),
            "give every feature one value, or several values behind one label",
        ))
    }
}

/// How far the current line has followed the one before.
struct Line {
    blocks: usize,
    known: bool,
}

fn slot(columns: &Names, names: &mut Names, name: &str) -> u32 {
    match columns.id(name) {
        Some(column) => column | COLUMN,
        None => {
            let id = names.intern(name);
            assert!(id < COLUMN, "more than 2^31 feature names");
            id
        }
    }
}

/// A token as an error shows it: readable and short, whatever it is.
pub(crate) fn quoted(token: &[u8]) -> String {
    let text = String::from_utf8_lossy(token);
    let mut short: String = text.chars().take(40).flat_map(char::escape_debug).collect();
    if text.chars().nth(40).is_some() {
        short.push('…');
    }
    format!("\"{short}\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(format: Format, lines: &[&str]) -> Vec<Vec<(String, f32)>> {
        let mut parser = FeatureParser::new(format, Names::default());
        let mut names = Names::default();
        lines
            .iter()
            .map(|line| {
                parser.parse(line, &mut names).unwrap_or_else(|fault| panic!("{}", fault.message));
                parser
                    .features
                    .iter()
                    .map(|&(id, value)| (names.name(id).unwrap().to_owned(), value))
                    .collect()
            })
            .collect()
    }

    fn pairs(list: &[(&str, f32)]) -> Vec<(String, f32)> {
        list.iter().map(|&(name, value)| (name.to_owned(), value)).collect()
    }

    #[test]
    fn names_depend_on_the_block_alone() {
        let read = all(
            Format::Moses,
            &["LM0= 1 TM0= 2 3", "TM0= 4 5 LM0= 6", "LM0= 7 8", "TM0= 1", "pp_a=b= 2 LM0= 1"],
        );
        assert_eq!(read[0], pairs(&[("LM0", 1.0), ("TM0_1", 2.0), ("TM0_2", 3.0)]));
        assert_eq!(read[1], pairs(&[("TM0_1", 4.0), ("TM0_2", 5.0), ("LM0", 6.0)]));
        assert_eq!(read[2], pairs(&[("LM0_1", 7.0), ("LM0_2", 8.0)]));
        assert_eq!(read[3], pairs(&[("TM0", 1.0)]));
        assert_eq!(read[4], pairs(&[("pp_a=b", 2.0), ("LM0", 1.0)]));
    }

    #[test]
    fn numbers_without_a_label_are_numbered_from_zero() {
        let read = all(Format::Moses, &["-1 -2", "-1", "-3 LM0= 2", "lm: -4 w: -2"]);
        assert_eq!(read[0], pairs(&[("F0", -1.0), ("F1", -2.0)]));
        assert_eq!(read[1], pairs(&[("F0", -1.0)]));
        assert_eq!(read[2], pairs(&[("F0", -3.0), ("LM0", 2.0)]));
        assert_eq!(read[3], pairs(&[("lm", -4.0), ("w", -2.0)]));
    }

    #[test]
    fn the_last_equals_sign_divides_in_cdec() {
        let read = all(Format::Cdec, &["A=1 R:X=Y=-2.5e1", "", "R:X=Y=3 A=1"]);
        assert_eq!(read[0], pairs(&[("A", 1.0), ("R:X=Y", -25.0)]));
        assert!(read[1].is_empty());
        assert_eq!(read[2], pairs(&[("R:X=Y", 3.0), ("A", 1.0)]));
    }

    #[test]
    fn faults() {
        let mut names = Names::default();
        for (format, field, reason) in [
            (Format::Moses, "LM0= x", "text where a number should be"),
            (Format::Moses, "LM0=3", "text where a number should be"),
            (Format::Moses, "LM0= nan", "NaN or infinity"),
            (Format::Moses, "LM0= 1e39", "NaN or infinity"),
            (Format::Moses, "LM0= 1 LM0= 2", "a feature twice"),
            (Format::Moses, "TM0_1= 1 TM0= 2 3", "a feature twice"),
            (Format::Moses, "LM0= TM0= 1", "missing fields"),
            (Format::Moses, "= 1", "missing fields"),
            (Format::Cdec, "A= 1", "text where a number should be"),
            (Format::Cdec, "A=x", "text where a number should be"),
            (Format::Cdec, "A=-inf", "NaN or infinity"),
            (Format::Cdec, "A=1 A=1", "a feature twice"),
            (Format::Cdec, "=1", "missing fields"),
        ] {
            let mut parser = FeatureParser::new(format, Names::default());
            for _ in 0..2 {
                let fault = parser.parse(field, &mut names).unwrap_err();
                assert_eq!(fault.reason, reason, "{field}");
                assert!(!fault.remedy.is_empty());
            }
        }
    }

    #[test]
    fn columns_are_kept_apart() {
        let mut columns = Names::default();
        columns.intern("COMET");
        let mut parser = FeatureParser::new(Format::Moses, columns);
        let mut names = Names::default();
        parser.parse("LM0= 1 COMET= 0.5", &mut names).ok().unwrap();
        assert_eq!(parser.features, [(0, 1.0)]);
        assert_eq!(parser.cells, [0.5]);
        parser.parse("LM0= 1", &mut names).ok().unwrap();
        assert!(parser.cells[0].is_nan());
        assert_eq!(names.len(), 1);
    }
}
