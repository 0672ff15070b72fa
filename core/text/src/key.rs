//! Keys of names that are put together from parts, without putting them together.

/// Mersenne prime 2^61 - 1.
const PRIME: u64 = (1 << 61) - 1;
const BASE: u64 = 0x0c1e_7a2f_5b3d_9e47;

fn times(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    let folded = (product as u64 & PRIME) + (product >> 61) as u64;
    if folded >= PRIME { folded - PRIME } else { folded }
}

/// The hash of a string, and what it takes to put another string behind it:
/// `Piece::of("ab") == Piece::of("a").then(Piece::of("b"))`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Piece {
    hash: u64,
    power: u64,
}

impl Piece {
    pub const EMPTY: Piece = Piece { hash: 0, power: 1 };

    pub fn of(text: &str) -> Piece {
        text.bytes().fold(Piece::EMPTY, |piece, byte| {
            piece.then(Piece { hash: u64::from(byte) + 1, power: BASE })
        })
    }

    #[inline]
    pub fn then(self, next: Piece) -> Piece {
        let hash = times(self.hash, next.power) + next.hash;
        Piece {
            hash: if hash >= PRIME { hash - PRIME } else { hash },
            power: times(self.power, next.power),
        }
    }

    /// A key of the string; that of two among a million short names is the same once in some
    /// hundred thousand times.
    #[inline]
    pub fn key(self) -> u64 {
        self.hash
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn pieces_join_as_strings_do(a in ".*", b in ".*", c in ".*") {
            let joined = Piece::of(&format!("{a}{b}{c}"));
            prop_assert_eq!(joined, Piece::of(&a).then(Piece::of(&b)).then(Piece::of(&c)));
        }
    }

    #[test]
    fn leading_zero_bytes_count() {
        assert_ne!(Piece::of("\0a").key(), Piece::of("a").key());
    }
}
