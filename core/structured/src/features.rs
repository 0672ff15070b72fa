//! Features by readable names: a context, alone or together with an action.

use tunesmith_text::{Error, Names};

use crate::Fault;

/// Stands for an action in features that are a name alone.
pub const ALONE: u32 = u32::MAX;

/// All features that have a weight. A context lists the actions that it has a weight with, so that
/// a context costs what was learnt about it, and one that was never updated costs nothing.
#[derive(Debug, Clone, Default)]
pub struct Features {
    names: Names,
    /// For each context: actions and the ids of their features.
    rows: Vec<Vec<(u32, u32)>>,
    /// For each feature: its context and its action.
    owners: Vec<(u32, u32)>,
}

impl Features {
    pub fn len(&self) -> usize {
        self.owners.len()
    }

    pub fn is_empty(&self) -> bool {
        self.owners.is_empty()
    }

    pub fn names(&self) -> &Names {
        &self.names
    }

    /// Context and action of a feature.
    pub fn owner(&self, id: u32) -> (u32, u32) {
        self.owners[id as usize]
    }

    /// Actions that a context has a weight with, and the ids of these features.
    #[inline]
    pub fn row(&self, context: u32) -> &[(u32, u32)] {
        self.rows.get(context as usize).map_or(&[], Vec::as_slice)
    }

    pub fn intern(&mut self, name: &str) -> u32 {
        self.names.intern(name)
    }

    /// The id of a context's feature with an action, new if it has none yet.
    pub fn id(&mut self, context: u32, action: u32) -> u32 {
        if self.rows.len() <= context as usize {
            self.rows.resize(context as usize + 1, Vec::new());
        }
        let row = &mut self.rows[context as usize];
        if let Some(&(_, id)) = row.iter().find(|&&(known, _)| known == action) {
            return id;
        }
        let id = self.owners.len() as u32;
        row.push((action, id));
        self.owners.push((context, action));
        id
    }

    /// Collects contexts that are known; others are passed over.
    pub fn lookup(&self) -> Contexts<'_> {
        Contexts::new(Table::Known(&self.names))
    }

    /// Collects contexts, new ones included.
    pub fn grow(&mut self) -> Contexts<'_> {
        Contexts::new(Table::Growing(&mut self.names))
    }
}

enum Table<'a> {
    Known(&'a Names),
    Growing(&'a mut Names),
}

/// Where a task puts the names of its contexts and features.
pub struct Contexts<'a> {
    table: Table<'a>,
    name: String,
    found: Vec<(u32, f64)>,
    fault: Option<String>,
}

impl<'a> Contexts<'a> {
    fn new(table: Table<'a>) -> Self {
        Contexts { table, name: String::new(), found: Vec::new(), fault: None }
    }

    /// Adds a context whose name is these parts, one after the other.
    #[inline]
    pub fn add(&mut self, parts: &[&str]) {
        self.add_valued(parts, 1.0);
    }

    /// Adds a context with a value. One that is not finite is an error of the task.
    #[inline]
    pub fn add_valued(&mut self, parts: &[&str], value: f64) {
        self.name.clear();
        parts.iter().for_each(|part| self.name.push_str(part));
        if !value.is_finite() {
            self.fault.get_or_insert_with(|| format!("the feature {:?} is {value}", self.name));
        }
        let id = match &mut self.table {
            Table::Known(names) => names.id(&self.name),
            Table::Growing(names) => Some(names.intern(&self.name)),
        };
        if let Some(id) = id {
            self.found.push((id, value));
        }
    }

    /// Adds contexts that [`Task::prepare`](crate::Task::prepare) looked up.
    #[inline]
    pub fn add_known(&mut self, contexts: &[u32]) {
        self.found.extend(contexts.iter().map(|&context| (context, 1.0)));
    }

    /// What was added since the last call; an error if a value was not finite.
    pub fn take(&mut self, out: &mut Vec<(u32, f64)>) -> Result<(), Fault> {
        out.clear();
        out.append(&mut self.found);
        match self.fault.take() {
            Some(fault) => Err(Error::new(fault).remedy("give features finite values").into()),
            None => Ok(()),
        }
    }

    /// The ids of what was added since the last call.
    pub fn take_ids(&mut self) -> Vec<u32> {
        self.found.drain(..).map(|(id, _)| id).collect()
    }
}
