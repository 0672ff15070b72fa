//! Totals of target sides, brought back to the entries that want them.

use std::hash::BuildHasher;

use rayon::prelude::*;
use rustc_hash::{FxBuildHasher, FxHashMap};
use tunesmith_text::{Result, Watch};

use crate::code::{put, put_long, take, take_long, take_side};
use crate::groups::Total;
use crate::store::Store;

/// The partition of a target side.
pub fn partition(target: &[u8], partitions: usize) -> usize {
    (FxBuildHasher.hash_one(target) >> 32) as usize % partitions
}

/// Appends what the total of a target side is made of, and the entry that wants it.
pub fn put_share(
    target: &[u8],
    (place, ordinal): (usize, u32),
    count: u64,
    weight: u64,
    out: &mut Vec<u8>,
) {
    out.extend_from_slice(target);
    put(place as u32, out);
    put(ordinal, out);
    put_long(count, out);
    put_long(weight, out);
}

/// Sums the shares of each target side; the result has a partition for each place of `back`.
pub fn total(shares: &Store, back: &Store, watch: &Watch) -> Result<()> {
    (0..shares.partitions()).into_par_iter().try_for_each(|partition| {
        let bytes = shares.take(partition)?;
        let mut sums: FxHashMap<&[u8], Total> = FxHashMap::default();
        for (target, _, count, weight) in read_shares(&bytes) {
            let sum = sums.entry(target).or_default();
            sum.count += count;
            sum.weight += weight;
            sum.distinct += 1;
        }
        let mut writer = back.writer();
        for (target, (place, ordinal), _, _) in read_shares(&bytes) {
            let sum = &sums[target];
            let out = writer.open(place);
            put(ordinal, out);
            put_long(sum.count, out);
            put_long(sum.weight, out);
            put(sum.distinct, out);
            writer.full(place)?;
        }
        writer.finish()?;
        watch.step(1)
    })
}

type Share<'a> = (&'a [u8], (usize, u32), u64, u64);

fn read_shares(mut bytes: &[u8]) -> impl Iterator<Item = Share<'_>> {
    std::iter::from_fn(move || {
        let (target, _) = take_side(&mut bytes)?;
        let place = (take(&mut bytes)? as usize, take(&mut bytes)?);
        Some((target, place, take_long(&mut bytes)?, take_long(&mut bytes)?))
    })
}

/// The totals that came back to one place, in the order of its entries.
pub fn read_totals(mut bytes: &[u8]) -> Vec<Total> {
    let mut totals = Vec::new();
    while let Some(ordinal) = take(&mut bytes) {
        let ordinal = ordinal as usize;
        if totals.len() <= ordinal {
            totals.resize(ordinal + 1, Total::default());
        }
        totals[ordinal] = Total {
            count: take_long(&mut bytes).unwrap_or(0),
            weight: take_long(&mut bytes).unwrap_or(0),
            distinct: take(&mut bytes).unwrap_or(0),
        };
    }
    totals
}
