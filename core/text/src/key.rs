//! Keys of names that are put together from parts, without putting them together.

/// Mersenne prime 2^61 - 1.
const PRIME: u64 = (1 << 61) - 1;
const BASE: u64 = 0x0c1e_7a2f_5b3d_9e47;

const fn times(a: u64, b: u64) -> u64 {
    let product = a as u128 * b as u128;
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

    pub const fn of(text: &str) -> Piece {
        let bytes = text.as_bytes();
        let mut piece = Piece::EMPTY;
        let mut at = 0;
        while at < bytes.len() {
            piece = piece.then(Piece { hash: bytes[at] as u64 + 1, power: BASE });
            at += 1;
        }
        piece
    }

    #[inline]
    pub const fn then(self, next: Piece) -> Piece {
        Piece { hash: next.key_behind(self.hash), power: times(self.power, next.power) }
    }

    /// The key of a string that has the key `front` up to here, and ends with this piece.
    #[inline]
    pub const fn key_behind(self, front: u64) -> u64 {
        let hash = times(front, self.power) + self.hash;
        if hash >= PRIME { hash - PRIME } else { hash }
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
            let (a, b, c) = (Piece::of(&a), Piece::of(&b), Piece::of(&c));
            prop_assert_eq!(joined, a.then(b).then(c));
            prop_assert_eq!(joined.key(), c.key_behind(b.key_behind(a.key())));
        }
    }

    #[test]
    fn leading_zero_bytes_count() {
        assert_ne!(Piece::of("\0a").key(), Piece::of("a").key());
    }
}
