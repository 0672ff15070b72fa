//! The two inner loops of every learner over lists, written so that they use the vector unit.

/// Lanes are fixed: the order of additions, and so the result, is the same on every machine.
const LANES: usize = 4;

/// Appends the product of each row of `block` with `weights`, whose length is a row's.
pub fn products(block: &[f32], weights: &[f64], out: &mut Vec<f64>) {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") {
        // SAFETY: the processor has just said that it knows these instructions.
        return unsafe { products_avx2(block, weights, out) };
    }
    products_anywhere(block, weights, out);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn products_avx2(block: &[f32], weights: &[f64], out: &mut Vec<f64>) {
    products_anywhere(block, weights, out);
}

// Plain loops, no closures: a closure would be compiled without the instructions of its caller.
#[inline(always)]
fn products_anywhere(block: &[f32], weights: &[f64], out: &mut Vec<f64>) {
    let width = weights.len();
    let start = out.len();
    out.resize(start + block.len() / width, 0.0);
    if width < LANES {
        for (row, product) in block.chunks_exact(width).zip(&mut out[start..]) {
            for (&value, &weight) in row.iter().zip(weights) {
                *product += f64::from(value) * weight;
            }
        }
        return;
    }
    // A row that is no multiple of the lanes ends with a chunk that reaches back; what it sees for
    // the second time weighs nothing there.
    let (whole, rest) = weights.as_chunks::<LANES>();
    let mut last = [0.0; LANES];
    last[LANES - rest.len()..].copy_from_slice(rest);
    for (row, product) in block.chunks_exact(width).zip(&mut out[start..]) {
        let mut sums = [0.0; LANES];
        let (values, _) = row.as_chunks::<LANES>();
        for (values, weights) in values.iter().zip(whole) {
            for lane in 0..LANES {
                sums[lane] += f64::from(values[lane]) * weights[lane];
            }
        }
        if !rest.is_empty()
            && let Some(values) = row.last_chunk::<LANES>()
        {
            for lane in 0..LANES {
                sums[lane] += f64::from(values[lane]) * last[lane];
            }
        }
        *product = (sums[0] + sums[1]) + (sums[2] + sums[3]);
    }
}

/// Adds the rows of `block`, each times its factor, to `sums`, whose length is a row's.
pub fn sums(block: &[f32], factors: &[f64], sums: &mut [f64]) {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") {
        // SAFETY: the processor has just said that it knows these instructions.
        return unsafe { sums_avx2(block, factors, sums) };
    }
    sums_anywhere(block, factors, sums);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn sums_avx2(block: &[f32], factors: &[f64], sums: &mut [f64]) {
    sums_anywhere(block, factors, sums);
}

#[inline(always)]
fn sums_anywhere(block: &[f32], factors: &[f64], sums: &mut [f64]) {
    for (row, &factor) in block.chunks_exact(sums.len()).zip(factors) {
        for (sum, &value) in sums.iter_mut().zip(row) {
            *sum += factor * f64::from(value);
        }
    }
}

/// Adds some columns of `values`, each times its weight, to `out`, which is as long as a column. The
/// second parts of `columns` are their numbers. Values are numbers of 32 bits, little-endian, as
/// they lie in files.
pub fn combine(values: &[[u8; 4]], columns: &[(u32, u32)], weights: &[f64], out: &mut [f64]) {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") {
        // SAFETY: the processor has just said that it knows these instructions.
        return unsafe { combine_avx2(values, columns, weights, out) };
    }
    combine_anywhere(values, columns, weights, out);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn combine_avx2(values: &[[u8; 4]], columns: &[(u32, u32)], weights: &[f64], out: &mut [f64]) {
    combine_anywhere(values, columns, weights, out);
}

// Four columns at a time, so that what was added up is read and written less often.
#[inline(always)]
fn combine_anywhere(values: &[[u8; 4]], columns: &[(u32, u32)], weights: &[f64], out: &mut [f64]) {
    let (fours, rest) = columns.as_chunks::<LANES>();
    let (weights, others) = weights.as_chunks::<LANES>();
    for (four, weights) in fours.iter().zip(weights) {
        let a = column(values, four[0], out.len());
        let b = column(values, four[1], out.len());
        let c = column(values, four[2], out.len());
        let d = column(values, four[3], out.len());
        for row in 0..out.len() {
            out[row] += (value(a[row]) * weights[0] + value(b[row]) * weights[1])
                + (value(c[row]) * weights[2] + value(d[row]) * weights[3]);
        }
    }
    for (&one, &weight) in rest.iter().zip(others) {
        let column = column(values, one, out.len());
        for row in 0..out.len() {
            out[row] += value(column[row]) * weight;
        }
    }
}

#[inline(always)]
fn column(values: &[[u8; 4]], (_, at): (u32, u32), height: usize) -> &[[u8; 4]] {
    &values[at as usize * height..][..height]
}

#[inline(always)]
fn value(bytes: [u8; 4]) -> f64 {
    f64::from(f32::from_le_bytes(bytes))
}

/// The sum of each of some columns, as in [`combine`], its rows times their factors.
pub fn weigh_columns(values: &[[u8; 4]], columns: &[(u32, u32)], factors: &[f64], out: &mut [f64]) {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") {
        // SAFETY: the processor has just said that it knows these instructions.
        return unsafe { weigh_columns_avx2(values, columns, factors, out) };
    }
    weigh_columns_anywhere(values, columns, factors, out);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn weigh_columns_avx2(
    values: &[[u8; 4]],
    columns: &[(u32, u32)],
    factors: &[f64],
    out: &mut [f64],
) {
    weigh_columns_anywhere(values, columns, factors, out);
}

#[inline(always)]
fn weigh_columns_anywhere(
    values: &[[u8; 4]],
    columns: &[(u32, u32)],
    factors: &[f64],
    out: &mut [f64],
) {
    const WIDE: usize = 2 * LANES;
    let (many, last) = factors.as_chunks::<WIDE>();
    for (&one, out) in columns.iter().zip(out) {
        let (values, rest) = column(values, one, factors.len()).as_chunks::<WIDE>();
        let mut sums = [0.0; WIDE];
        for (values, factors) in values.iter().zip(many) {
            for lane in 0..WIDE {
                sums[lane] += value(values[lane]) * factors[lane];
            }
        }
        for lane in 0..rest.len() {
            sums[lane] += value(rest[lane]) * last[lane];
        }
        *out = ((sums[0] + sums[4]) + (sums[1] + sums[5]))
            + ((sums[2] + sums[6]) + (sums[3] + sums[7]));
    }
}

/// 1.5 · 2^52: what is added to it is rounded to a whole number, which its last bits are.
const ROUNDING: f64 = 6_755_399_441_055_744.0;
/// ln 2 in two parts; the first times a small whole number is exact.
const LN_2: (f64, f64) = (0.693_147_180_369_123_8, 1.908_214_929_270_587_7e-10);
/// 1/n!, from n = 12 on down.
const FACTORIALS: [f64; 13] = [
    1.0 / 479_001_600.0,
    1.0 / 39_916_800.0,
    1.0 / 3_628_800.0,
    1.0 / 362_880.0,
    1.0 / 40_320.0,
    1.0 / 5_040.0,
    1.0 / 720.0,
    1.0 / 120.0,
    1.0 / 24.0,
    1.0 / 6.0,
    1.0 / 2.0,
    1.0,
    1.0,
];

// Replaces each score by `e^(sharpness · (score - top))`; no score is above `top`.
// As a power of two times a series of what is left, which compilers turn into vector instructions;
// a call of `exp` for each number takes three times as long.
#[inline(always)]
fn exponentials(scores: &mut [f64], top: f64, sharpness: f64) {
    for score in scores {
        let power = sharpness * (*score - top);
        // Smaller ones would leave the range of normal numbers; not a number stays so.
        let power = if power < -700.0 { -700.0 } else { power };
        let rounded = power * std::f64::consts::LOG2_E + ROUNDING;
        let whole = rounded - ROUNDING;
        let rest = (power - whole * LN_2.0) - whole * LN_2.1;
        let mut series = 0.0;
        for factor in FACTORIALS {
            series = series * rest + factor;
        }
        let bits = rounded.to_bits().wrapping_add(1023) << 52;
        *score = series * f64::from_bits(bits);
    }
}

/// The mean gain of hypotheses with probabilities `∝ e^(sharpness · score)`. Each score is replaced by
/// how much the mean falls when it rises.
pub fn expect(scores: &mut [f64], gains: &[f64], sharpness: f64) -> f64 {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") {
        // SAFETY: the processor has just said that it knows these instructions.
        return unsafe { expect_avx2(scores, gains, sharpness) };
    }
    expect_anywhere(scores, gains, sharpness)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn expect_avx2(scores: &mut [f64], gains: &[f64], sharpness: f64) -> f64 {
    expect_anywhere(scores, gains, sharpness)
}

#[inline(always)]
fn expect_anywhere(scores: &mut [f64], gains: &[f64], sharpness: f64) -> f64 {
    let mut tops = [f64::NEG_INFINITY; LANES];
    let (chunks, rest) = scores.as_chunks::<LANES>();
    for chunk in chunks {
        for lane in 0..LANES {
            tops[lane] = if chunk[lane] > tops[lane] { chunk[lane] } else { tops[lane] };
        }
    }
    for lane in 0..rest.len() {
        tops[lane] = if rest[lane] > tops[lane] { rest[lane] } else { tops[lane] };
    }
    let top = tops[0].max(tops[1]).max(tops[2].max(tops[3]));
    exponentials(scores, top, sharpness);
    let (mut masses, mut worths) = ([0.0; LANES], [0.0; LANES]);
    let (chunks, rest) = scores.as_chunks::<LANES>();
    let (gain_chunks, gain_rest) = gains.as_chunks::<LANES>();
    for (chunk, gains) in chunks.iter().zip(gain_chunks) {
        for lane in 0..LANES {
            masses[lane] += chunk[lane];
            worths[lane] += chunk[lane] * gains[lane];
        }
    }
    for lane in 0..rest.len() {
        masses[lane] += rest[lane];
        worths[lane] += rest[lane] * gain_rest[lane];
    }
    let mass = (masses[0] + masses[1]) + (masses[2] + masses[3]);
    let mean = ((worths[0] + worths[1]) + (worths[2] + worths[3])) / mass;
    let scale = sharpness / mass;
    for (share, &gain) in scores.iter_mut().zip(gains) {
        *share *= scale * (mean - gain);
    }
    mean
}

/// The place of the largest `model·score + gain·gain`; among equals the one with the highest score,
/// then the first. None if there is no number among them.
pub fn argmax(scores: &[f64], gains: &[f64], model: f64, gain: f64) -> Option<usize> {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") {
        // SAFETY: the processor has just said that it knows these instructions.
        return unsafe { argmax_avx2(scores, gains, model, gain) };
    }
    argmax_anywhere(scores, gains, model, gain)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn argmax_avx2(scores: &[f64], gains: &[f64], model: f64, gain: f64) -> Option<usize> {
    argmax_anywhere(scores, gains, model, gain)
}

#[inline(always)]
fn argmax_anywhere(scores: &[f64], gains: &[f64], model: f64, gain: f64) -> Option<usize> {
    let (score_chunks, score_rest) = scores.as_chunks::<LANES>();
    let (gain_chunks, gain_rest) = gains.as_chunks::<LANES>();
    let mut tops = [f64::NEG_INFINITY; LANES];
    for (scores, gains) in score_chunks.iter().zip(gain_chunks) {
        for lane in 0..LANES {
            let value = model * scores[lane] + gain * gains[lane];
            tops[lane] = if value > tops[lane] { value } else { tops[lane] };
        }
    }
    for (lane, (score, own)) in score_rest.iter().zip(gain_rest).enumerate() {
        let value = model * score + gain * own;
        tops[lane] = if value > tops[lane] { value } else { tops[lane] };
    }
    let top = tops[0].max(tops[1]).max(tops[2].max(tops[3]));
    let mut best = None;
    let mut best_score = f64::NEG_INFINITY;
    let mut consider = |place: usize, score: f64, own: f64| {
        if model * score + gain * own == top && (best.is_none() || score > best_score) {
            (best, best_score) = (Some(place), score);
        }
    };
    for (chunk, (scores, gains)) in score_chunks.iter().zip(gain_chunks).enumerate() {
        let mut hit = false;
        for lane in 0..LANES {
            hit |= model * scores[lane] + gain * gains[lane] == top;
        }
        if hit {
            for lane in 0..LANES {
                consider(chunk * LANES + lane, scores[lane], gains[lane]);
            }
        }
    }
    let start = score_chunks.len() * LANES;
    for (place, (&score, &own)) in score_rest.iter().zip(gain_rest).enumerate() {
        consider(start + place, score, own);
    }
    best
}

#[cfg(test)]
mod tests {
    use super::{argmax, expect, exponentials, products, sums};

    #[test]
    fn exponentials_are_those_of_the_library() {
        let wanted: Vec<f64> = (0..5000).map(|at| -0.139 * f64::from(at)).collect();
        let mut found: Vec<f64> = wanted.iter().map(|power| power / 0.5 + 3.0).collect();
        exponentials(&mut found, 3.0, 0.5);
        for (found, power) in found.iter().zip(&wanted) {
            assert!((found / power.exp() - 1.0).abs() < 1e-12, "{power}: {found}");
        }
        let mut ends = [3.0, f64::NEG_INFINITY, -1e300, f64::NAN];
        exponentials(&mut ends, 3.0, 1.0);
        assert!(ends[0] == 1.0 && ends[1] < 1e-300 && ends[2] < 1e-300 && ends[3].is_nan());
    }

    #[test]
    fn the_mean_gain_and_its_slope_are_those_of_the_plain_sums() {
        for count in 1..12 {
            let wanted: Vec<f64> = (0..count).map(|at| 3.0 * f64::from(at).sin()).collect();
            let gains: Vec<f64> = (0..count).map(|at| f64::from(at).cos()).collect();
            let powers: Vec<f64> = wanted.iter().map(|score| (0.7 * score).exp()).collect();
            let mass: f64 = powers.iter().sum();
            let mean = powers.iter().zip(&gains).map(|(p, gain)| p * gain).sum::<f64>() / mass;
            let mut found = wanted.clone();
            assert!((expect(&mut found, &gains, 0.7) - mean).abs() < 1e-12);
            for ((found, power), gain) in found.iter().zip(&powers).zip(&gains) {
                assert!((found - 0.7 * power / mass * (mean - gain)).abs() < 1e-12);
            }
        }
    }

    #[test]
    fn products_are_those_of_the_plain_sum() {
        for width in 1..12 {
            let block: Vec<f32> = (0..width * 5).map(|at| (at as f32 * 0.37).sin()).collect();
            let weights: Vec<f64> = (0..width).map(|at| (at as f64 * 0.71).cos()).collect();
            let mut out = Vec::new();
            products(&block, &weights, &mut out);
            for (row, product) in block.chunks(width).zip(out) {
                let plain: f64 = row.iter().zip(&weights).map(|(&x, w)| f64::from(x) * w).sum();
                assert!((plain - product).abs() < 1e-12);
            }
        }
    }

    #[test]
    fn sums_add_up_rows_times_factors() {
        let block: Vec<f32> = (0..7 * 3).map(|at| (at as f32 * 0.37).sin()).collect();
        let factors = [0.5, -2.0, 0.25];
        let mut found = vec![1.0; 7];
        sums(&block, &factors, &mut found);
        for (at, sum) in found.iter().enumerate() {
            let column = block.chunks(7).zip(&factors).map(|(row, f)| f64::from(row[at]) * f);
            assert!((sum - 1.0 - column.sum::<f64>()).abs() < 1e-12);
        }
    }

    #[test]
    fn ties_go_to_the_higher_score_then_to_the_first() {
        let gains = [0.5, 0.9, 0.9, 0.9, 0.1];
        assert_eq!(argmax(&[5.0, 1.0, 3.0, 3.0, 9.0], &gains, 0.0, 1.0), Some(2));
        assert_eq!(argmax(&[1.0, 2.0, 2.0], &[0.0; 3], 1.0, 0.0), Some(1));
        assert_eq!(argmax(&[], &[], 1.0, 1.0), None);
        assert_eq!(argmax(&[f64::NAN; 7], &[0.0; 7], 1.0, 0.0), None);
    }
}
