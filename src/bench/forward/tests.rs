use std::path::Path;

use super::*;
use crate::engine::{EngineError, Group};
use crate::isa::profile::Profile;
use crate::num::{Bf16, Data};

fn model() -> Model {
    Model::open(&Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/tiny/model")).unwrap()
}

fn mma() -> MmaProfile {
    *Profile::by_id("h200").unwrap().mma("bf16").unwrap()
}

fn request<'a>(model: &'a Model, mma: &'a MmaProfile, logits: Logits) -> ForwardRequest<'a> {
    let simd = Simd::detect();
    ForwardRequest { model, mma, simd, prompt_tokens: 5, generated: 3, logits }
}

#[test]
fn every_step_is_checked_and_has_its_time() {
    let (model, mma) = (model(), mma());
    for (logits, rows) in [(Logits::Last, 3), (Logits::All, 7)] {
        let request = request(&model, &mma, logits);
        let mut told = (0, 0);
        let report = forward(&request, &mut |done, total| told = (done, total)).unwrap();
        assert_eq!((report.positions, report.logits_rows), (7, rows));
        let (plans, _) = passes(&request).unwrap();
        assert_eq!(report.checked_steps, plans[0].steps.len());
        assert!(report.checked_outputs > report.checked_steps);
        let each: u64 = report.operations.iter().map(|op| op.multiply_adds).sum();
        assert_eq!((each, told), (report.multiply_adds, (each, each)), "the plan's own count");
        let names: Vec<_> = report.operations.iter().map(|op| op.operation).collect();
        assert_eq!(names.len(), 11, "{names:?}");
        assert_eq!(names.last(), Some(&"between steps"));
        let shares: u64 = report.operations.iter().map(|op| op.share.millionths()).sum();
        assert!((999_980..=1_000_000).contains(&shares), "each share is rounded down: {shares}");
        #[cfg(target_os = "linux")]
        assert!(report.memory.unwrap().anonymous_peak > 1 << 20);
    }
}

/// An engine that flips the lowest bit of every output of one step.
struct Lying<'a> {
    engine: Emulator<'a>,
    step: usize,
    next: usize,
}

impl Engine for Lying<'_> {
    type Buffer = Tensor;

    fn name(&self) -> &'static str {
        self.engine.name()
    }

    fn upload(&mut self, tensor: &Tensor) -> Result<Tensor, EngineError> {
        self.engine.upload(tensor)
    }

    fn execute(&mut self, group: &Group<'_>, inputs: &[&Tensor]) -> Result<Tensor, EngineError> {
        let output = self.engine.execute(group, inputs)?;
        self.next += 1;
        if self.next != self.step + 1 {
            return Ok(output);
        }
        let data = match output.data() {
            Data::Bf16(all) => Data::Bf16(all.iter().map(|x| Bf16(x.0 ^ 1)).collect()),
            Data::U32(all) => Data::U32(all.iter().map(|x| x ^ 1).collect()),
            Data::F32(_) => panic!("no step has binary32 outputs"),
        };
        Ok(Tensor::new(output.shape(), data).unwrap())
    }

    fn read_back<'b>(
        &mut self,
        buffer: &'b Tensor,
    ) -> Result<std::borrow::Cow<'b, Tensor>, EngineError> {
        self.engine.read_back(buffer)
    }
}

#[test]
fn a_wrong_output_of_any_step_ends_the_measurement() {
    let (model, mma) = (model(), mma());
    let request = request(&model, &mma, Logits::Last);
    let (plans, _) = passes(&request).unwrap();
    let count = plans[0].steps.len();
    for (step, planned) in plans[0].steps.iter().enumerate() {
        let engine = Emulator::new(&mma, request.simd, model.weights(), 8);
        let error = measure(&request, Lying { engine, step, next: 0 }, &mut |_, _| ()).unwrap_err();
        let error = error.to_string();
        assert!(error.starts_with(&format!("{}: output ", planned.name)), "{step}: {error}");
        assert!(error.ends_with("no rate is reported"), "{error}");
    }
    let engine = Emulator::new(&mma, request.simd, model.weights(), 8);
    let honest = Lying { engine, step: count, next: 0 };
    assert!(measure(&request, honest, &mut |_, _| ()).is_ok());
}

#[test]
fn what_the_model_cannot_take_is_refused() {
    let (model, mma) = (model(), mma());
    for (prompt_tokens, generated, words) in
        [(0, 1, "prompt has no token"), (5, 0, "at least one"), (1024, 1, "1025 tokens")]
    {
        for logits in [Logits::Last, Logits::All] {
            let request =
                ForwardRequest { prompt_tokens, generated, ..request(&model, &mma, logits) };
            let error = forward(&request, &mut |_, _| ()).unwrap_err().to_string();
            assert!(error.contains(words), "{error}");
        }
    }
}
