//! The one error of the core: what is wrong, where, and what to do about it.

use std::io::ErrorKind;
use std::{fmt, io};

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

    /// What the system said about reading or writing `file`, in words, with a way out.
    pub fn io(file: impl Into<String>, line: Option<u64>, error: &io::Error) -> Self {
        let (message, remedy) = match error.kind() {
            ErrorKind::NotFound => ("no such file or directory", "check the path"),
            ErrorKind::PermissionDenied => {
                ("permission denied", "change the file's permissions or choose another place")
            }
            ErrorKind::IsADirectory => ("is a directory", "name a file inside it"),
            ErrorKind::NotADirectory => ("a part of the path is not a directory", "check the path"),
            ErrorKind::StorageFull | ErrorKind::FileTooLarge => {
                ("no space left to write it", "free some space or write to another disk")
            }
            ErrorKind::QuotaExceeded => {
                ("disk quota exceeded", "free some space or write to another disk")
            }
            ErrorKind::ReadOnlyFilesystem => {
                ("the file system is read-only", "write to another disk")
            }
            ErrorKind::BrokenPipe => ("the reader went away", "keep the receiving program open"),
            _ => return Error::new(error.to_string()).at(file, line).remedy("check the file"),
        };
        Error::new(message).at(file, line).remedy(remedy)
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
