//! Single-precision numbers as short decimals that read back to the same bits.

const POWERS: [f64; 13] = [1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12];

/// Appends a number; at most nine digits are needed, mostly eight.
pub fn push(out: &mut Vec<u8>, value: f32) {
    let size = f64::from(value.abs());
    if size == 0.0 {
        return out.push(b'0');
    }
    if !(1e-4..1e6).contains(&size) {
        return out.extend(format!("{value:e}").as_bytes());
    }
    if value < 0.0 {
        out.push(b'-');
    }
    // Digits before the point, and zeros behind it that do not count as digits.
    let before = POWERS.iter().take_while(|&&power| power <= size).count();
    let zeros = [0.1, 0.01, 0.001].iter().take_while(|&&power| power > size).count();
    let (mut digits, mut places) = (0, 0);
    for wanted in 7..=9 {
        places = wanted - before + zeros;
        let scale = POWERS[places];
        digits = (size * scale).round() as u64;
        if (digits as f64 / scale) as f32 == value.abs() {
            break;
        }
    }
    while places > 0 && digits % 10 == 0 {
        digits /= 10;
        places -= 1;
    }
    let scale = POWERS[places] as u64;
    push_whole(out, digits / scale);
    if places > 0 {
        out.push(b'.');
        let start = out.len();
        out.resize(start + places, b'0');
        let mut rest = digits % scale;
        for byte in out[start..].iter_mut().rev() {
            *byte = b'0' + (rest % 10) as u8;
            rest /= 10;
        }
    }
}

fn push_whole(out: &mut Vec<u8>, value: u64) {
    if value < 10 {
        out.push(b'0' + value as u8);
    } else {
        out.extend(value.to_string().as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn text(value: f32) -> String {
        let mut out = Vec::new();
        push(&mut out, value);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn forms() {
        assert_eq!(text(-4.8954325), "-4.8954325");
        assert_eq!(text(0.0), "0");
        assert_eq!(text(-0.0), "0");
        assert_eq!(text(-99.0), "-99");
        assert_eq!(text(-0.5), "-0.5");
        assert_eq!(text(0.25), "0.25");
        assert_eq!(text(-1e-9), "-1e-9");
    }

    proptest! {
        #[test]
        fn numbers_read_back(bits in any::<u32>()) {
            let value = f32::from_bits(bits);
            prop_assume!(value.is_finite());
            let shown = text(value);
            prop_assert_eq!(shown.parse::<f32>().unwrap(), value, "{}", shown);
        }

        #[test]
        fn usual_numbers_read_back(value in -12f32..2f32) {
            let shown = text(value);
            prop_assert_eq!(shown.parse::<f32>().unwrap(), value, "{}", shown);
            prop_assert!(shown.len() <= 16, "{}", shown);
        }
    }
}
