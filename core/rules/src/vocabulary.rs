//! The words of one side of a corpus, the most frequent first.

use tunesmith_text::Names;

/// Words by id. Frequent words have small ids, which take fewer bytes.
#[derive(Debug, Clone, Default)]
pub struct Vocabulary {
    names: Names,
}

impl From<Names> for Vocabulary {
    fn from(names: Names) -> Self {
        Vocabulary { names }
    }
}

impl Vocabulary {
    /// Renumbers names by count, ties by spelling; gives the new id of each old one.
    pub fn by_count(names: &Names, counts: &[u64]) -> (Vocabulary, Vec<u32>) {
        let name = |id: u32| names.name(id).unwrap_or_default();
        let mut order: Vec<u32> = (0..names.len() as u32).collect();
        order.sort_unstable_by(|&a, &b| {
            counts[b as usize].cmp(&counts[a as usize]).then_with(|| name(a).cmp(name(b)))
        });
        let mut vocabulary = Vocabulary::default();
        let mut renumbered = vec![0; order.len()];
        for &old in &order {
            renumbered[old as usize] = vocabulary.names.intern(name(old));
        }
        (vocabulary, renumbered)
    }

    pub fn id(&self, word: &str) -> Option<u32> {
        self.names.id(word)
    }

    pub fn word(&self, id: u32) -> Option<&str> {
        self.names.name(id)
    }

    pub fn len(&self) -> usize {
        self.names.len()
    }

    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.names.iter()
    }
}
