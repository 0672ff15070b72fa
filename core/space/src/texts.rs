//! Many short strings in one allocation.

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Texts {
    bytes: String,
    ends: Vec<u64>,
}

impl Texts {
    /// So many empty texts.
    pub fn blank(count: usize) -> Self {
        Texts { bytes: String::new(), ends: vec![0; count] }
    }

    pub fn push(&mut self, text: &str) {
        self.bytes.push_str(text);
        self.ends.push(self.bytes.len() as u64);
    }

    pub fn append(&mut self, other: &Texts) {
        let start = self.bytes.len() as u64;
        self.bytes.push_str(&other.bytes);
        self.ends.extend(other.ends.iter().map(|end| start + end));
    }

    pub fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }

    pub fn get(&self, index: usize) -> &str {
        let start = if index == 0 { 0 } else { self.ends[index - 1] as usize };
        &self.bytes[start..self.ends[index] as usize]
    }

    pub fn len(&self) -> usize {
        self.ends.len()
    }

    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    pub fn iter(&self) -> impl Iterator<Item = &str> {
        (0..self.len()).map(|index| self.get(index))
    }

    pub fn heap_bytes(&self) -> usize {
        self.bytes.capacity() + self.ends.capacity() * size_of::<u64>()
    }

    pub fn shrink(&mut self) {
        self.bytes.shrink_to_fit();
        self.ends.shrink_to_fit();
    }
}
