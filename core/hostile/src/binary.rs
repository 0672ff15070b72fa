//! Readers of binary files, whose checksums are put right first.

use tunesmith_lm::Model;
use tunesmith_rules::{Table, import_cdec};
use tunesmith_space::{Edge, ForestBuilder, Forests, Side};

use crate::{Folder, kept, note, read_back, text};

pub const LINE: usize = 64;

pub fn lm_seed() -> Vec<u8> {
    let folder = Folder::new();
    let model = Model::load(folder.file("arpa", &text::arpa_seed())).expect("a language model");
    model.save(folder.at("lm")).expect("a temporary file");
    read_back(&folder.at("lm"))
}

/// A binary language model.
pub fn lm(bytes: &[u8]) -> bool {
    let mut bytes = bytes.to_vec();
    bytes.truncate(bytes.len() / LINE * LINE);
    sum_lm(&mut bytes);
    let folder = Folder::new();
    kept(Model::load(folder.file("lm", &bytes))).is_some_and(|model| ask(&model))
}

/// Puts the checksums of a language model right.
pub fn sum_lm(bytes: &mut [u8]) {
    if bytes.len() < 4 * LINE {
        return;
    }
    let body = sum_of_lines(&bytes[4 * LINE..]);
    bytes[18 * 8..19 * 8].copy_from_slice(&body.to_le_bytes());
    bytes[31 * 8..32 * 8].fill(0);
    let own = sum_of_lines(&bytes[..4 * LINE]);
    bytes[31 * 8..32 * 8].copy_from_slice(&own.to_le_bytes());
}

/// As in `core/lm/src/line.rs`.
fn sum_of_lines(bytes: &[u8]) -> u64 {
    const PRIME: u64 = 0x9e37_79b1_85eb_ca87;
    let mut lanes: [u64; 8] = std::array::from_fn(|lane| PRIME.rotate_left(lane as u32 * 7));
    for line in bytes.chunks_exact(LINE) {
        for (sum, wide) in lanes.iter_mut().zip(line.chunks_exact(8)) {
            let wide = u64::from_le_bytes(wide.try_into().expect("eight bytes"));
            *sum = (*sum ^ wide).wrapping_mul(PRIME).rotate_left(31);
        }
    }
    lanes.iter().fold((bytes.len() / LINE) as u64, |sum, &lane| {
        (sum ^ lane).wrapping_mul(PRIME).rotate_left(29) ^ (lane >> 32)
    })
}

/// Asks a model for words that it knows and one that it does not.
pub fn ask(model: &Model) -> bool {
    let mut state = model.begin();
    for word in ["a", "b", "</s>", "a"] {
        state = model.score(&state, model.id(word)).1;
    }
    note((model.order(), model.vocabulary_len().min(9), state.len()));
    let ids = 0..model.vocabulary_len().min(9) as u32;
    ids.filter_map(|id| model.word(id)).for_each(|word| assert!(word.len() <= model.bytes()));
    true
}

pub fn rules_seed() -> Vec<u8> {
    let folder = Folder::new();
    import_cdec(&folder.file("grammar", &text::grammar_seed()), &folder.at("rules"))
        .expect("a table");
    read_back(&folder.at("rules"))
}

/// A binary table of rules. Only its trailer is put right: the rest is read unchecked.
pub fn rules(bytes: &[u8]) -> bool {
    let mut bytes = bytes.to_vec();
    sum_rules(&mut bytes);
    let folder = Folder::new();
    kept(Table::open(&folder.file("rules", &bytes), false)).is_some_and(|table| walk(&table))
}

/// Puts the checksum of a table's trailer right.
pub fn sum_rules(bytes: &mut [u8]) {
    if let Some(start) = bytes.len().checked_sub(208) {
        let sum = crc32fast::hash(&bytes[start..start + 196]);
        bytes[start + 196..start + 200].copy_from_slice(&sum.to_le_bytes());
    }
}

/// Reads every rule and some words.
pub fn walk(table: &Table) -> bool {
    let mut nodes = vec![table.root()];
    let mut seen = 0;
    while let Some(node) = nodes.pop() {
        table.entries(node).for_each(|entry| {
            entry.target().for_each(drop);
            entry.links().for_each(drop);
        });
        nodes.extend(table.children(node).map(|child| child.1));
        // Damage may give a node several parents.
        seen += 1;
        if seen > 1000 {
            break;
        }
    }
    note((seen.min(9), table.columns().len()));
    let words = (0..9).flat_map(|id| [table.source_word(id), table.target_word(id)]);
    words.flatten().for_each(|word| assert!(word.len() <= table.bytes()));
    let _ = (table.source_id("a"), table.target_id("x"));
    true
}

pub fn forests_seed() -> Vec<u8> {
    let mut builder = ForestBuilder::default();
    let word = builder.word("x");
    let rule = builder.rule([(0, 1.0)], [Side::Word(word)]);
    builder.node();
    builder.edge(Edge { tails: [Edge::NONE; 2], rule, label: 0 }, []);
    let mut forests = Forests { forests: vec![builder.finish()], ..Forests::default() };
    forests.names.intern("A");
    forests.encoded()
}

/// A file of forests.
pub fn forests(bytes: &[u8]) -> bool {
    let mut bytes = bytes.to_vec();
    if let Some(end) = bytes.len().checked_sub(4) {
        let sum = crc32fast::hash(&bytes[..end]);
        bytes[end..].copy_from_slice(&sum.to_le_bytes());
    }
    let folder = Folder::new();
    kept(Forests::load(folder.file("forests", &bytes))).is_some_and(|forests| {
        let weights = vec![1.0; forests.names.len()];
        let lists = forests.lists(&weights, 3, true);
        note((lists.sentences().min(9), lists.hypotheses().min(9)));
        true
    })
}
