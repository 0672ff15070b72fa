//! The three discounts of an order, from how many n-grams have small counts.

/// What is taken off counts of one, two, and three or more.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Discounts(pub [f64; 3]);

impl Discounts {
    /// For counts that give no discounts of their own.
    pub const FALLBACK: Discounts = Discounts([0.5, 1.0, 1.5]);

    pub fn of(&self, count: u64) -> f64 {
        match count {
            0 => 0.0,
            _ => self.0[count.min(3) as usize - 1],
        }
    }
}

/// How many n-grams have adjusted counts of 0 to 4, and how many there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    pub with: [u64; 5],
    pub all: u64,
}

impl Tally {
    pub fn add(&mut self, count: u64) {
        self.all += 1;
        if let Some(with) = self.with.get_mut(count as usize) {
            *with += 1;
        }
    }

    /// Equation 26 of Chen and Goodman (1998), or the fallback with a reason.
    pub fn discounts(&self, fallback: Discounts) -> OrderStats {
        match self.closed_form() {
            Ok(discounts) => OrderStats { all: self.all, discounts, fallback: None },
            Err(reason) => {
                OrderStats { all: self.all, discounts: fallback, fallback: Some(reason) }
            }
        }
    }

    fn closed_form(&self) -> Result<Discounts, String> {
        let with = self.with.map(|count| count as f64);
        if let Some(count) = (1..4).find(|&count| self.with[count] == 0) {
            return Err(format!("no n-gram has the adjusted count {count}"));
        }
        let share = with[1] / (with[1] + 2.0 * with[2]);
        let mut discounts = [0.0; 3];
        for count in 1..4 {
            let size = count as f64;
            let value = size - (size + 1.0) * share * with[count + 1] / with[count];
            // Of nothing taken off, nothing would be left to back off with.
            if value <= 0.0 || value > size {
                return Err(format!("the discount for the adjusted count {count} is {value:.3}"));
            }
            discounts[count - 1] = value;
        }
        Ok(Discounts(discounts))
    }
}

/// What is known of an order.
#[derive(Clone, Debug, PartialEq)]
pub struct OrderStats {
    /// N-grams before pruning.
    pub all: u64,
    pub discounts: Discounts,
    /// Why the fallback was used, if it was.
    pub fallback: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_closed_form_and_its_limits() {
        let tally = Tally { with: [2, 100, 30, 10, 5], all: 150 };
        let stats = tally.discounts(Discounts::FALLBACK);
        let share = 100.0 / 160.0;
        assert_eq!(
            stats.discounts,
            Discounts([
                1.0 - 2.0 * share * 0.3,
                2.0 - 3.0 * share * (10.0 / 30.0),
                3.0 - 4.0 * share * 0.5
            ])
        );
        assert_eq!(stats.fallback, None);
        for with in [[0, 0, 1, 1, 1], [0, 1, 0, 1, 1], [0, 1, 1, 0, 1], [0, 1, 1, 9, 0]] {
            let stats = Tally { with, all: 3 }.discounts(Discounts::FALLBACK);
            assert_eq!(stats.discounts, Discounts::FALLBACK);
            assert!(stats.fallback.is_some());
        }
    }
}
