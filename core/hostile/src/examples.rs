//! Segments of decoded examples, and weights of structured models.

use tunesmith_local::{Example, Examples, Segment, SegmentWriter};
use tunesmith_metric::TableBuilder;
use tunesmith_space::{Hypothesis, PoolsBuilder};
use tunesmith_structured::Weights;

use crate::whole::{divided, joined, wide};
use crate::{Folder, kept, note, read_back};

const TRAILER: usize = 152;
const PARTS: usize = 13;
const LIST_ENDS: usize = 9;
const LIST_SUMS: usize = 10;

/// Two examples with lists of dense and sparse features and statistics.
pub fn segment_seed() -> Vec<u8> {
    let mut builder = PoolsBuilder::default();
    let ids: Vec<u32> = ["A", "B", "C"].iter().map(|name| builder.names.intern(name)).collect();
    let mut table = TableBuilder::new(2);
    for sentence in 0..2u8 {
        builder.sentence(None);
        for number in 0..3u8 {
            let value = f32::from(number + sentence);
            let features = [(ids[0], value), (ids[1 + usize::from(number % 2)], 1.0)];
            builder.push(Hypothesis {
                text: if number == 0 { "x y" } else { "y" },
                features: &features,
                score: Some(f64::from(value)),
                ..Hypothesis::default()
            });
            table.push(&[f64::from(number), 2.0]);
        }
        table.close();
    }
    let (pools, table) = (builder.finish(), table.finish());
    let folder = Folder::new();
    let path = folder.at("segment");
    let mut writer = SegmentWriter::create(&path, 2).expect("a temporary file");
    for (sentence, source) in ["a b a", "b c"].into_iter().enumerate() {
        let references = ["x".to_owned(), "y z".to_owned()];
        let example = Example { id: 3 * sentence as u64, source, references: &references };
        writer.push(example, &pools, Some((&table, &[0.5; 6])), sentence).expect("an example");
    }
    writer.finish().expect("a temporary file");
    read_back(&path)
}

/// A segment whose checksums are right.
pub fn segment(bytes: &[u8]) -> bool {
    let mut bytes = bytes.to_vec();
    sum(&mut bytes);
    used(&bytes)
}

/// Puts the checksums of lists, directory and trailer right, as far as the lengths let it.
fn sum(file: &mut [u8]) {
    let Some(end) = file.len().checked_sub(TRAILER) else { return };
    let length = |number: usize| wide(file, end + 8 + 8 * number);
    let lists = length(2);
    let start_of =
        |part: usize| (0..part).try_fold(lists, |at, one| at.checked_add(length(3 + one)));
    let (ends, sums) = (start_of(LIST_ENDS), start_of(LIST_SUMS));
    let (count, room) = (length(3 + LIST_ENDS) / 8, length(3 + LIST_SUMS) / 4);
    if let (Some(ends), Some(sums)) = (ends, sums) {
        let mut start = 8;
        for list in 0..count.min(room).min(1000) {
            let stop = wide(file, ends.saturating_add(8 * list).min(end));
            let sum = file.get(start..stop).map(crc32fast::hash).unwrap_or_default();
            let place = sums.saturating_add(4 * list);
            if let Some(place) = file.get_mut(place..place.saturating_add(4)) {
                place.copy_from_slice(&sum.to_le_bytes());
            }
            start = stop;
        }
    }
    if let Some(directory) = file.get(lists..end) {
        let sum = crc32fast::hash(directory).to_le_bytes();
        file[end + TRAILER - 16..end + TRAILER - 12].copy_from_slice(&sum);
    }
    let own = crc32fast::hash(&file[end..end + TRAILER - 12]).to_le_bytes();
    file[end + TRAILER - 12..end + TRAILER - 8].copy_from_slice(&own);
}

/// The numbers of the trailer, the lists, then the sections of the directory.
pub fn parts_seed() -> Vec<u8> {
    let file = segment_seed();
    let end = file.len() - TRAILER;
    let mut start = wide(&file, end + 24);
    let mut parts = vec![&file[end + 4..end + 24], &file[8..start]];
    for part in 0..PARTS {
        let length = wide(&file, end + 32 + 8 * part);
        parts.push(&file[start..start + length]);
        start += length;
    }
    joined(&parts)
}

/// A segment of these parts.
pub fn parts(bytes: &[u8]) -> bool {
    used(&parts_file(bytes))
}

fn parts_file(bytes: &[u8]) -> Vec<u8> {
    let [numbers, lists, parts @ ..] = divided::<{ PARTS + 2 }>(bytes);
    let mut file = b"tunes-ex".to_vec();
    file.extend_from_slice(lists);
    let mut trailer = 2u32.to_le_bytes().to_vec();
    trailer.extend_from_slice(numbers);
    trailer.resize(24, 0);
    trailer.extend(file.len().to_le_bytes());
    for part in parts {
        trailer.extend(part.len().to_le_bytes());
        file.extend_from_slice(part);
    }
    trailer.extend([0; 8]);
    trailer.extend(b"tunes-ex");
    file.extend(trailer);
    sum(&mut file);
    file
}

/// Opens a segment as an index does, searches it, reads its lists, removes and merges.
fn used(bytes: &[u8]) -> bool {
    let folder = Folder::new();
    let path = folder.file("segment", bytes);
    let Some(segment) = kept(Segment::open(&path)) else { return false };
    let (checksum, ids) = (segment.checksum(), segment.ids().collect::<Vec<_>>());
    drop(segment);
    let index = Examples::default();
    if kept(index.add(&path, checksum, &[])).is_none() {
        return false;
    }
    let near = index.near("a b", 3, None, true);
    note((near.len(), index.counts()));
    index.terms("b c");
    for texts in [false, true] {
        let Some(Some(lists)) = kept(index.lists(&ids, texts)) else { continue };
        let weights = vec![1.0; lists.pools.names.len()];
        let best = lists.pools.best(&weights);
        note((texts, best.len().min(9), lists.table.is_some()));
        let mut sums = vec![0.0; weights.len()];
        for sentence in 0..lists.pools.sentences() {
            let list = lists.pools.list(sentence);
            lists.pools.weigh(sentence, &vec![1.0; list.len()], &mut sums);
            lists.pools.classes(sentence);
            for hypothesis in list {
                let (ids, _) = lists.pools.features(hypothesis);
                assert!(ids.is_sorted_by(|one, other| one < other), "a feature twice in a row");
                assert!(!lists.pools.score(hypothesis).is_infinite(), "an infinite score");
                if let Some(table) = &lists.table {
                    assert!(
                        table.stats(sentence, hypothesis).iter().all(|value| value.is_finite())
                    );
                }
            }
        }
    }
    if let Some(Some((names, blocks))) = kept(index.blocks(&ids)) {
        let weights = vec![1.0; names.len()];
        let (mut room, mut scores, mut sums) = (Vec::new(), Vec::new(), vec![0.0; names.len()]);
        for block in &blocks {
            block.dot(&weights, &mut room, &mut scores);
            block.weigh(&scores, &mut room, &mut sums);
            assert!(block.gains.iter().all(|gain| gain.is_finite()));
            if !block.is_empty() {
                note(block.difference(0, block.len() - 1).len().min(9));
            }
        }
    }
    index.remove(&ids[..ids.len().min(1)]);
    let merged = folder.at("merged");
    if kept(index.merge(&[&path], &merged)).is_some() {
        kept(index.replace(&[&path], &merged)).expect("a file that was just written");
        assert_eq!(index.len(), ids.len() - ids.len().min(1));
    }
    true
}

/// Letters, ends, contexts, actions, weights and votes.
pub fn structured_seed() -> Vec<u8> {
    let words = |all: &[u32]| all.iter().flat_map(|one| one.to_le_bytes()).collect::<Vec<_>>();
    let wides = |all: &[u64]| all.iter().flat_map(|one| one.to_le_bytes()).collect::<Vec<_>>();
    let floats = |all: &[f64]| all.iter().flat_map(|one| one.to_le_bytes()).collect::<Vec<_>>();
    joined(&[
        b"w=ab",
        &wides(&[3, 4]),
        &words(&[0, 0, 1]),
        &words(&[0, 1, 1]),
        &floats(&[0.5, -0.5, 1.0]),
        &floats(&[1.0]),
    ])
}

/// The arrays of a file of a tagger's or a parser's weights.
pub fn structured(bytes: &[u8]) -> bool {
    let [letters, ends, contexts, actions, weights, votes] = divided(bytes);
    let words = |part: &[u8]| -> Vec<u32> {
        part.as_chunks().0.iter().map(|one| u32::from_le_bytes(*one)).collect()
    };
    let floats = |part: &[u8]| -> Vec<f64> {
        part.as_chunks().0.iter().map(|one| f64::from_le_bytes(*one)).collect()
    };
    let ends: Vec<u64> = ends.as_chunks().0.iter().map(|one| u64::from_le_bytes(*one)).collect();
    let (contexts, actions, votes) = (words(contexts), words(actions), floats(votes));
    let weights = floats(weights);
    let width = contexts.len().max(1);
    let voters = weights.chunks_exact(width).map(<[f64]>::to_vec).collect();
    let found = Weights::new(letters, &ends, &contexts, &actions, voters, votes);
    kept(found).is_some_and(|weights| {
        note((weights.features.len().min(9), weights.voters.len().min(9)));
        for id in 0..weights.features.len() as u32 {
            let (context, action) = weights.features.owner(id);
            assert!(weights.features.row(context).contains(&(action, id)));
            assert!(weights.features.names().name(context).is_some());
        }
        true
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_segment_put_together_from_its_parts_is_as_before() {
        assert_eq!(parts_file(&parts_seed()), segment_seed());
    }
}
