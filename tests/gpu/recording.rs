//! Outputs of every step, kept and compared.

use attest::engine::{Flow, Tap};
use attest::num::Tensor;
use attest::plan::{Pass, Step};

/// Keeps every output.
#[derive(Default)]
pub struct Record {
    pub outputs: Vec<Vec<Tensor>>,
}

impl Tap for Record {
    fn wants(&self, _: &Pass, _: usize, _: &Step) -> bool {
        true
    }

    fn observe(&mut self, pass: &Pass, index: usize, _: &Step, output: &Tensor) -> Flow {
        if self.outputs.len() == pass.index {
            self.outputs.push(Vec::new());
        }
        assert_eq!(self.outputs[pass.index].len(), index, "steps are seen in order");
        self.outputs[pass.index].push(output.clone());
        Flow::Continue
    }
}

/// Compares every output with a record and stops at the first that differs.
pub struct Compare<'a> {
    record: &'a Record,
    pub compared: u64,
    pub steps: u64,
    pub differing: u64,
    pub first: Option<String>,
}

impl<'a> Compare<'a> {
    pub fn with(record: &'a Record) -> Self {
        Self { record, compared: 0, steps: 0, differing: 0, first: None }
    }
}

impl Tap for Compare<'_> {
    fn wants(&self, _: &Pass, _: usize, _: &Step) -> bool {
        true
    }

    fn observe(&mut self, pass: &Pass, index: usize, step: &Step, output: &Tensor) -> Flow {
        let gpu = self.record.outputs[pass.index][index].to_le_bytes();
        let model = output.to_le_bytes();
        let size = output.dtype().size_bytes();
        self.compared += (model.len() / size) as u64;
        self.steps += 1;
        let pairs = || gpu.chunks(size).zip(model.chunks(size));
        let count = pairs().filter(|(g, m)| g != m).count() as u64;
        let lengths = (gpu.len().abs_diff(model.len()) / size) as u64;
        if count + lengths == 0 {
            return Flow::Continue;
        }
        self.differing += count + lengths;
        let at = pairs().position(|(g, m)| g != m).unwrap_or(0);
        let bits = |bytes: &[u8]| {
            bytes
                .iter()
                .skip(at * size)
                .take(size)
                .rev()
                .map(|b| format!("{b:02x}"))
                .collect::<String>()
        };
        self.first = Some(format!(
            "pass {} step {index} {} row {} column {}: {} and {}, {count} of {} differ",
            pass.index,
            step.name,
            at / step.columns,
            at % step.columns,
            bits(&gpu),
            bits(&model),
            model.len() / size,
        ));
        Flow::Stop
    }
}
