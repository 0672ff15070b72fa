//! Cache lines: the unit of the binary, its alignment and its checksum.

/// One cache line.
#[repr(C, align(64))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Line(pub [u32; 16]);

pub const LINE: usize = size_of::<Line>();

impl Line {
    pub const ZERO: Line = Line([0; 16]);

    #[inline]
    pub fn wide(&self, at: usize) -> u64 {
        u64::from(self.0[2 * at]) | u64::from(self.0[2 * at + 1]) << 32
    }

    #[inline]
    pub fn set_wide(&mut self, at: usize, value: u64) {
        self.0[2 * at] = value as u32;
        self.0[2 * at + 1] = (value >> 32) as u32;
    }
}

/// Lines that hold at least `bytes`.
pub fn lines_for(bytes: usize) -> usize {
    bytes.div_ceil(LINE)
}

/// The lines as numbers.
pub fn numbers(lines: &[Line]) -> &[u32] {
    // SAFETY: a line is sixteen numbers without padding.
    unsafe { std::slice::from_raw_parts(lines.as_ptr().cast(), lines.len() * 16) }
}

pub fn numbers_mut(lines: &mut [Line]) -> &mut [u32] {
    // SAFETY: as above; every bit pattern is a number.
    unsafe { std::slice::from_raw_parts_mut(lines.as_mut_ptr().cast(), lines.len() * 16) }
}

pub fn bytes(lines: &[Line]) -> &[u8] {
    // SAFETY: a line is 64 bytes without padding.
    unsafe { std::slice::from_raw_parts(lines.as_ptr().cast(), lines.len() * LINE) }
}

pub fn bytes_mut(lines: &mut [Line]) -> &mut [u8] {
    // SAFETY: as above; every bit pattern is a line.
    unsafe { std::slice::from_raw_parts_mut(lines.as_mut_ptr().cast(), lines.len() * LINE) }
}

/// A sum over all lines. Every step is a bijection of its lane, so that a single changed number
/// is always noticed.
pub fn checksum(lines: &[Line]) -> u64 {
    const PRIME: u64 = 0x9e37_79b1_85eb_ca87;
    let mut lanes: [u64; 8] = std::array::from_fn(|lane| PRIME.rotate_left(lane as u32 * 7));
    for line in lines {
        for (lane, sum) in lanes.iter_mut().enumerate() {
            *sum = (*sum ^ line.wide(lane)).wrapping_mul(PRIME).rotate_left(31);
        }
    }
    lanes.iter().fold(lines.len() as u64, |sum, &lane| {
        (sum ^ lane).wrapping_mul(PRIME).rotate_left(29) ^ (lane >> 32)
    })
}

/// Asks for a line that will be read soon.
#[inline(always)]
pub fn prefetch(lines: &[Line], at: usize) {
    #[cfg(target_arch = "x86_64")]
    if at < lines.len() {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: the address lies inside the slice, and a prefetch reads nothing.
        unsafe { _mm_prefetch(lines.as_ptr().add(at).cast(), _MM_HINT_T0) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (lines, at);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_changed_bit_changes_the_sum() {
        let mut lines = vec![Line::ZERO; 5];
        for (at, number) in numbers_mut(&mut lines).iter_mut().enumerate() {
            *number = (at as u32).wrapping_mul(2_654_435_761);
        }
        let sum = checksum(&lines);
        for at in 0..lines.len() * LINE {
            for bit in 0..8 {
                bytes_mut(&mut lines)[at] ^= 1 << bit;
                assert_ne!(checksum(&lines), sum);
                bytes_mut(&mut lines)[at] ^= 1 << bit;
            }
        }
        assert_ne!(checksum(&lines[..4]), sum);
    }
}
