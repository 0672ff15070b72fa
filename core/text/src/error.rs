//! The one error of the core: what is wrong, where, and what to do about it.

use std::fmt;

pub type Result<T> = std::result::Result<T, Error>;

/// An input that cannot be used. `file` and `line` are given whenever they are known.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Error {
    pub file: Option<String>,
    /// Counted from one.
    pub line: Option<u64>,
    pub message: String,
    pub remedy: Option<String>,
}

impl Error {
    pub fn new(message: impl Into<String>) -> Self {
        Error { message: message.into(), ..Error::default() }
    }

    pub fn at(mut self, file: impl Into<String>, line: Option<u64>) -> Self {
        self.file = Some(file.into());
        self.line = line;
        self
    }

    pub fn remedy(mut self, remedy: impl Into<String>) -> Self {
        self.remedy = Some(remedy.into());
        self
    }
}

impl fmt::Display for Error {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.file, self.line) {
            (Some(file), Some(line)) => write!(out, "{file}:{line}: ")?,
            (Some(file), None) => write!(out, "{file}: ")?,
            _ => {}
        }
        out.write_str(&self.message)?;
        if let Some(remedy) = &self.remedy {
            write!(out, " ({remedy})")?;
        }
        Ok(())
    }
}

impl std::error::Error for Error {}
