//! Damage: changes of accepted inputs that lead far into a reader.

/// A generator of numbers that is the same on every machine (SplitMix64).
#[derive(Debug, Clone)]
pub struct Random(pub u64);

impl Random {
    pub fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `end`; 0 if there is none.
    pub fn below(&mut self, end: usize) -> usize {
        if end == 0 { 0 } else { (self.number() % end as u64) as usize }
    }

    fn one<'a, T: ?Sized>(&mut self, of: &[&'a T]) -> &'a T {
        of[self.below(of.len())]
    }
}

/// Numbers at which arithmetic goes wrong, floats that are none among them.
const NUMBERS: [u64; 18] = [
    0,
    1,
    2,
    0x7f,
    0x80,
    0xff,
    0xffff,
    0x1_0000,
    0x7fff_ffff,
    0x8000_0000,
    0xffff_fffe,
    0xffff_ffff,
    0x1_0000_0000,
    0x7f80_0000,
    0x7fc0_0000,
    0x7fff_ffff_ffff_ffff,
    0x7ff8_0000_0000_0000,
    u64::MAX,
];

/// What means something to some reader.
const TOKENS: [&[u8]; 50] = [
    b"|||",
    b" ||| ",
    b"||||",
    b" ",
    b"=",
    b"\t",
    b"\n",
    b"\n\n",
    b"\r\n",
    b"\0",
    b"[X,1]",
    b"[X,2]",
    b"[X,0]",
    b"[X]",
    b"nan",
    b"inf",
    b"-inf",
    b"1e400",
    b"1e-400",
    b"3.5e38",
    b"-0",
    b"-1",
    b"+",
    b"0x1",
    b"99999999999999999999",
    b"4294967295",
    b"4294967296",
    b"65535",
    b"65536",
    b"0-0",
    b"1-65536",
    b"<s>",
    b"</s>",
    b"<unk>",
    b"\\data\\",
    b"\\2-grams:\n",
    b"\\end\\",
    b"ngram 1=4",
    b"ngram 3=0",
    b"<np translation=\"",
    b"\" prob=\"",
    b"\">",
    b"</np>",
    b"<wall/>",
    b"<zone>",
    "\u{2028}".as_bytes(),
    "\u{feff}".as_bytes(),
    b"\xff",
    b"\x1f\x8b\x08\0",
    b"\x28\xb5\x2f\xfd",
];

/// Inputs grow no further.
const MOST: usize = 1 << 16;

/// A changed copy of `input`, perhaps with a part of one of the `others`.
pub fn damaged(input: &[u8], others: &[Vec<u8>], random: &mut Random) -> Vec<u8> {
    let mut bytes = input.to_vec();
    let steps = 1 << random.below(4);
    for _ in 0..1 + random.below(steps) {
        step(&mut bytes, others, random);
    }
    bytes.truncate(MOST);
    bytes
}

fn step(bytes: &mut Vec<u8>, others: &[Vec<u8>], random: &mut Random) {
    let length = bytes.len();
    let at = random.below(length + 1);
    let most = 1 << random.below(8);
    let span = 1 + random.below(most);
    let end = (at + span).min(length);
    match random.below(16) {
        0 if at < length => bytes[at] ^= 1 << random.below(8),
        1 if at < length => bytes[at] = random.number() as u8,
        2 => {
            let new: Vec<u8> = (0..span.min(8)).map(|_| random.number() as u8).collect();
            put(bytes, at..at, &new);
        }
        3 => put(bytes, at..end, &[]),
        4 if random.below(4) == 0 => bytes.truncate(at),
        5 => {
            let copy = bytes[at..end].to_vec();
            let to = random.below(length + 1);
            put(bytes, to..to, &copy);
        }
        6 => {
            let copy = bytes[at..end].to_vec();
            let to = random.below(length - copy.len() + 1);
            bytes[to..to + copy.len()].copy_from_slice(&copy);
        }
        7..=9 => {
            let size = 1 << random.below(4);
            let at = if random.below(4) == 0 { at } else { at / size * size };
            if let Some(place) = bytes.get_mut(at..at + size) {
                let mut old = [0; 8];
                old[..size].copy_from_slice(place);
                let old = u64::from_le_bytes(old);
                let new = match random.below(4) {
                    0 => old.wrapping_add(1 + random.below(8) as u64),
                    1 => old.wrapping_sub(1 + random.below(8) as u64),
                    2 => (length as u64).wrapping_add(random.below(9) as u64).wrapping_sub(4),
                    _ => NUMBERS[random.below(NUMBERS.len())],
                };
                place.copy_from_slice(&new.to_le_bytes()[..size]);
            }
        }
        10 => put(bytes, at..at, random.one(&TOKENS)),
        11 => put(bytes, at..end, random.one(&TOKENS)),
        12 => {
            if let Some(other) = others.get(random.below(others.len())) {
                let from = random.below(other.len() + 1);
                bytes.truncate(at);
                bytes.extend_from_slice(&other[from..]);
            }
        }
        13 => {
            // A line, once more or no longer.
            let is_end = |byte: &u8| *byte == b'\n';
            let start = bytes[..at].iter().rposition(is_end).map_or(0, |place| place + 1);
            let end = bytes[at..].iter().position(is_end).map_or(length, |place| at + place + 1);
            let line = bytes[start..end].to_vec();
            match random.below(3) {
                0 => put(bytes, start..end, &[]),
                times => put(bytes, start..start, &line.repeat(times)),
            }
        }
        _ => {
            // A number of a text.
            let is_digit = |byte: &u8| byte.is_ascii_digit();
            if let Some(start) = bytes[at..].iter().position(is_digit).map(|place| at + place) {
                let rest = bytes[start..].iter().position(|byte| !is_digit(byte));
                let end = rest.map_or(length, |place| start + place);
                let new = match random.below(3) {
                    0 => random.below(12).to_string().into_bytes(),
                    1 => NUMBERS[random.below(NUMBERS.len())].to_string().into_bytes(),
                    _ => random.one(&TOKENS).to_vec(),
                };
                put(bytes, start..end, &new);
            }
        }
    }
}

fn put(bytes: &mut Vec<u8>, range: std::ops::Range<usize>, new: &[u8]) {
    if bytes.len() + new.len() <= MOST {
        bytes.splice(range, new.iter().copied());
    }
}
