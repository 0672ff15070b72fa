//! Counts of rules: sorted records become one entry for each pair of sides.

use std::cmp::Ordering;

use tunesmith_align::Link;

use crate::code::{put, put_long, take, take_long, take_side};
use crate::collect::Sorted;
use crate::links::{links, take_links};

/// A share of one, so that sums do not depend on their order.
pub const ONE: u64 = 1 << 32;
/// Counts of orientations: by word and by block, to the previous and the next, four each.
pub const ORIENTATIONS: usize = 16;

/// What the last part of a record is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// One byte with two or four orientations.
    Phrase,
    /// Twice the number of rules that share a weight of one, and one more for those that count.
    Hiero,
}

/// How often something was seen, and its weight in units of [`ONE`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Total {
    pub count: u64,
    pub weight: u64,
    /// With how many different other sides.
    pub distinct: u32,
}

/// Counts over all rules.
#[derive(Debug, Clone, Default)]
pub struct Counts {
    pub instances: u64,
    pub pairs: u64,
    pub sources: u64,
    /// How many pairs were seen once, twice, … ten times; index 0 is not used.
    pub of_counts: [u64; 11],
}

impl Counts {
    pub fn add(mut self, other: &Counts) -> Self {
        self.instances += other.instances;
        self.pairs += other.pairs;
        self.sources += other.sources;
        for (sum, more) in self.of_counts.iter_mut().zip(other.of_counts) {
            *sum += more;
        }
        self
    }
}

/// Groups a sorted partition by source side; `target` is told the bytes, ordinal, count and weight
/// of each entry.
pub fn group(
    sorted: &Sorted<'_>,
    kind: Kind,
    mut target: impl FnMut(&[u8], u32, u64, u64),
) -> (Vec<u8>, Counts) {
    let mut out = Vec::new();
    let mut counts = Counts { instances: sorted.len() as u64, ..Counts::default() };
    let mut entries = Vec::new();
    let mut open: Option<(&[u8], Total)> = None;
    let mut pair: Option<Tally<'_>> = None;
    let mut ordinal = 0;
    let mut close = |pair: &mut Tally<'_>, total: &mut Total, entries: &mut Vec<u8>| {
        target(pair.target, ordinal, pair.count, pair.weight);
        ordinal += 1;
        counts.pairs += 1;
        if let Some(slot) = counts.of_counts.get_mut(pair.count as usize) {
            *slot += 1;
        }
        total.count += pair.count;
        total.weight += pair.weight;
        total.distinct += 1;
        pair.write(kind, entries);
    };
    for record in sorted.iter() {
        let mut rest = record;
        let Some(((source, source_length), (side, target_length))) =
            take_side(&mut rest).zip(take_side(&mut rest))
        else {
            continue;
        };
        let links = take_links(&mut rest, source_length, target_length).unwrap_or(&[0]);
        if let (Some((last, total)), Some(tally)) = (&mut open, &mut pair)
            && (*last != source || tally.target != side)
        {
            close(tally, total, &mut entries);
            pair = None;
            if *last != source {
                write_group(last, *total, &mut entries, &mut out);
                counts.sources += 1;
                open = None;
            }
        }
        open.get_or_insert((source, Total::default()));
        pair.get_or_insert_with(|| Tally::new(side, (source_length, target_length)))
            .add(links, rest, kind);
    }
    if let (Some((last, total)), Some(tally)) = (&mut open, &mut pair) {
        close(tally, total, &mut entries);
        write_group(last, *total, &mut entries, &mut out);
        counts.sources += 1;
    }
    (out, counts)
}

fn write_group(source: &[u8], total: Total, entries: &mut Vec<u8>, out: &mut Vec<u8>) {
    out.extend_from_slice(source);
    put_long(total.count, out);
    put_long(total.weight, out);
    put(total.distinct, out);
    out.append(entries);
}

/// One pair of sides while its records come in.
struct Tally<'a> {
    target: &'a [u8],
    lengths: (usize, usize),
    count: u64,
    weight: u64,
    alignments: Vec<(&'a [u8], u64)>,
    orientations: [u32; ORIENTATIONS],
}

impl<'a> Tally<'a> {
    fn new(target: &'a [u8], lengths: (usize, usize)) -> Self {
        Tally {
            target,
            lengths,
            count: 0,
            weight: 0,
            alignments: Vec::new(),
            orientations: [0; ORIENTATIONS],
        }
    }

    fn add(&mut self, links: &'a [u8], mut rest: &[u8], kind: Kind) {
        let counts = match kind {
            Kind::Phrase => {
                self.weight += ONE;
                let bits = rest.first().copied().unwrap_or(0);
                for place in 0..4 {
                    self.orientations[4 * place + (bits >> (2 * place) & 3) as usize] += 1;
                }
                1
            }
            Kind::Hiero => {
                let shares = take(&mut rest).unwrap_or(3).max(2);
                self.weight += ONE / u64::from(shares / 2);
                u64::from(shares & 1)
            }
        };
        self.count += counts;
        match self.alignments.last_mut() {
            Some((last, count)) if *last == links => *count += counts,
            _ => self.alignments.push((links, counts)),
        }
    }

    fn write(&self, kind: Kind, out: &mut Vec<u8>) {
        out.extend_from_slice(self.target);
        put_long(self.count, out);
        put_long(self.weight, out);
        let (source, target) = self.lengths;
        let (direct, inverse) = match &self.alignments[..] {
            [(only, _)] => (*only, None),
            several => {
                let list: Vec<(Vec<Link>, u64, &[u8])> = several
                    .iter()
                    .map(|&(bytes, count)| (links(bytes, source, target).collect(), count, bytes))
                    .collect();
                let best = |order: fn(&[Link], &[Link]) -> Ordering| {
                    let best = list.iter().max_by(|a, b| a.1.cmp(&b.1).then(order(&a.0, &b.0)));
                    best.map_or(several[0].0, |best| best.2)
                };
                let (direct, inverse) = (best(by_target), best(by_source));
                (direct, (direct != inverse).then_some(inverse))
            }
        };
        out.extend_from_slice(direct);
        out.push(u8::from(inverse.is_some()));
        out.extend_from_slice(inverse.unwrap_or_default());
        if kind == Kind::Phrase {
            self.orientations.iter().for_each(|&count| put(count, out));
        }
    }
}

/// Of two alignments seen equally often the greater counts: sets of source words compared from
/// the first target word on.
fn by_target(a: &[Link], b: &[Link]) -> Ordering {
    compare(a.iter().map(|&(source, target)| (target, source)), b.iter().map(|l| (l.1, l.0)))
}

/// The same seen from the other side, which may choose another alignment.
fn by_source(a: &[Link], b: &[Link]) -> Ordering {
    let sorted = |links: &[Link]| {
        let mut links = links.to_vec();
        links.sort_unstable();
        links
    };
    compare(sorted(a).into_iter(), sorted(b).into_iter())
}

/// Compares lists of (word, other word): at the first difference the set of the earlier word
/// decides, and a set that goes on is greater than one that ends.
fn compare(
    mut a: impl Iterator<Item = (u16, u16)>,
    mut b: impl Iterator<Item = (u16, u16)>,
) -> Ordering {
    loop {
        match (a.next(), b.next()) {
            (None, None) => return Ordering::Equal,
            (Some(_), None) => return Ordering::Greater,
            (None, Some(_)) => return Ordering::Less,
            (Some(one), Some(two)) if one == two => {}
            // The one whose next link belongs to the earlier word has the longer set there.
            (Some(one), Some(two)) => return two.0.cmp(&one.0).then(one.1.cmp(&two.1)),
        }
    }
}

/// One entry of a partition that [`group`] wrote.
#[derive(Debug, Default)]
pub struct Entry {
    pub target: Vec<u32>,
    pub target_bytes: Vec<u8>,
    pub count: u64,
    pub weight: u64,
    pub links: Vec<Link>,
    /// As the inverse direction would choose them.
    pub inverse: Vec<Link>,
    pub link_bytes: Vec<u8>,
    pub orientations: [u32; ORIENTATIONS],
}

impl Entry {
    pub fn read(&mut self, bytes: &mut &[u8], kind: Kind, source: usize) -> Option<()> {
        let (side, length) = take_side(bytes)?;
        self.target.clear();
        self.target.extend(crate::code::codes(side));
        self.target_bytes.clear();
        self.target_bytes.extend_from_slice(side);
        self.count = take_long(bytes)?;
        self.weight = take_long(bytes)?;
        let direct = take_links(bytes, source, length)?;
        self.link_bytes.clear();
        self.link_bytes.extend_from_slice(direct);
        self.links.clear();
        self.links.extend(links(direct, source, length));
        self.inverse.clear();
        let (&other, rest) = bytes.split_first()?;
        *bytes = rest;
        if other == 1 {
            let inverse = take_links(bytes, source, length)?;
            self.inverse.extend(links(inverse, source, length));
        } else {
            self.inverse.extend_from_slice(&self.links);
        }
        if kind == Kind::Phrase {
            for count in &mut self.orientations {
                *count = take(bytes)?;
            }
        }
        Some(())
    }
}

/// The head of a group: its source side, how often it was seen, and with how many entries.
pub fn read_group<'a>(bytes: &mut &'a [u8]) -> Option<(&'a [u8], Total)> {
    let (source, _) = take_side(bytes)?;
    let count = take_long(bytes)?;
    let weight = take_long(bytes)?;
    Some((source, Total { count, weight, distinct: take(bytes)? }))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn sets(links: &[Link], by_target: bool) -> Vec<BTreeSet<u16>> {
        let mut sets = vec![BTreeSet::new(); 4];
        for &(source, target) in links {
            let (at, other) = if by_target { (target, source) } else { (source, target) };
            sets[at as usize].insert(other);
        }
        sets
    }

    fn some_links() -> impl Strategy<Value = Vec<Link>> {
        proptest::collection::btree_set((0u16..4, 0u16..4), 0..6).prop_map(|set| {
            let mut links: Vec<Link> = set.into_iter().map(|(a, b)| (b, a)).collect();
            links.sort_unstable_by_key(|&(source, target)| (target, source));
            links
        })
    }

    proptest! {
        #[test]
        fn alignments_compare_as_lists_of_sets(a in some_links(), b in some_links()) {
            prop_assert_eq!(by_target(&a, &b), sets(&a, true).cmp(&sets(&b, true)));
            prop_assert_eq!(by_source(&a, &b), sets(&a, false).cmp(&sets(&b, false)));
        }
    }
}
