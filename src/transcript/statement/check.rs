//! Rules between the fields of a statement (`spec/transcript.md`, C1 to C8).
//!
//! Only what can be decided from the statement itself. Whether it is *true* is
//! the business of `verify`.

use super::{Batch, Engine, LogitsMode, Statement, TraceMode};
use crate::transcript::TranscriptError;
use crate::transcript::{LOGITS_SECTION, TRACE_SECTION};

type Outcome = Result<(), TranscriptError>;

fn require(holds: bool, rule: impl FnOnce() -> String) -> Outcome {
    if holds { Ok(()) } else { Err(TranscriptError::Inconsistent { rule: rule() }) }
}

impl Statement {
    /// Refuses a statement whose fields contradict each other.
    pub(super) fn check(&self) -> Outcome {
        self.model.check()?;
        self.check_environment()?;
        self.check_orders()?;
        self.check_passes()?;
        self.check_sections()
    }

    fn check_environment(&self) -> Outcome {
        let has_gpu = self.environment.gpu.is_some();
        let wants_gpu = match self.environment.engine {
            Engine::Cuda => true,
            Engine::Emulator => false,
        };
        require(has_gpu == wants_gpu, || {
            let engine = self.environment.engine.word();
            let state = if has_gpu { "names" } else { "does not name" };
            format!("the engine is {engine}, but the environment {state} a GPU")
        })
    }

    /// Lists without an order of their own have one spelling: ascending.
    fn check_orders(&self) -> Outcome {
        let ascending = |holds: bool, list: &str| {
            require(holds, || format!("{list} are not in ascending order without repetition"))
        };
        ascending(self.dispatch.is_sorted_by(|a, b| a < b), "dispatch rows")?;
        ascending(self.sampling.stop_ids.is_sorted_by(|a, b| a < b), "stop ids")?;
        let kernels = self.environment.gpu.iter().flat_map(|gpu| gpu.kernels.iter());
        ascending(kernels.map(|kernel| &kernel.name).is_sorted_by(|a, b| a < b), "kernel names")
    }

    fn check_passes(&self) -> Outcome {
        let mut next = 0u64;
        let mut rows = 0u64;
        for (index, pass) in self.passes.iter().enumerate() {
            require(pass.start_position == next, || {
                format!("pass {index} starts at position {}, not {next}", pass.start_position)
            })?;
            require(pass.token_count > 0, || format!("pass {index} takes no token"))?;
            require(pass.logits_rows <= pass.token_count, || {
                let (rows, tokens) = (pass.logits_rows, pass.token_count);
                format!("pass {index} has {rows} logits rows for {tokens} tokens")
            })?;
            if let Some(batch) = pass.batch {
                check_batch(index, pass.token_count, batch)?;
            }
            next = next.checked_add(pass.token_count).ok_or_else(|| {
                TranscriptError::Inconsistent { rule: format!("pass {index} ends past 2^64") }
            })?;
            rows += pass.logits_rows; // At most `next`, which did not overflow.
        }
        require(rows == self.logits.count, || {
            format!("the passes have {rows} logits rows, the commitment {}", self.logits.count)
        })
    }

    fn check_sections(&self) -> Outcome {
        require(self.logits.vocab > 0, || "rows of logits have no elements".to_owned())?;
        let element = self.logits.dtype.size_bytes() as u64;
        let row = match self.logits.mode {
            LogitsMode::Full => self.logits.vocab.checked_mul(element),
            LogitsMode::Hash => Some(DIGEST_LEN_BYTES),
        };
        let mut expected = vec![(LOGITS_SECTION, self.logits.count, row)];
        let traced = match self.trace.mode {
            TraceMode::None => false,
            TraceMode::Layers | TraceMode::Steps | TraceMode::Cells => true,
        };
        require(traced == self.trace.root.is_some(), || {
            format!("trace mode {} and the trace root exclude each other", self.trace.mode.word())
        })?;
        if traced {
            expected.push((TRACE_SECTION, self.trace.count, Some(DIGEST_LEN_BYTES)));
        } else {
            require(self.trace.count == 0, || {
                format!("trace mode none with {} leaves", self.trace.count)
            })?;
        }
        require(self.sections.len() == expected.len(), || {
            format!("{} sections where {} are due", self.sections.len(), expected.len())
        })?;
        for (section, (kind, count, row)) in self.sections.iter().zip(expected) {
            require(section.kind == kind, || {
                format!("section {:?} where {kind:?} is due", section.kind)
            })?;
            let len_bytes = row.and_then(|row| row.checked_mul(count));
            require(section.leaf_count == count && Some(section.len_bytes) == len_bytes, || {
                let (leaves, len) = (section.leaf_count, section.len_bytes);
                format!("section {kind} of {leaves} leaves in {len} bytes, {count} leaves are due")
            })?;
        }
        Ok(())
    }
}

/// A batch holds the pass's own tokens and at least one of every other pass.
fn check_batch(pass: usize, token_count: u64, Batch { passes, rows }: Batch) -> Outcome {
    require(passes >= 2, || format!("pass {pass} is in a batch of {passes}, at least 2 are due"))?;
    require(rows <= MAX_BATCH_ROWS, || {
        format!("pass {pass} is in a batch of {rows} tokens, at most {MAX_BATCH_ROWS} are allowed")
    })?;
    let least = token_count.saturating_add(passes - 1);
    require(rows >= least, || {
        format!(
            "pass {pass} of {token_count} tokens is in a batch of {passes} passes and {rows} tokens, at least {least} are due"
        )
    })
}

/// Most tokens of a batch: 256 times what an engine here launches together, and few
/// enough that no shape computed from them overflows.
const MAX_BATCH_ROWS: u64 = 1 << 20;

const DIGEST_LEN_BYTES: u64 = 32;
