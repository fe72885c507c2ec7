//! Freed memory is kept for the next use.
//!
//! Every step of a forward pass allocates and frees buffers of megabytes. The C
//! library would return each to the system and take new pages, which the system
//! clears one by one: on a virtual machine that costs as much as decoding what goes
//! into them.
#![allow(unsafe_code)] // two calls that set numbers of the C library

/// Tells the GNU C library to keep freed memory; elsewhere does nothing.
pub(super) fn keep_freed_memory() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: `mallopt` sets a number and has no other requirement. If it refuses,
    // allocation is only slower.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, LARGEST_REUSED);
        libc::mallopt(libc::M_TRIM_THRESHOLD, MOST_KEPT);
    }
}

/// The largest that `mallopt(3)` allows on 64 bits: 32 MiB.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const LARGEST_REUSED: i32 = 32 << 20;

/// Bytes that may stay unused at the end of the heap.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const MOST_KEPT: i32 = 512 << 20;
