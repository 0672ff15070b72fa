//! Files that appear whole or not at all.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;
use tempfile::TempPath;

use crate::{Error, Result};

const BUFFER: usize = 1 << 18;

enum Sink {
    Plain(BufWriter<Target>),
    Gzip(Box<GzEncoder<BufWriter<Target>>>),
    Zstd(Box<zstd::Encoder<'static, BufWriter<Target>>>),
}

enum Target {
    File(File),
    Stdout(io::Stdout),
}

impl Write for Target {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Target::File(file) => file.write(bytes),
            Target::Stdout(out) => out.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Target::File(file) => file.flush(),
            Target::Stdout(out) => out.flush(),
        }
    }
}

/// Writes next to `path` and takes its place on [`finish`](Self::finish); dropped before that, it
/// leaves no trace. Names ending in `.gz` and `.zst` are compressed. Links are followed, also to a
/// file that does not exist yet. Devices and pipes, and `-` for the standard output, cannot be
/// replaced and are written directly.
pub struct AtomicWriter {
    name: String,
    durable: bool,
    /// Where the finished file goes and where it grows; nothing for what is written directly.
    place: Option<(PathBuf, TempPath)>,
    sink: Option<Sink>,
}

impl AtomicWriter {
    pub fn create(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let name = path.display().to_string();
        let failed = |error: io::Error| Error::io(&name, None, &error);
        if path.as_os_str() == "-" {
            return AtomicWriter::pack(name, path, Target::Stdout(io::stdout()), None);
        }
        match fs::metadata(path) {
            Ok(meta) if meta.is_dir() => {
                return Err(failed(io::ErrorKind::IsADirectory.into()));
            }
            Ok(meta) if !meta.is_file() => {
                let file = File::options().write(true).open(path).map_err(failed)?;
                return AtomicWriter::pack(name, path, Target::File(file), None);
            }
            _ => {}
        }
        let place = followed(path).map_err(failed)?;
        let folder = match place.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            _ => Path::new("."),
        };
        let (file, temporary) = temporary(folder, &place).map_err(failed)?;
        AtomicWriter::pack(name, path, Target::File(file), Some((place, temporary)))
    }

    fn pack(
        name: String,
        path: &Path,
        target: Target,
        place: Option<(PathBuf, TempPath)>,
    ) -> Result<Self> {
        let out = BufWriter::with_capacity(BUFFER, target);
        let sink = match path.extension().and_then(|extension| extension.to_str()) {
            Some("gz") => Sink::Gzip(Box::new(GzEncoder::new(out, Compression::new(6)))),
            Some("zst") => {
                Sink::Zstd(Box::new(zstd(out).map_err(|error| Error::io(&name, None, &error))?))
            }
            _ => Sink::Plain(out),
        };
        Ok(AtomicWriter { name, durable: true, place, sink: Some(sink) })
    }

    /// Unless durable, a power cut (not a kill) may lose the file: many times faster, for files
    /// that nothing depends on.
    pub fn durable(mut self, durable: bool) -> Self {
        self.durable = durable;
        self
    }

    pub fn write_all(&mut self, bytes: &[u8]) -> Result<()> {
        let outcome = match self.sink.as_mut() {
            Some(Sink::Plain(out)) => out.write_all(bytes),
            Some(Sink::Gzip(out)) => out.write_all(bytes),
            Some(Sink::Zstd(out)) => out.write_all(bytes),
            None => Err(io::Error::other("the file is already closed")),
        };
        outcome.map_err(|error| Error::io(&self.name, None, &error))
    }

    /// Makes the file appear, complete and on disk.
    pub fn finish(mut self) -> Result<()> {
        self.close().map_err(|error| Error::io(&self.name, None, &error))
    }

    fn close(&mut self) -> io::Result<()> {
        let buffered = match self.sink.take() {
            Some(Sink::Plain(out)) => out,
            Some(Sink::Gzip(out)) => out.finish()?,
            Some(Sink::Zstd(out)) => out.finish()?,
            None => return Ok(()),
        };
        let mut target = match buffered.into_inner() {
            Ok(target) => target,
            Err(failure) => {
                let (error, unwritten) = failure.into_parts();
                // Letting it drop would try the same write again.
                let _ = unwritten.into_parts();
                return Err(error);
            }
        };
        target.flush()?;
        let Some((place, temporary)) = self.place.take() else { return Ok(()) };
        if let (Target::File(file), true) = (&target, self.durable) {
            file.sync_all()?;
        }
        temporary.persist(&place).map_err(|failure| failure.error)?;
        // The new name must survive a crash too; not every file system can promise it.
        if let (Some(Ok(folder)), true) = (place.parent().map(File::open), self.durable) {
            let _ = folder.sync_all();
        }
        Ok(())
    }
}

impl Drop for AtomicWriter {
    fn drop(&mut self) {
        // What is buffered belongs to a file that will not exist: it must not be flushed.
        if let (Some(Sink::Plain(out)), true) = (self.sink.take(), self.place.is_some()) {
            drop(out.into_parts());
        }
    }
}

/// With a checksum, so that a damaged file is noticed when it is read.
fn zstd(out: BufWriter<Target>) -> io::Result<zstd::Encoder<'static, BufWriter<Target>>> {
    let mut encoder = zstd::Encoder::new(out, 3)?;
    encoder.include_checksum(true)?;
    Ok(encoder)
}

/// The place that a path leads to, so that what a link points to is replaced and the link stays.
fn followed(path: &Path) -> io::Result<PathBuf> {
    let mut place = path.to_owned();
    // As many links in a row as Linux follows.
    for _ in 0..40 {
        match fs::canonicalize(&place) {
            Ok(found) => return Ok(found),
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            Err(_) => {}
        }
        // A link to a file that does not exist yet.
        let Ok(target) = fs::read_link(&place) else { return Ok(place) };
        place = place.parent().unwrap_or(Path::new("")).join(target);
    }
    Err(io::Error::other("too many links in a row"))
}

/// A file to grow in, with the permissions of the one it will replace, or of any new file.
fn temporary(folder: &Path, place: &Path) -> io::Result<(File, TempPath)> {
    let mut prefix = std::ffi::OsString::from(".");
    prefix.push(place.file_name().unwrap_or_default());
    prefix.push(".");
    let mut builder = tempfile::Builder::new();
    builder.prefix(&prefix).suffix(".part");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        builder.permissions(fs::Permissions::from_mode(0o666));
    }
    let (file, path) = builder.tempfile_in(folder)?.into_parts();
    if let Ok(meta) = fs::metadata(place) {
        file.set_permissions(meta.permissions())?;
    }
    Ok((file, path))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Lines;

    fn names(folder: &Path) -> Vec<String> {
        fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect()
    }

    #[test]
    fn a_finished_file_is_read_back_whatever_its_packing() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["a.txt", "a.gz", "a.zst"] {
            let path = folder.path().join(name);
            let mut out = AtomicWriter::create(&path).unwrap();
            out.write_all(b"one\ntwo\n").unwrap();
            assert!(!path.exists());
            out.finish().unwrap();
            let mut lines = Lines::open(&path).unwrap();
            assert_eq!(lines.next().unwrap(), Some(&b"one"[..]));
            assert_eq!(lines.next().unwrap(), Some(&b"two"[..]));
            assert_eq!(lines.next().unwrap(), None);
        }
        assert_eq!(names(folder.path()).len(), 3);
    }

    #[test]
    fn an_abandoned_file_leaves_the_old_one_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.gz");
        fs::write(&path, b"old").unwrap();
        let mut out = AtomicWriter::create(&path).unwrap();
        out.write_all(&[b'x'; 1 << 20]).unwrap();
        drop(out);
        assert_eq!(fs::read(&path).unwrap(), b"old");
        assert_eq!(names(folder.path()), ["a.gz"]);
    }

    #[cfg(unix)]
    #[test]
    fn permissions_and_links_stay() {
        use std::os::unix::fs::{PermissionsExt, symlink};
        let folder = tempfile::tempdir().unwrap();
        let (file, link) = (folder.path().join("file"), folder.path().join("link"));
        fs::write(&file, b"old").unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
        symlink(&file, &link).unwrap();
        let mut out = AtomicWriter::create(&link).unwrap();
        out.write_all(b"new").unwrap();
        out.finish().unwrap();
        assert_eq!(fs::read(&file).unwrap(), b"new");
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o640);
    }

    #[cfg(unix)]
    #[test]
    fn a_link_to_a_file_that_is_not_there_yet_stays_a_link() {
        use std::os::unix::fs::symlink;
        let folder = tempfile::tempdir().unwrap();
        let (file, link) = (folder.path().join("file"), folder.path().join("link"));
        symlink("middle", &link).unwrap();
        symlink(&file, folder.path().join("middle")).unwrap();
        let mut out = AtomicWriter::create(&link).unwrap().durable(false);
        out.write_all(b"new").unwrap();
        out.finish().unwrap();
        assert_eq!(fs::read(&file).unwrap(), b"new");
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        symlink("round", folder.path().join("round")).unwrap();
        assert!(AtomicWriter::create(folder.path().join("round")).is_err());
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_full_disk_is_reported_with_the_file_and_a_remedy() {
        let mut out = AtomicWriter::create("/dev/full").unwrap();
        out.write_all(b"text").unwrap();
        let error = out.finish().unwrap_err();
        assert_eq!(error.file.as_deref(), Some("/dev/full"));
        assert!(error.message.contains("no space left") && error.remedy.is_some(), "{error}");
    }

    #[test]
    fn a_missing_folder_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let error = AtomicWriter::create(folder.path().join("no/such/file")).err().unwrap();
        assert!(error.message.contains("no such file or directory"));
        let error = AtomicWriter::create(folder.path()).err().unwrap();
        assert!(error.message.contains("is a directory"));
    }
}
