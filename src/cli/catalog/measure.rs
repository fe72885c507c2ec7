//! `attest catalog build` and `check`: asking and comparing on the GPU at hand.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::json;

use super::{Build, Check, Model, open, text};
use crate::cli::basis::{self, Basis, NamedShape, PROFILE};
use crate::cli::error::Failure;
use crate::cli::output::Output;
use crate::cli::{CommandResult, Exit, paths};
use crate::engine::cuda::survey::{DESCRIPTION, Survey, Surveyed, Weight};
use crate::engine::cuda::{Device, EnvironmentError};
use crate::isa::mma::Simd;
use crate::model::Config;
use crate::model::content::Configuration;
use crate::model::locate::Places;
use crate::model::synth::Checkpoint;
use crate::recipe::catalog::listing::{FORMAT, Listing, Measured, Run, Shape};
use crate::recipe::catalog::{Catalog, Choice, Library};
use crate::recipe::gemm::Walk;

/// Measures and writes a catalogue.
pub(super) fn build(args: &Build, output: &Output) -> CommandResult {
    let weight = |((n, k), names): NamedShape| Weight { n: n as usize, k: k as usize, names };
    let weights: Vec<Weight> =
        basis::weights(&config(&args.of)?)?.into_iter().map(weight).collect();
    let path = args.out.clone().unwrap_or_else(|| PathBuf::from(format!("{}.json", args.id)));
    let pending = paths::Pending::create(&path, false, &[])?;
    let device = open_device()?;
    let found = device.environment();
    let (shapes, refused) =
        survey(&device, &weights, WORKSPACE_BYTES, args.max_m as usize, output)?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let listing = Listing {
        format: FORMAT,
        id: args.id.clone(),
        profile: PROFILE.into(),
        gpus: vec![found.gpu.clone()],
        nvrtc: vec![found.nvrtc.clone()],
        library: Library { name: "cublasLt".into(), versions: vec![found.cublaslt] },
        product: Basis::general()?.catalog.product().into(),
        workspace_bytes: WORKSPACE_BYTES,
        max_m: args.max_m.into(),
        measured: Measured {
            by: format!("attest {}", env!("CARGO_PKG_VERSION")),
            driver: found.driver.clone(),
            cuda_driver: found.cuda_driver.clone(),
            unix_time: now,
            data: DESCRIPTION.split_whitespace().collect::<Vec<_>>().join(" "),
        },
        shapes,
        refused: refused.clone(),
    };
    let internal = |what: String| Failure::new(Exit::Internal, what);
    let text = text::of(&listing).map_err(|error| internal(error.to_string()))?;
    let catalog = Catalog::parse(&args.id, &text).map_err(|error| internal(error.to_string()))?;
    pending.finish(text.as_bytes())?;
    let mut summary = String::new();
    for sentence in &refused {
        let _ = writeln!(summary, "not listed: {sentence}"); // Writing to a String cannot fail.
    }
    let _ = writeln!(summary, "{} written, digest {}", path.display(), catalog.digest());
    let json = json!({
        "file": path, "id": args.id, "digest": catalog.digest().to_string(), "refused": refused,
    });
    output.result(&json, &summary);
    Ok(if refused.is_empty() { Exit::Success } else { Exit::Mismatch })
}

/// Measures again and compares with a catalogue.
pub(super) fn check(args: &Check, output: &Output) -> CommandResult {
    let catalog = open(&args.catalogue)?;
    let Some(listing) = catalog.listing() else {
        let message = format!("catalogue {} lists no products", catalog.id());
        return Err(Failure::new(Exit::Usage, message)
            .hint("`cargo test --features cuda --test gpu` measures families of algorithms"));
    };
    let device = open_device()?;
    let found = device.environment();
    catalog
        .covers(&found.gpu, &found.nvrtc, &found.cublaslt.to_string())
        .map_err(|reason| Failure::new(Exit::Incomplete, reason))?;
    let weights: Vec<Weight> = listing
        .shapes
        .iter()
        .map(|shape| Weight {
            n: shape.n as usize,
            k: shape.k as usize,
            names: shape.weights.clone(),
        })
        .collect();
    let max_m = listing.max_m as usize;
    let (shapes, mut differences) =
        survey(&device, &weights, listing.workspace_bytes, max_m, output)?;
    for (listed, found) in listing.shapes.iter().zip(&shapes) {
        differences.extend(compare(listed, found));
    }
    let mut text = String::new();
    for sentence in &differences {
        let _ = writeln!(text, "{sentence}");
    }
    let algorithms: usize = shapes.iter().map(|shape| shape.algorithms.len()).sum();
    let _ = writeln!(
        text,
        "{}: {} weights, {algorithms} algorithms measured again, {} differences",
        catalog.id(),
        shapes.len(),
        differences.len()
    );
    let json = json!({
        "id": catalog.id(), "algorithms": algorithms, "differences": differences,
    });
    output.result(&json, &text);
    Ok(if differences.is_empty() { Exit::Success } else { Exit::Mismatch })
}

/// Where the library's choices of today are not the listed ones.
fn compare(listed: &Shape, found: &Shape) -> Vec<String> {
    let mut sentences = Vec::new();
    for choice in Choice::ALL {
        let last = |runs: &[Run]| runs.last().map_or(0, |run| run.1);
        for m in 1..=last(listed.runs(choice)).max(last(found.runs(choice))) {
            let of = |shape: &Shape| {
                let algorithm = shape.algorithm(choice, m);
                algorithm.map_or("none".into(), |a| format!("{}, {}", a.attributes, a.recipe))
            };
            let (was, is) = (of(listed), of(found));
            if was != is {
                sentences.push(format!(
                    "n={} k={} m={m} {}: {was} is listed, {is} found",
                    listed.n,
                    listed.k,
                    choice.name()
                ));
            }
        }
    }
    sentences
}

fn survey(
    device: &Device,
    weights: &[Weight],
    workspace_bytes: usize,
    max_m: usize,
    output: &Output,
) -> Result<(Vec<Shape>, Vec<String>), Failure> {
    let walk = Walk::new(&Basis::general()?.mma, Simd::detect());
    let mut survey = Survey::new(device, walk, workspace_bytes, max_m)?;
    let (mut shapes, mut refused) = (Vec::new(), Vec::new());
    for weight in weights {
        let Surveyed { shape, refused: more } = survey.weight(weight)?;
        output.note(&format!(
            "n={} k={}: {} algorithms, {} refused",
            weight.n,
            weight.k,
            shape.algorithms.len(),
            more.len()
        ));
        shapes.push(shape);
        refused.extend(more);
    }
    Ok((shapes, refused))
}

fn open_device() -> Result<Device, Failure> {
    Device::open()
        .map_err(|error: EnvironmentError| Failure::new(Exit::Incomplete, error.to_string()))
}

fn config(of: &Model) -> Result<Config, Failure> {
    if let Some(model) = &of.model {
        let folder = Places::from_env().resolve(model)?;
        return Ok(Configuration::read(&folder)?.config);
    }
    let shape = of.config.as_deref().unwrap_or_default();
    let checkpoint = Checkpoint::new(shape, None, 0)?;
    let checkpoint = checkpoint
        .ok_or_else(|| Failure::new(Exit::Usage, format!("no shape is named {shape:?}")))?;
    Ok(checkpoint.config().clone())
}

/// What PyTorch offers the library on Hopper.
const WORKSPACE_BYTES: usize = 32 << 20;
