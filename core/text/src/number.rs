//! Decimal numbers, read fast.

const TEN: [f64; 23] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16,
    1e17, 1e18, 1e19, 1e20, 1e21, 1e22,
];

/// What a token says, read as a number.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Number {
    Finite(f64),
    /// NaN, an infinity, or a value too large for 64 bits.
    Infinite,
    Text,
}

/// Reads a whole token. Plain decimals of at most 15 digits, which is nearly all there are, need
/// one division, which is then correctly rounded; the rest goes to the standard library.
#[inline]
pub fn number(token: &[u8]) -> Number {
    let (negative, digits) = match token.first() {
        Some(b'-') => (true, &token[1..]),
        Some(b'+') => (false, &token[1..]),
        _ => (false, token),
    };
    let mut mantissa: u64 = 0;
    let mut places = usize::MAX;
    for (position, &byte) in digits.iter().enumerate() {
        let digit = byte.wrapping_sub(b'0');
        if digit < 10 {
            mantissa = mantissa.wrapping_mul(10).wrapping_add(u64::from(digit));
        } else if byte == b'.' && places == usize::MAX {
            places = position;
        } else {
            return slow(token);
        }
    }
    let point = usize::from(places != usize::MAX);
    let count = digits.len() - point;
    if count == 0 || count > 15 {
        return slow(token);
    }
    let fraction = if point == 1 { count - places } else { 0 };
    let value = mantissa as f64 / TEN[fraction];
    Number::Finite(if negative { -value } else { value })
}

#[cold]
fn slow(token: &[u8]) -> Number {
    match std::str::from_utf8(token).ok().and_then(|text| text.parse::<f64>().ok()) {
        Some(value) if value.is_finite() => Number::Finite(value),
        Some(_) => Number::Infinite,
        None => Number::Text,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn forms() {
        assert_eq!(number(b"-0.5"), Number::Finite(-0.5));
        assert_eq!(number(b".5"), Number::Finite(0.5));
        assert_eq!(number(b"5."), Number::Finite(5.0));
        assert_eq!(number(b"+3e-2"), Number::Finite(0.03));
        for token in ["nan", "-inf", "Infinity", "1e999"] {
            assert_eq!(number(token.as_bytes()), Number::Infinite, "{token}");
        }
        for token in ["", "-", ".", "1.2.3", "--1", "0x10", "1,5", "x", "1_0"] {
            assert_eq!(number(token.as_bytes()), Number::Text, "{token}");
        }
    }

    proptest! {
        #[test]
        fn equals_the_standard_library(token in "[-+]?[0-9]{0,18}\\.?[0-9]{0,18}(e-?[0-9]{1,3})?") {
            let expected = match token.parse::<f64>() {
                Ok(value) if value.is_finite() => Number::Finite(value),
                Ok(_) => Number::Infinite,
                Err(_) => Number::Text,
            };
            prop_assert_eq!(number(token.as_bytes()), expected);
        }
    }
}
