//! Numbers as C++ streams print them: six significant digits.

/// Appends `value` in the shorter of plain and scientific notation, without trailing zeros.
pub fn general(value: f64, out: &mut String) {
    use std::fmt::Write;
    if value == 0.0 || !value.is_finite() {
        let _ = write!(out, "{}", if value == 0.0 { 0.0 } else { value });
        return;
    }
    let text = format!("{value:.5e}");
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if (-4..6).contains(&exponent) {
        let places = (5 - exponent) as usize;
        let plain = format!("{value:.places$}");
        out.push_str(shorten(&plain));
    } else {
        let sign = if exponent < 0 { '-' } else { '+' };
        let _ = write!(out, "{}e{sign}{:02}", shorten(digits), exponent.abs());
    }
}

fn shorten(digits: &str) -> &str {
    if digits.contains('.') { digits.trim_end_matches('0').trim_end_matches('.') } else { digits }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_streams_do() {
        for (value, expected) in [
            (0.75, "0.75"),
            (0.118867, "0.118867"),
            (1.0, "1"),
            (0.0, "0"),
            (-0.0, "0"),
            (0.000565076, "0.000565076"),
            (6.99342e-05, "6.99342e-05"),
            (123456.0, "123456"),
            (1234567.0, "1.23457e+06"),
            (0.9999999, "1"),
            (2.0 / 3.0, "0.666667"),
            (1e-120, "1e-120"),
        ] {
            let mut out = String::new();
            general(value, &mut out);
            assert_eq!(out, expected);
        }
    }
}
