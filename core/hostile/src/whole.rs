//! Binary files put together from damaged parts: their lengths, offsets and checksums are right.

use tunesmith_lm::Model;
use tunesmith_rules::Table;

use crate::binary::{self, LINE, ask, sum_lm, sum_rules, walk};
use crate::{Folder, kept};

/// Divides the parts of an input; no file of ours has it inside.
const BETWEEN: &[u8] = b"\xf5part\xf5";

/// An input of these parts.
pub fn joined(parts: &[&[u8]]) -> Vec<u8> {
    parts.join(BETWEEN)
}

/// The parts of an input; empty where there are fewer.
pub fn divided<const N: usize>(bytes: &[u8]) -> [&[u8]; N] {
    let mut rest = Some(bytes);
    std::array::from_fn(|_| {
        let whole = rest.take().unwrap_or_default();
        match whole.windows(BETWEEN.len()).position(|window| window == BETWEEN) {
            Some(end) => {
                rest = Some(&whole[end + BETWEEN.len()..]);
                &whole[..end]
            }
            None => whole,
        }
    })
}

/// A number of a file that was made here.
pub fn wide(bytes: &[u8], at: usize) -> usize {
    let found = bytes.get(at..at + 8).map(|found| found.try_into().expect("eight bytes"));
    u64::from_le_bytes(found.unwrap_or_default()) as usize
}

/// The numbers of the header, then the six parts.
pub fn lm_seed() -> Vec<u8> {
    let file = binary::lm_seed();
    let mut parts = vec![&file[2 * 8..12 * 8]];
    let mut start = 4 * LINE;
    for part in 0..6 {
        let end = start + LINE * wide(&file, 8 * (12 + part));
        parts.push(&file[start..end]);
        start = end;
    }
    joined(&parts)
}

/// A binary language model of these parts.
pub fn lm(bytes: &[u8]) -> bool {
    let folder = Folder::new();
    kept(Model::load(folder.file("lm", &lm_file(bytes)))).is_some_and(|model| ask(&model))
}

pub fn lm_file(bytes: &[u8]) -> Vec<u8> {
    let [numbers, parts @ ..] = divided::<7>(bytes);
    let mut file = vec![0; 4 * LINE];
    file[..8].copy_from_slice(b"tunes-lm");
    file[8] = 1;
    for (place, byte) in file[16..96].iter_mut().zip(numbers) {
        *place = *byte;
    }
    for (number, part) in parts.iter().enumerate() {
        let lines = part.len().div_ceil(LINE);
        file[8 * (12 + number)..8 * (13 + number)].copy_from_slice(&lines.to_le_bytes());
        file.extend_from_slice(part);
        file.resize(file.len().next_multiple_of(LINE), 0);
    }
    sum_lm(&mut file);
    file
}

/// Kind and numbers of the trailer, the blocks, then the ten sections.
pub fn rules_seed() -> Vec<u8> {
    apart(&binary::rules_seed())
}

/// The parts of a table.
pub fn apart(file: &[u8]) -> Vec<u8> {
    let trailer = &file[file.len() - 208..];
    let section = |number: usize| {
        let start = wide(trailer, 32 + 16 * number);
        &file[start..start + wide(trailer, 40 + 16 * number)]
    };
    let mut parts = vec![&trailer[..32], &file[16..wide(trailer, 32)]];
    parts.extend((0..10).map(section));
    joined(&parts)
}

/// A table of rules of these parts.
pub fn rules(bytes: &[u8]) -> bool {
    let folder = Folder::new();
    let file = folder.file("rules", &rules_file(bytes));
    kept(Table::open(&file, false)).is_some_and(|table| walk(&table))
}

pub fn rules_file(bytes: &[u8]) -> Vec<u8> {
    let [numbers, blocks, sections @ ..] = divided::<12>(bytes);
    let mut file = b"tsmrules\x01\0\0\0\0\0\0\0".to_vec();
    file.extend_from_slice(blocks);
    let mut trailer = numbers.to_vec();
    trailer.resize(32, 0);
    for section in sections {
        file.resize(file.len().next_multiple_of(8), 0);
        trailer.extend(file.len().to_le_bytes());
        trailer.extend(section.len().to_le_bytes());
        file.extend_from_slice(section);
    }
    file.resize(file.len().next_multiple_of(8), 0);
    trailer.extend(crc32fast::hash(&file).to_le_bytes());
    trailer.extend([0; 4]);
    trailer.extend(b"selurmst");
    file.extend(trailer);
    sum_rules(&mut file);
    file
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_put_together_from_their_parts_are_as_before() {
        assert_eq!(lm_file(&lm_seed()), binary::lm_seed());
        assert_eq!(rules_file(&rules_seed()), binary::rules_seed());
    }
}
