//! Numbers that settings of a search may have.

use tunesmith_text::{Error, Result};

/// A value as a number of things. Refuses others than whole ones from `least` on, and says what a
/// special one means.
pub fn whole(name: &str, value: f64, least: u32, special: &str) -> Result<usize> {
    if value.fract() == 0.0 && value >= f64::from(least) && value < f64::from(u32::MAX) {
        return Ok(value as usize);
    }
    if value >= f64::from(u32::MAX) {
        return Err(wrong(name, value, &format!("a number below {}", u32::MAX)));
    }
    let also = if special.is_empty() { String::new() } else { format!(", {special}") };
    Err(wrong(name, value, &format!("a whole number that is at least {least}{also}")))
}

pub fn wrong(name: &str, value: f64, wanted: &str) -> Error {
    // All digits of a number such as 1e30 say nothing.
    let shown = if value.abs() < 1e15 { format!("{value}") } else { format!("{value:e}") };
    Error::new(format!("{name} cannot be {shown}")).remedy(format!("give {wanted}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_that_a_setting_cannot_have_are_refused_with_those_it_can() {
        assert_eq!(whole("stack", 7.0, 0, "").unwrap(), 7);
        for (value, shown) in [(-1.0, "-1"), (2.5, "2.5"), (f64::NAN, "NaN")] {
            let error = whole("stack", value, 0, "0 for all").unwrap_err();
            assert_eq!(error.message, format!("stack cannot be {shown}"));
            let remedy = "give a whole number that is at least 0, 0 for all";
            assert_eq!(error.remedy.as_deref(), Some(remedy));
        }
        let error = whole("stack", 1e30, 0, "").unwrap_err();
        assert_eq!(error.to_string(), "stack cannot be 1e30 (give a number below 4294967295)");
        assert!(whole("phrase_limit", 0.0, 1, "").is_err() && whole("x", 1.0, 2, "").is_err());
    }
}
