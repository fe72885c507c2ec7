//! The caches: rows of keys and values, kept by sequence and position for later
//! passes.

use std::collections::btree_map::Entry;

use cudarc::driver::CudaSlice;

use super::buffer::Cache;
use super::fault::{device_error, expect, fault};
use super::{CudaEngine, memory};
use crate::engine::{EngineError, Group};
use crate::num::Bf16;
use crate::plan::{CacheSlot, Operand, Step};

impl CudaEngine {
    pub(super) fn cache(
        &self,
        sequence: usize,
        step: &Step,
        operand: usize,
    ) -> Result<&Cache, EngineError> {
        let Some(Operand::Cache(slot)) = step.inputs.get(operand) else {
            return Err(fault(step, format!("operand {operand} is no cache")));
        };
        self.caches.get(&(sequence, *slot)).ok_or_else(|| fault(step, format!("{slot} is empty")))
    }

    /// Stores the rows of a kept output at their positions.
    pub(super) fn keep(
        &mut self,
        group: &Group<'_>,
        slot: CacheSlot,
        output: &CudaSlice<Bf16>,
    ) -> Result<(), EngineError> {
        let step = group.step();
        let columns = step.columns;
        let mut row = 0;
        for part in &group.parts {
            let cache = match self.caches.entry((part.pass.sequence, slot)) {
                Entry::Occupied(entry) => entry.into_mut(),
                Entry::Vacant(entry) => {
                    let len = self.max_positions * columns;
                    let elements = memory::zeros(&self.stream, &step.name, len)?;
                    entry.insert(Cache { columns, kept: 0, elements })
                }
            };
            expect(step, "columns of the cache", cache.columns, columns)?;
            let (start, end) = (part.pass.start, part.pass.start + part.pass.tokens);
            expect(step, "rows of a kept step", part.pass.tokens, part.step.rows)?;
            if start > cache.kept || end > self.max_positions {
                let what = format!(
                    "positions {start}..{end}, but {} rows are kept of {}",
                    cache.kept, self.max_positions
                );
                return Err(fault(step, what));
            }
            let rows = row * columns..(row + part.pass.tokens) * columns;
            row += part.pass.tokens;
            let source = output.try_slice(rows);
            let target = cache.elements.try_slice_mut(start * columns..end * columns);
            let (Some(source), Some(mut target)) = (source, target) else {
                return Err(fault(step, "the output has too few rows".into()));
            };
            let copied = self.stream.memcpy_dtod(&source, &mut target);
            copied.map_err(device_error(&step.name, "cuMemcpyDtoD"))?;
            cache.kept = cache.kept.max(end);
        }
        Ok(())
    }
}
