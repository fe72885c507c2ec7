//! Counts comparisons, prints one line for each, and keeps them as evidence.

use std::io::Write as _;

use attest::engine::cuda::{Device, Environment};

/// Opens the GPU, or says why there is none.
pub fn device() -> Option<Device> {
    match Device::open() {
        Ok(device) => Some(device),
        Err(error) => {
            println!("skipped: {error}");
            None
        }
    }
}

/// The comparisons of one test.
pub struct Tally {
    test: &'static str,
    environment: Environment,
    started: std::time::Instant,
    lines: Vec<Line>,
}

struct Line {
    what: String,
    compared: u64,
    differing: u64,
    first: Option<String>,
}

impl Tally {
    pub fn new(test: &'static str, device: &Device) -> Self {
        let environment = device.environment().clone();
        Self { test, environment, started: std::time::Instant::now(), lines: Vec::new() }
    }

    /// Compares two sequences bit for bit; `first` tells where they part.
    pub fn compare<T: PartialEq + std::fmt::Debug>(
        &mut self,
        what: impl Into<String>,
        gpu: &[T],
        model: &[T],
    ) {
        let differing = gpu.iter().zip(model).filter(|(g, m)| g != m).count() as u64
            + gpu.len().abs_diff(model.len()) as u64;
        let first = gpu.iter().zip(model).position(|(g, m)| g != m);
        let first = first.map(|i| format!("[{i}] GPU {:?} model {:?}", gpu[i], model[i]));
        self.add(what, model.len() as u64, differing, first);
    }

    /// Adds a line that was counted elsewhere.
    pub fn add(
        &mut self,
        what: impl Into<String>,
        compared: u64,
        differing: u64,
        first: Option<String>,
    ) {
        let line = Line { what: what.into(), compared, differing, first };
        let first = line.first.as_deref().unwrap_or("");
        println!(
            "gpu | {:56} | {:>14} | {:>9} | {first}",
            line.what, line.compared, line.differing
        );
        self.lines.push(line);
    }

    /// Prints the sum, appends it all to `$ATTEST_EVIDENCE_DIR/gpu.jsonl`, and
    /// fails if anything differed or nothing was compared.
    pub fn finish(self) {
        let (compared, differing) =
            self.lines.iter().fold((0, 0), |(c, d), line| (c + line.compared, d + line.differing));
        let seconds = self.started.elapsed().as_secs();
        println!(
            "gpu | {:56} | {compared:>14} | {differing:>9} | {seconds} s",
            format!("= {}", self.test)
        );
        if let Some(folder) = evidence_folder() {
            let rows: Vec<_> = self
                .lines
                .iter()
                .map(|line| {
                    serde_json::json!({
                        "what": line.what, "compared": line.compared,
                        "differing": line.differing, "first": line.first,
                    })
                })
                .collect();
            let record = serde_json::json!({
                "test": self.test,
                "environment": environment(&self.environment),
                "unix_time": unix_time(),
                "seconds": seconds,
                "compared": compared,
                "differing": differing,
                "rows": rows,
            });
            let path = folder.join("gpu.jsonl");
            let mut file =
                std::fs::OpenOptions::new().create(true).append(true).open(path).unwrap();
            writeln!(file, "{record}").unwrap();
        }
        assert!(compared > 0, "{}: nothing was compared", self.test);
        assert_eq!(differing, 0, "{}: {differing} of {compared} differ", self.test);
    }
}

/// The environment as evidence files have it.
pub fn environment(environment: &Environment) -> serde_json::Value {
    let kernels: serde_json::Map<String, serde_json::Value> = environment
        .kernels
        .iter()
        .map(|(name, digest)| ((*name).to_owned(), digest.to_string().into()))
        .collect();
    serde_json::json!({
        "gpu": environment.gpu,
        "compute_capability": environment.compute_capability,
        "driver": environment.driver,
        "cuda_driver": environment.cuda_driver,
        "cublaslt": environment.cublaslt,
        "nvrtc": environment.nvrtc,
        "nvrtc_options": environment.nvrtc_options,
        "kernels": kernels,
    })
}

/// Where measured results go, if anywhere.
pub fn evidence_folder() -> Option<std::path::PathBuf> {
    std::env::var_os("ATTEST_EVIDENCE_DIR").map(Into::into)
}

fn unix_time() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    now.map_or(0, |now| now.as_secs())
}
