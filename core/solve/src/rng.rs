//! Random numbers that depend on (seed, epoch, sentence) and on nothing else.

/// SplitMix64 (Steele, Lea & Flood 2014): one word of state, the same numbers on every machine.
#[derive(Debug, Clone)]
pub struct Rng(u64);

fn mix(mut word: u64) -> u64 {
    word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

impl Rng {
    /// The stream of a sentence in an epoch of a run.
    pub fn new(seed: u64, epoch: u64, sentence: u64) -> Self {
        let word =
            [seed, epoch, sentence].into_iter().fold(0x9e37_79b9_7f4a_7c15, |state, part| {
                mix(state ^ mix(part.wrapping_add(0x632b_e59b_d9b4_e019)))
            });
        Rng(word)
    }

    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
    }

    /// A number below `bound`, which must be positive.
    pub fn below(&mut self, bound: usize) -> usize {
        ((u128::from(self.next_u64()) * bound as u128) >> 64) as usize
    }

    /// Two numbers below `bound`, which must be positive and fit into 32 bits, from one word.
    #[inline]
    pub fn pair_below(&mut self, bound: usize) -> (usize, usize) {
        debug_assert!(u32::try_from(bound).is_ok());
        let (word, bound) = (self.next_u64(), bound as u64);
        let below = |half: u64| ((half * bound) >> 32) as usize;
        (below(word >> 32), below(word & 0xffff_ffff))
    }

    /// A permutation of `0..length`.
    pub fn permutation(&mut self, length: usize) -> Vec<u32> {
        let mut order: Vec<u32> = (0..length as u32).collect();
        for last in (1..length).rev() {
            order.swap(last, self.below(last + 1));
        }
        order
    }
}

#[cfg(test)]
mod tests {
    use super::Rng;

    #[test]
    fn streams_differ_by_each_part_of_their_name() {
        let first = |seed, epoch, sentence| Rng::new(seed, epoch, sentence).next_u64();
        let all = [first(0, 0, 0), first(1, 0, 0), first(0, 1, 0), first(0, 0, 1), first(1, 1, 1)];
        for (index, word) in all.iter().enumerate() {
            assert!(!all[..index].contains(word));
        }
    }

    #[test]
    fn a_permutation_holds_every_number_once() {
        let mut order = Rng::new(7, 1, 0).permutation(100);
        order.sort_unstable();
        assert!(order.iter().copied().eq(0..100));
    }
}
