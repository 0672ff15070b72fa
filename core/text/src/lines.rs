//! The lines of a text file, whether plain, gzip or zstd, one at a time.

use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::path::Path;

use flate2::read::MultiGzDecoder;
use memchr::memchr;

use crate::{Error, Result, line_limit, too_long};

const BUFFER: usize = 1 << 20;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Packing {
    Plain,
    Gzip,
    Zstd,
}

/// A streamed reader of lines. Compression is told by the first bytes, never by the name; `-` is
/// the standard input. Line ends `\n` and `\r\n` are both taken off, and so is a leading byte
/// order mark. A line longer than [`line_limit`] is refused before it fills the memory.
pub struct Lines {
    file: String,
    packing: Packing,
    source: Box<dyn Read + Send + Sync>,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    line: u64,
    bytes: u64,
    limit: usize,
    ended: bool,
}

impl Lines {
    /// Opens a file. Refuses directories, other compressions and UTF-16 by name.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        if path.as_os_str() == "-" {
            return Lines::new("<stdin>", io::stdin());
        }
        Lines::new(path.display().to_string(), open(path)?)
    }

    /// Reads from anything; `name` stands in for the file in errors.
    pub fn new(name: impl Into<String>, raw: impl Read + Send + Sync + 'static) -> Result<Self> {
        let file = name.into();
        let (packing, source) = unpack(&file, raw)?;
        Ok(Lines {
            file,
            packing,
            source,
            buffer: vec![0; BUFFER],
            start: 0,
            end: 0,
            line: 0,
            bytes: 0,
            limit: line_limit()?,
            ended: false,
        })
    }

    /// The next line without its end, or `None` after the last.
    #[allow(clippy::should_implement_trait)] // an iterator could not lend its buffer
    pub fn next(&mut self) -> Result<Option<&[u8]>> {
        let mut scanned = 0;
        let (length, taken) = loop {
            let window = &self.buffer[self.start..self.end];
            if let Some(found) = memchr(b'\n', &window[scanned..]) {
                scanned += found;
                break (scanned, scanned + 1);
            }
            scanned = window.len();
            if scanned > self.limit {
                break (scanned, scanned);
            }
            if self.ended {
                if scanned == 0 {
                    return Ok(None);
                }
                break (scanned, scanned);
            }
            self.fill()?;
        };
        if length > self.limit {
            self.stop();
            return Err(too_long(&self.file, self.line + 1, self.limit));
        }
        let mut begin = self.start;
        let mut finish = begin + length;
        self.start += taken;
        self.bytes += taken as u64;
        self.line += 1;
        if self.line == 1 && self.buffer[begin..finish].starts_with(b"\xef\xbb\xbf") {
            begin += 3;
        }
        if self.buffer[begin..finish].last() == Some(&b'\r') {
            finish -= 1;
        }
        Ok(Some(&self.buffer[begin..finish]))
    }

    /// The number of the line returned last, from one; zero before the first.
    pub fn line(&self) -> u64 {
        self.line
    }

    /// Uncompressed bytes of all lines returned so far.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The name of the file as errors show it.
    pub fn file(&self) -> &str {
        &self.file
    }

    /// An error at the line returned last.
    pub fn error(&self, message: impl Into<String>) -> Error {
        Error::new(message).at(&self.file, Some(self.line))
    }

    fn fill(&mut self) -> Result<()> {
        if self.start > 0 {
            self.buffer.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        }
        if self.end == self.buffer.len() {
            self.buffer.resize(self.buffer.len() * 2, 0);
        }
        match self.source.read(&mut self.buffer[self.end..]) {
            Ok(0) => self.ended = true,
            Ok(count) => self.end += count,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(self.failure(&error)),
        }
        Ok(())
    }

    /// What follows a fault cannot be trusted, so a second call must not go on from here.
    fn stop(&mut self) {
        self.ended = true;
        self.start = self.end;
    }

    fn failure(&mut self, error: &io::Error) -> Error {
        self.stop();
        let line = Some(self.line + 1);
        let kind = match self.packing {
            Packing::Plain => return Error::io(&self.file, line, error),
            Packing::Gzip => "gzip",
            Packing::Zstd => "zstd",
        };
        if error.kind() == ErrorKind::UnexpectedEof {
            Error::new(format!("the {kind} data end too early: the file is truncated"))
                .at(&self.file, line)
                .remedy("copy or make the file again")
        } else {
            Error::new(format!("the {kind} data are corrupt ({error})"))
                .at(&self.file, line)
                .remedy("copy or make the file again")
        }
    }
}

/// All bytes of a file, whether plain, gzip or zstd. Refuses what cannot be unpacked, and what
/// would fill the memory: more than a hundred times the size of the packed file.
pub fn read_packed(path: impl AsRef<Path>) -> Result<Vec<u8>> {
    let path = path.as_ref();
    let name = path.display().to_string();
    let file = open(path)?;
    let size = file.metadata().map_or(0, |meta| meta.len());
    let (packing, source) = unpack(&name, file)?;
    let most = match packing {
        Packing::Plain => u64::MAX,
        _ => size.saturating_mul(100).max(64 << 20),
    };
    let mut bytes = Vec::new();
    match source.take(most).read_to_end(&mut bytes) {
        Ok(read) if read as u64 == most => {
            Err(Error::new("is far larger unpacked than a file of this kind can be")
                .at(name, None)
                .remedy("check that this is the right file; if it is, unpack it first"))
        }
        Ok(_) => Ok(bytes),
        Err(_) if packing != Packing::Plain => Err(Error::new("is truncated or corrupt")
            .at(name, None)
            .remedy("copy or make the file again")),
        Err(error) => Err(Error::io(name, None, &error)),
    }
}

fn open(path: &Path) -> Result<File> {
    let name = path.display().to_string();
    let file = File::open(path).map_err(|error| Error::io(&name, None, &error))?;
    // Opening a directory succeeds on Linux; only reading it would fail.
    if file.metadata().is_ok_and(|meta| meta.is_dir()) {
        return Err(Error::io(name, None, &ErrorKind::IsADirectory.into()));
    }
    Ok(file)
}

type Source = Box<dyn Read + Send + Sync>;

/// What the first bytes say about the packing, and a reader of what is inside.
fn unpack(name: &str, mut raw: impl Read + Send + Sync + 'static) -> Result<(Packing, Source)> {
    let mut head = [0; 6];
    let mut filled = 0;
    while filled < head.len() {
        match raw.read(&mut head[filled..]) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(Error::io(name, None, &error)),
        }
    }
    let head = &head[..filled];
    refuse_foreign(name, head)?;
    let whole = io::Cursor::new(head.to_vec()).chain(raw);
    Ok(if head.starts_with(b"\x1f\x8b") {
        let buffered = io::BufReader::with_capacity(BUFFER, whole);
        (Packing::Gzip, Box::new(MultiGzDecoder::new(buffered)))
    } else if head.starts_with(b"\x28\xb5\x2f\xfd") {
        let decoder = zstd::Decoder::new(whole).map_err(|error| Error::io(name, None, &error))?;
        (Packing::Zstd, Box::new(decoder))
    } else {
        (Packing::Plain, Box::new(whole))
    })
}

fn refuse_foreign(file: &str, head: &[u8]) -> Result<()> {
    let known: [(&[u8], &str, &str); 6] = [
        (b"\xfd7zXZ\0", "is compressed with xz", "unpack it with xz -d, or use gzip or zstd"),
        (b"BZh", "is compressed with bzip2", "unpack it with bzip2 -d, or use gzip or zstd"),
        (b"PK\x03\x04", "is a zip archive", "unpack it first"),
        (b"\x04\x22\x4d\x18", "is compressed with lz4", "unpack it with lz4 -d, or use zstd"),
        (b"\xff\xfe", "is UTF-16 text", "convert it with iconv -f UTF-16 -t UTF-8"),
        (b"\xfe\xff", "is UTF-16 text", "convert it with iconv -f UTF-16 -t UTF-8"),
    ];
    for (magic, message, remedy) in known {
        // "BZh" alone could open a sentence; the digit of the block size settles it.
        let certain = magic != b"BZh" || matches!(head.get(3), Some(b'1'..=b'9'));
        if head.starts_with(magic) && certain {
            return Err(Error::new(message).at(file, None).remedy(remedy));
        }
    }
    Ok(())
}

/// `bytes` as text, or an error that gives the offset of the first bad byte within the line.
pub fn utf8<'a>(bytes: &'a [u8], file: &str, line: u64) -> Result<&'a str> {
    std::str::from_utf8(bytes).map_err(|error| {
        let offset = error.valid_up_to();
        Error::new(format!("invalid UTF-8: byte 0x{:02x} at offset {offset}", bytes[offset]))
            .at(file, Some(line))
            .remedy("convert the file to UTF-8, for instance with iconv")
    })
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use proptest::prelude::*;

    use super::*;

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut out = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        out.write_all(bytes).unwrap();
        out.finish().unwrap()
    }

    fn zstd(bytes: &[u8]) -> Vec<u8> {
        let mut out = zstd::Encoder::new(Vec::new(), 1).unwrap();
        out.include_checksum(true).unwrap();
        out.write_all(bytes).unwrap();
        out.finish().unwrap()
    }

    fn collect(bytes: Vec<u8>) -> Result<Vec<Vec<u8>>> {
        let mut lines = Lines::new("t", io::Cursor::new(bytes))?;
        let mut out = Vec::new();
        while let Some(line) = lines.next()? {
            out.push(line.to_vec());
        }
        assert_eq!(lines.line(), out.len() as u64);
        Ok(out)
    }

    #[test]
    fn both_line_ends_and_a_missing_last_one_are_understood() {
        let lines = collect(b"\xef\xbb\xbfa\r\n\nb\rc\n\nd".to_vec()).unwrap();
        assert_eq!(lines, [&b"a"[..], b"", b"b\rc", b"", b"d"]);
        assert!(collect(Vec::new()).unwrap().is_empty());
    }

    #[test]
    fn members_of_a_gzip_file_are_joined() {
        let mut bytes = gzip(b"one\ntw");
        bytes.extend(gzip(b"o\nthree\n"));
        assert_eq!(collect(bytes).unwrap(), [&b"one"[..], b"two", b"three"]);
    }

    #[test]
    fn truncated_and_corrupt_archives_are_named_as_such() {
        let text: Vec<u8> = (0..50_000u32).flat_map(|n| format!("{n}\n").into_bytes()).collect();
        for (kind, packed) in [("gzip", gzip(&text)), ("zstd", zstd(&text))] {
            assert_eq!(collect(packed.clone()).unwrap().len(), 50_000);
            for cut in [7, 12, packed.len() / 2, packed.len() - 1] {
                let error = collect(packed[..cut].to_vec()).unwrap_err();
                assert!(
                    error.message.contains(kind) && error.message.contains("truncated"),
                    "{cut}: {error}"
                );
                assert_eq!(error.file.as_deref(), Some("t"));
                assert!(error.line.is_some() && error.remedy.is_some());
            }
            let mut bad = packed.clone();
            let middle = bad.len() / 2;
            bad[middle..middle + 40].fill(0xff);
            let error = collect(bad).map(|lines| lines.len()).unwrap_err();
            assert!(error.message.contains(kind), "{error}");
        }
    }

    #[test]
    fn reading_stops_after_a_fault() {
        let packed = gzip(b"one\ntwo\n");
        let mut lines =
            Lines::new("t", io::Cursor::new(packed[..packed.len() - 4].to_vec())).unwrap();
        while lines.next().is_ok_and(|line| line.is_some()) {}
        assert!(lines.next().unwrap().is_none());
    }

    #[test]
    fn what_is_no_text_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let error = Lines::open(folder.path()).err().unwrap();
        assert!(error.message.contains("directory"));
        let error = Lines::open(folder.path().join("absent")).err().unwrap();
        assert!(error.message.contains("no such file") && error.remedy.is_some());
        for head in [&b"\xfd7zXZ\0"[..], b"BZh91AY", b"PK\x03\x04", b"\xff\xfea\0"] {
            assert!(collect(head.to_vec()).unwrap_err().remedy.is_some());
        }
    }

    #[test]
    fn an_endless_line_is_refused_and_ends_the_file() {
        let mut text = b"a\n".to_vec();
        text.resize(40 << 20, 0);
        text.extend(b"\nb\n");
        for bytes in [text.clone(), gzip(&text), zstd(&text)] {
            let mut lines = Lines::new("t", io::Cursor::new(bytes)).unwrap();
            assert_eq!(lines.next().unwrap(), Some(&b"a"[..]));
            let error = lines.next().unwrap_err();
            assert_eq!((error.file.as_deref(), error.line), (Some("t"), Some(2)));
            assert!(error.remedy.unwrap().contains("TUNESMITH_LINE_LIMIT"));
            assert!(lines.buffer.len() < 40 << 20);
            assert!(lines.next().unwrap().is_none());
        }
        // Also where the buffer holds the whole line.
        let mut lines = Lines::new("t", io::Cursor::new(b"four\nfiver\n".to_vec())).unwrap();
        lines.limit = 4;
        assert_eq!(lines.next().unwrap(), Some(&b"four"[..]));
        assert!(lines.next().is_err());
    }

    #[test]
    fn a_small_file_that_unpacks_to_a_huge_one_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("bomb");
        std::fs::write(&path, gzip(&vec![0; 65 << 20])).unwrap();
        assert!(read_packed(&path).unwrap_err().remedy.unwrap().contains("unpack"));
        std::fs::write(&path, gzip(&vec![0; 1 << 20])).unwrap();
        assert_eq!(read_packed(&path).unwrap().len(), 1 << 20);
    }

    #[test]
    fn invalid_utf8_names_the_byte() {
        let error = utf8(b"ab\xff", "t", 7).unwrap_err();
        assert_eq!(
            error.to_string().split(" (").next().unwrap(),
            "t:7: invalid UTF-8: byte 0xff at offset 2"
        );
    }

    #[test]
    fn a_line_longer_than_the_buffer_is_whole() {
        let long = vec![b'x'; 3 * BUFFER + 17];
        let mut bytes = b"a\n".to_vec();
        bytes.extend(&long);
        bytes.extend(b"\nb\n");
        let lines = collect(bytes).unwrap();
        assert_eq!(lines.len(), 3);
        assert_eq!(lines[1], long);
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = collect(bytes);
        }

        #[test]
        fn packing_changes_nothing(text in "[a-z\\r\\n]{0,80}") {
            let plain = collect(text.clone().into_bytes()).unwrap();
            prop_assert_eq!(&plain, &collect(gzip(text.as_bytes())).unwrap());
            prop_assert_eq!(&plain, &collect(zstd(text.as_bytes())).unwrap());
        }
    }
}
