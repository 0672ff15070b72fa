//! Upper envelopes of lines.

/// The upper envelope of lines `intercept + t · slope`: which line is on top from where on.
#[derive(Default)]
pub struct Envelope {
    pub hull: Vec<Piece>,
    records: Vec<Piece>,
}

#[derive(Debug, Clone, Copy)]
pub struct Piece {
    /// Where its reign starts.
    pub from: f64,
    pub slope: f64,
    pub intercept: f64,
    pub line: u32,
}

impl Envelope {
    /// Lines in ascending order of slope; among equal lines the first is kept.
    ///
    /// Left of zero only a line that is higher at zero than every line of smaller slope can win,
    /// right of zero only one that is higher than every line of larger slope. Few lines are, so
    /// the hull itself is built from a handful.
    pub fn build(&mut self, count: usize, line: impl Fn(usize) -> (f64, f64, u32)) {
        let piece = |(slope, intercept, line)| Piece { from: 0.0, slope, intercept, line };
        self.records.clear();
        self.hull.clear();
        let (mut highest, mut peak) = (f64::NEG_INFINITY, 0);
        for place in 0..count {
            let (slope, intercept, name) = line(place);
            if intercept > highest {
                (highest, peak) = (intercept, place);
                self.records.push(piece((slope, intercept, name)));
            }
        }
        let left = self.records.len();
        highest = f64::NEG_INFINITY;
        for place in (peak + 1..count).rev() {
            let (slope, intercept, name) = line(place);
            if intercept > highest {
                highest = intercept;
                self.records.push(piece((slope, intercept, name)));
            } else if intercept == highest
                && let Some(last) = self.records.last_mut()
                && last.slope == slope
            {
                last.line = name;
            }
        }
        self.records[left..].reverse();
        for index in 0..self.records.len() {
            self.add(self.records[index]);
        }
    }

    fn add(&mut self, mut new: Piece) {
        new.from = f64::NEG_INFINITY;
        while let Some(top) = self.hull.last() {
            if top.slope == new.slope {
                if new.intercept <= top.intercept {
                    return;
                }
            } else {
                new.from = (top.intercept - new.intercept) / (new.slope - top.slope);
                if new.from > top.from {
                    break;
                }
            }
            self.hull.pop();
            new.from = f64::NEG_INFINITY;
        }
        self.hull.push(new);
    }
}
