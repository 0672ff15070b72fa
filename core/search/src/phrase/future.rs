//! The best that can be hoped for of the words not yet translated.

/// The best estimate of every span, and how it comes about.
pub struct Future {
    words: usize,
    best: Vec<f32>,
    /// Where the best split is; `start` if one phrase is best.
    split: Vec<u16>,
}

impl Future {
    /// `phrase` gives the best estimate of a single phrase for a span.
    pub fn new(words: usize, phrase: impl Fn(usize, usize) -> Option<f32>) -> Future {
        let size = (words + 1) * (words + 1);
        let mut future =
            Future { words, best: vec![f32::NEG_INFINITY; size], split: vec![0; size] };
        for length in 1..=words {
            for start in 0..=words - length {
                let end = start + length;
                let mut best = phrase(start, end).unwrap_or(f32::NEG_INFINITY);
                let mut split = start;
                for middle in start + 1..end {
                    let sum = future.best(start, middle) + future.best(middle, end);
                    if sum > best {
                        (best, split) = (sum, middle);
                    }
                }
                let at = future.at(start, end);
                future.best[at] = best;
                future.split[at] = split as u16;
            }
        }
        future
    }

    fn at(&self, start: usize, end: usize) -> usize {
        start * (self.words + 1) + end
    }

    #[inline]
    pub fn best(&self, start: usize, end: usize) -> f32 {
        self.best[self.at(start, end)]
    }

    /// The spans of the single phrases that the best estimate of a span is made of.
    pub fn phrases(&self, start: usize, end: usize, out: &mut Vec<std::ops::Range<usize>>) {
        let split = usize::from(self.split[self.at(start, end)]);
        if split == start {
            out.push(start..end);
        } else {
            self.phrases(start, split, out);
            self.phrases(split, end, out);
        }
    }
}
