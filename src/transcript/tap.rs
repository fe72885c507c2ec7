//! The recording tap: from an engine's outputs to a recording.

use super::record::{RecordError, Recorder, Recording};
use super::statement::{LogitsMode, TraceMode};
use crate::engine::{Flow, Progress, Tap};
use crate::model::qwen3;
use crate::num::{Dtype, Tensor};
use crate::plan::{LOGITS, Pass, Step};

impl TraceMode {
    /// Whether a trace of this mode holds the output of `step`.
    pub fn includes(self, step: &Step) -> bool {
        match self {
            Self::None => false,
            Self::Layers => qwen3::is_layer_output(step),
            Self::Steps => true,
        }
    }
}

/// Records logits and traced outputs while an engine runs.
#[derive(Debug)]
pub struct RecordTap<P> {
    recorder: Recorder,
    trace: TraceMode,
    error: Option<RecordError>,
    progress: P,
}

impl<P: FnMut(&Progress<'_>)> RecordTap<P> {
    /// Makes an empty tap for logits of `vocab` bf16 elements.
    pub fn new(logits: LogitsMode, trace: TraceMode, vocab: usize, progress: P) -> Self {
        let recorder = Recorder::new(logits, trace, vocab as u64, Dtype::Bf16);
        Self { recorder, trace, error: None, progress }
    }

    /// What was recorded.
    ///
    /// # Errors
    /// [`RecordError`] if an output did not fit.
    pub fn finish(self) -> Result<Recording, RecordError> {
        match self.error {
            Some(error) => Err(error),
            None => Ok(self.recorder.finish()),
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
        if step.name == LOGITS {
            let position = (pass.start + pass.tokens - 1) as u64;
            self.recorder.logits(number, position, output)?;
        }
        if self.trace.includes(step) {
            self.recorder.step(number, index as u64, &step.name, output)?;
        }
        Ok(())
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
