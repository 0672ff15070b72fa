//! A hint to the processor: this entry will be wanted soon.

/// How many entries ahead a scattered walk asks for its memory.
pub const AHEAD: usize = 24;

/// Asks for the cache line of `slice[index]`; does nothing where there is no such entry.
#[inline(always)]
pub fn prefetch<T>(slice: &[T], index: usize) {
    #[cfg(target_arch = "x86_64")]
    if let Some(entry) = slice.get(index) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: the address is of an entry; prefetching neither reads nor writes it.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(entry).cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (slice, index);
}
