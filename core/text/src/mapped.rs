//! Binary files in memory: small ones are copied, large ones are mapped.
//!
//! A process dies that looks at a mapped file which another program has cut short (`cp` over a file
//! does that; a file that is renamed into its place does not). Files that are copied are safe from
//! it. Of those that are mapped, [`tell_bus_errors`] says at least which one it was.

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::ops::Deref;
use std::path::Path;

use memmap2::{Advice, Mmap, MmapMut};

use crate::{Error, Result};

/// The environment variable that sets another limit.
const VARIABLE: &str = "TUNESMITH_MAP_FROM";
/// Files of so many bytes are mapped.
const LARGE: u64 = 16 << 20;

/// The content of a file, from the start of a page. It must not change while it is open: smaller
/// files than [`LARGE`] may.
pub struct Mapped {
    map: Mmap,
    length: usize,
    /// What a map is of; nothing for a copy.
    file: Option<File>,
    #[cfg(unix)]
    noted: Option<bus::Noted>,
}

impl Mapped {
    /// Copies or maps a file. Refuses folders, and a file that is cut short while it is copied.
    pub fn open(path: &Path) -> Result<Mapped> {
        let name = path.display().to_string();
        let failed = |error: std::io::Error| Error::io(&name, None, &error);
        let mut file = File::open(path).map_err(failed)?;
        let meta = file.metadata().map_err(failed)?;
        if meta.is_dir() {
            return Err(failed(ErrorKind::IsADirectory.into()));
        }
        if meta.len() < large()? {
            let length = meta.len() as usize;
            // A map without a file: it begins on a page, too, and there is none without bytes.
            let mut map = MmapMut::map_anon(length.max(1)).map_err(failed)?;
            file.read_exact(&mut map[..length]).map_err(|error| match error.kind() {
                ErrorKind::UnexpectedEof => Error::new("was cut short while it was read")
                    .at(&name, None)
                    .remedy("wait until it is written"),
                _ => failed(error),
            })?;
            let map = map.make_read_only().map_err(failed)?;
            return Ok(Mapped {
                map,
                length,
                file: None,
                #[cfg(unix)]
                noted: None,
            });
        }
        // SAFETY: the map is only read, through slices with checked bounds, and readers check what
        // they read. Nobody may change the file meanwhile: files are replaced by renaming, never
        // rewritten, and docs/torture.md says what happens if another program does it.
        let map = unsafe { Mmap::map(&file) }.map_err(failed)?;
        Ok(Mapped {
            length: map.len(),
            #[cfg(unix)]
            noted: bus::Noted::new(&map, &name),
            map,
            file: Some(file),
        })
    }

    /// The file behind a map, to read from without a look at the map; nothing for a copy.
    pub fn file(&self) -> Option<&File> {
        self.file.as_ref()
    }

    /// Says that parts far from each other will be read.
    pub fn read_anywhere(&self) {
        if self.file.is_some() {
            let _ = self.map.advise(Advice::Random);
        }
    }
}

impl Deref for Mapped {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.map[..self.length]
    }
}

#[cfg(unix)]
impl Drop for Mapped {
    fn drop(&mut self) {
        // Before the map goes: its addresses may belong to another one at once.
        drop(self.noted.take());
    }
}

fn large() -> Result<u64> {
    let Some(told) = std::env::var_os(VARIABLE) else { return Ok(LARGE) };
    told.to_str().and_then(|text| text.parse().ok()).ok_or_else(|| {
        Error::new(format!("the environment variable {VARIABLE} is not a number of bytes"))
            .remedy(format!("set it to {LARGE}, for instance, or unset it"))
    })
}

/// Ends the process with a message when a mapped file was cut short, and not without one. For
/// programs: a library leaves signals to its program.
pub fn tell_bus_errors() {
    #[cfg(unix)]
    bus::install();
}

#[cfg(unix)]
mod bus {
    use std::ffi::{CString, c_int, c_void};
    use std::ptr;
    use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

    /// A map: where it is and the name of its file. A slot without a name is free.
    struct Slot {
        start: AtomicUsize,
        length: AtomicUsize,
        name: AtomicPtr<std::ffi::c_char>,
    }

    impl Slot {
        const fn free() -> Slot {
            Slot {
                start: AtomicUsize::new(0),
                length: AtomicUsize::new(0),
                name: AtomicPtr::new(ptr::null_mut()),
            }
        }
    }

    /// Maps beyond these have no name in the message.
    static SLOTS: [Slot; 256] = [const { Slot::free() }; 256];

    /// A map that is in [`SLOTS`] as long as this lives.
    pub struct Noted(usize);

    impl Noted {
        pub fn new(map: &[u8], name: &str) -> Option<Noted> {
            let name = CString::new(name).ok()?.into_raw();
            let taken = SLOTS.iter().position(|slot| {
                let free = ptr::null_mut();
                let order = Ordering::SeqCst;
                slot.name.compare_exchange(free, name, order, order).is_ok()
            });
            let Some(number) = taken else {
                // SAFETY: it came from `into_raw` above, and no slot has it.
                drop(unsafe { CString::from_raw(name) });
                return None;
            };
            SLOTS[number].length.store(map.len(), Ordering::SeqCst);
            SLOTS[number].start.store(map.as_ptr() as usize, Ordering::SeqCst);
            Some(Noted(number))
        }
    }

    impl Drop for Noted {
        fn drop(&mut self) {
            let slot = &SLOTS[self.0];
            slot.start.store(0, Ordering::SeqCst);
            slot.length.store(0, Ordering::SeqCst);
            let name = slot.name.swap(ptr::null_mut(), Ordering::SeqCst);
            // SAFETY: it came from `into_raw`, and only the owner of the slot takes it out. A
            // handler does not look at it: the length is zero.
            drop(unsafe { CString::from_raw(name) });
        }
    }

    pub fn install() {
        // SAFETY: the action is whole; the handler calls only what may be called in one.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = handle as *const () as usize;
            action.sa_flags = libc::SA_SIGINFO | libc::SA_RESETHAND;
            libc::sigemptyset(&mut action.sa_mask);
            libc::sigaction(libc::SIGBUS, &action, ptr::null_mut());
        }
    }

    extern "C" fn handle(_: c_int, info: *mut libc::siginfo_t, _: *mut c_void) {
        // SAFETY: the system gives the information that SA_SIGINFO asked for.
        let place = unsafe { (*info).si_addr() } as usize;
        let found = SLOTS.iter().find(|slot| {
            let start = slot.start.load(Ordering::SeqCst);
            let length = slot.length.load(Ordering::SeqCst);
            place.checked_sub(start).is_some_and(|offset| offset < length)
        });
        // Not one of ours: the handler is gone, and the same access ends the process as usual.
        let Some(slot) = found else { return };
        let name = slot.name.load(Ordering::SeqCst);
        let message =
            b": was cut short, or its disk failed, while it was in use (replace files by \
                        renaming, as mv does, and not by writing over them)\n";
        // SAFETY: the name is a string as long as its slot has a length; write, strlen and _exit
        // may be called in a handler.
        unsafe {
            libc::write(2, b"error: ".as_ptr().cast(), 7);
            if !name.is_null() {
                libc::write(2, name.cast(), libc::strlen(name));
            }
            libc::write(2, message.as_ptr().cast(), message.len());
            libc::_exit(2);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_file_may_be_cut_while_it_is_open() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        std::fs::write(&path, [7; 10_000]).unwrap();
        let mapped = Mapped::open(&path).unwrap();
        File::options().write(true).open(&path).unwrap().set_len(0).unwrap();
        assert_eq!(&mapped[..], [7; 10_000]);
        assert!(mapped.file().is_none() && (mapped.as_ptr() as usize).is_multiple_of(64));
        assert!(Mapped::open(&path).unwrap().is_empty());
        assert!(Mapped::open(folder.path()).err().unwrap().message.contains("is a directory"));
    }

    #[test]
    fn a_large_file_is_mapped() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        File::create(&path).unwrap().set_len(LARGE).unwrap();
        let mapped = Mapped::open(&path).unwrap();
        assert!(mapped.file().is_some() && mapped.len() == LARGE as usize);
        mapped.read_anywhere();
        // Its name stays known when another file takes its place.
        std::fs::rename(&path, folder.path().join("other")).unwrap();
        assert_eq!(mapped[LARGE as usize - 1], 0);
    }
}
