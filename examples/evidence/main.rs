//! Keeps `spec/evidence/`: records of whole models, and the tables made from all records.
//!
//! `record` prints the line of `spec/evidence/models.jsonl` that belongs to a transcript
//! and to the report of `attest verify --json` on it. `tables` writes the parts of the
//! pages between their marks again, from the evidence files and the catalogues.

mod generator;

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};

use attest::model::Config;
use attest::model::synth::Checkpoint;
use clap::Parser;

use generator::recording::{By, record};
use generator::{PAGES, regenerated};

#[derive(Parser)]
enum Action {
    /// Prints the record of a transcript that was verified, one line of JSON.
    Record(Recorded),
    /// Writes the tables of the pages from the evidence.
    Tables,
}

#[derive(clap::Args)]
struct Recorded {
    /// The transcript.
    #[arg(long)]
    transcript: PathBuf,
    /// What `attest verify --json` printed for it.
    #[arg(long)]
    report: PathBuf,
    #[command(flatten)]
    sizes: Sizes,
    /// How long the verification took.
    #[arg(long)]
    seconds: Option<f64>,
    /// How many threads it had.
    #[arg(long)]
    threads: Option<u64>,
}

/// Where the model's sizes are from; they have to give the transcript's plans.
#[derive(clap::Args)]
#[group(required = true, multiple = false)]
struct Sizes {
    /// A published shape, for instance qwen3-4b.
    #[arg(long)]
    config: Option<String>,
    /// The model's config.json.
    #[arg(long)]
    model_config: Option<PathBuf>,
}

fn main() -> Result<(), Box<dyn Error>> {
    match Action::parse() {
        Action::Record(of) => {
            let config = of.sizes.read()?;
            let report = serde_json::from_slice(&read(&of.report)?)?;
            let by = By { threads: of.threads, seconds: of.seconds };
            let record = record(read(&of.transcript)?, &report, &config, &by)?;
            println!("{}", serde_json::to_string(&record)?);
        }
        Action::Tables => {
            let root = Path::new(env!("CARGO_MANIFEST_DIR"));
            for page in PAGES {
                let text = regenerated(root, page)?;
                fs::write(root.join(page), text)?;
            }
        }
    }
    Ok(())
}

impl Sizes {
    fn read(&self) -> Result<Config, Box<dyn Error>> {
        if let Some(path) = &self.model_config {
            return Ok(Config::from_json(&read(path)?)?);
        }
        let shape = self.config.as_deref().unwrap_or_default();
        let checkpoint = Checkpoint::new(shape, None, 0)?;
        let checkpoint = checkpoint.ok_or_else(|| format!("no shape is named {shape:?}"))?;
        Ok(checkpoint.config().clone())
    }
}

fn read(path: &Path) -> Result<Vec<u8>, String> {
    fs::read(path).map_err(|error| format!("{}: {error}", path.display()))
}
