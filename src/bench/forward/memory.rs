//! How much memory a run takes beside the mapped weights.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{JoinHandle, sleep, spawn};
use std::time::Duration;

use serde::Serialize;

/// Memory of the process, in bytes.
///
/// Anonymous memory is all that no file backs: heap, stacks, this program's own
/// buffers. Mapped files, the weights above all, are not part of it. The peak is
/// that of samples taken every ten milliseconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Memory {
    /// Anonymous memory before the run: the tokenizer, tables, the runtime.
    pub anonymous_before: u64,
    /// The largest sample of anonymous memory.
    pub anonymous_peak: u64,
    /// Pages of mapped files in memory at the end.
    pub mapped_files: u64,
}

/// Samples until it is stopped.
pub(super) struct Watch {
    before: Option<u64>,
    over: Arc<AtomicBool>,
    sampler: JoinHandle<u64>,
}

impl Watch {
    pub(super) fn start() -> Self {
        let over = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&over);
        let sampler = spawn(move || {
            let mut peak = 0;
            while !seen.load(Ordering::Relaxed) {
                peak = peak.max(field(ANONYMOUS).unwrap_or(0));
                sleep(EVERY);
            }
            peak
        });
        Self { before: field(ANONYMOUS), over, sampler }
    }

    /// What was seen; `None` where the system does not tell.
    pub(super) fn stop(self) -> Option<Memory> {
        let (last, mapped_files) = (field(ANONYMOUS), field("RssFile"));
        self.over.store(true, Ordering::Relaxed);
        let peak = self.sampler.join().ok()?;
        let anonymous_before = self.before?;
        let anonymous_peak = peak.max(last?).max(anonymous_before);
        Some(Memory { anonymous_before, anonymous_peak, mapped_files: mapped_files? })
    }
}

/// A line of `/proc/self/status`, in bytes.
fn field(name: &str) -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    // "kB" there means 1024 bytes.
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

const ANONYMOUS: &str = "RssAnon";
const EVERY: Duration = Duration::from_millis(10);
