//! The recording tap: from an engine's outputs to a recording.

use std::path::PathBuf;

use super::cells;
use super::record::{RecordError, Recorder, Recording};
use super::statement::{LogitsMode, TraceMode};
use crate::engine::{Flow, Progress, Tap};
use crate::model::qwen3;
use crate::num::{Dtype, Tensor};
use crate::plan::{LOGITS, Pass, Step};

impl TraceMode {
    /// Whether a trace of this mode holds the output of `step`, whole or row by row.
    pub fn includes(self, step: &Step) -> bool {
        match self {
            Self::None => false,
            Self::Layers => qwen3::is_layer_output(step),
            Self::Steps => true,
            Self::Cells => cells::is_leaf(step),
        }
    }
}

/// Records logits and traced outputs while an engine runs, each sequence's apart: as
/// if it ran alone.
#[derive(Debug)]
pub struct RecordTap<P> {
    /// By sequence, as far as any was seen.
    recorders: Vec<Recorder>,
    logits: LogitsMode,
    trace: TraceMode,
    vocab: u64,
    /// Where outputs are put aside that do not fit in memory.
    folder: Option<PathBuf>,
    error: Option<RecordError>,
    progress: P,
}

impl<P: FnMut(&Progress<'_>)> RecordTap<P> {
    /// Makes an empty tap for logits of `vocab` bf16 elements.
    pub fn new(logits: LogitsMode, trace: TraceMode, vocab: usize, progress: P) -> Self {
        let (recorders, vocab) = (Vec::new(), vocab as u64);
        Self { recorders, logits, trace, vocab, folder: None, error: None, progress }
    }

    /// Puts outputs aside in this folder as soon as they do not fit in memory.
    #[must_use]
    pub fn aside_in(self, folder: PathBuf) -> Self {
        Self { folder: Some(folder), ..self }
    }

    /// What was recorded, by sequence.
    ///
    /// # Errors
    /// [`RecordError`] if an output did not fit.
    pub fn finish(self) -> Result<Vec<Recording>, RecordError> {
        match self.error {
            Some(error) => Err(error),
            None => self.recorders.into_iter().map(Recorder::finish).collect(),
        }
    }

    fn record(
        &mut self,
        pass: &Pass,
        index: usize,
        step: &Step,
        output: &Tensor,
    ) -> Result<(), RecordError> {
        let number = pass.index as u64;
        let (logits, trace, vocab) = (self.logits, self.trace, self.vocab);
        if self.recorders.len() <= pass.sequence {
            let folder = self.folder.as_deref();
            let empty = || Recorder::in_folder(folder, logits, trace, vocab, Dtype::Bf16);
            self.recorders.resize_with(pass.sequence + 1, empty);
        }
        let recorder = &mut self.recorders[pass.sequence];
        if step.name == LOGITS {
            let position = (pass.start + pass.tokens - 1) as u64;
            recorder.logits(number, position, output)?;
        }
        if !trace.includes(step) {
            return Ok(());
        }
        match trace {
            TraceMode::Cells => {
                recorder.rows((number, pass.start as u64), index as u64, &step.name, output)
            }
            TraceMode::None | TraceMode::Layers | TraceMode::Steps => {
                recorder.step(number, index as u64, &step.name, output)
            }
        }
    }
}

impl<P: FnMut(&Progress<'_>)> Tap for RecordTap<P> {
    fn wants(&self, _: &Pass, _: usize, step: &Step) -> bool {
        step.name == LOGITS || self.trace.includes(step)
    }

    fn observe(&mut self, pass: &Pass, index: usize, step: &Step, output: &Tensor) -> Flow {
        match self.record(pass, index, step, output) {
            Ok(()) => Flow::Continue,
            Err(error) => {
                self.error = Some(error);
                Flow::Stop
            }
        }
    }

    fn progress(&mut self, progress: &Progress<'_>) -> Flow {
        (self.progress)(progress);
        Flow::Continue
    }
}
