//! Instructions and CUDA's math functions: hardware against `isa` and `libdevice`.

use std::collections::BTreeMap;
use std::sync::Mutex;

use attest::engine::cuda::Device;
use attest::engine::cuda::probe::Probe;
use attest::isa::mma::block_fma;
use attest::isa::profile::Profile;
use attest::num::{Bf16, F32, sha256};
use attest::recipe::libdevice::sweep::{CHUNK, DigestFile, Function, Recorded};
use rayon::prelude::*;

use super::inputs::{Family, draw};
use super::tally::{Tally, device, evidence_folder};

/// All 2^32 inputs of each function, or of those that `ATTEST_EXHAUSTIVE` names.
/// The hardware's digests go to `$ATTEST_EVIDENCE_DIR/mufu_digests.json`.
#[test]
fn every_input_of_every_function_agrees() {
    let Some(device) = device() else { return };
    let mut tally = Tally::new("every_input_of_every_function_agrees", &device);
    let probe = Mutex::new(Probe::new(&device).unwrap());
    let asked = std::env::var("ATTEST_EXHAUSTIVE").unwrap_or_default();
    let mut functions = BTreeMap::new();
    for function in Function::ALL {
        let name = function.name();
        if !asked.is_empty() && !asked.split(',').any(|asked| asked == name) {
            continue;
        }
        let chunks: Vec<_> = (0..=u8::MAX)
            .into_par_iter()
            .map(|chunk| sweep_chunk(&probe, function, chunk))
            .collect();
        let differing = chunks.iter().map(|(_, count, _)| count).sum();
        let first = chunks.iter().find_map(|(_, _, first)| first.clone());
        tally.add(format!("{name}, every input"), 1 << 32, differing, first);
        let chunks = chunks.into_iter().map(|(digest, _, _)| digest).collect();
        functions.insert(name.to_owned(), Recorded { provenance: provenance(&device), chunks });
    }
    if let Some(folder) = evidence_folder() {
        let format = "SHA-256 of the outputs of inputs c*2^24 to c*2^24 + 2^24 - 1 as little-endian u32, \
                      for c = 0 to 255";
        let file = DigestFile { format: format.into(), functions };
        let text = serde_json::to_string_pretty(&file).unwrap();
        std::fs::write(folder.join("mufu_digests.json"), text).unwrap();
    }
    tally.finish();
}

fn sweep_chunk(
    probe: &Mutex<Probe>,
    function: Function,
    chunk: u8,
) -> (String, u64, Option<String>) {
    let outputs = probe.lock().unwrap().sweep(function, chunk).unwrap();
    let first_input = u32::from(chunk) * CHUNK;
    let mut differing = 0;
    let mut first = None;
    let mut bytes = Vec::with_capacity(outputs.len() * 4);
    for (input, &gpu) in (first_input..=u32::MAX).zip(&outputs) {
        bytes.extend_from_slice(&gpu.to_le_bytes());
        let model = function.evaluate(F32(input));
        if gpu != model {
            differing += 1;
            first.get_or_insert_with(|| format!("f({input:08x}) GPU {gpu:08x} model {model:08x}"));
        }
    }
    (sha256(&[&bytes]).to_string(), differing, first)
}

fn provenance(device: &Device) -> String {
    let e = device.environment();
    format!("{}, driver {}, CUDA {}, NVRTC {}", e.gpu, e.driver, e.cuda_driver, e.nvrtc)
}

/// Tiles of one launch.
const TILES: usize = 1 << 15;

/// `mma.sync.m16n8k16` over seven families; `ATTEST_MMA_LAUNCHES` launches of
/// 4,194,304 outputs for each (default 24: 705 million outputs in all).
#[test]
fn block_fma_is_mma_sync() {
    let Some(device) = device() else { return };
    let mut tally = Tally::new("block_fma_is_mma_sync", &device);
    let probe = Probe::new(&device).unwrap();
    let profile = Profile::by_id("h200").unwrap();
    let profile = profile.mma("bf16").unwrap();
    let launches = std::env::var("ATTEST_MMA_LAUNCHES").ok();
    let launches: u64 = launches.and_then(|n| n.parse().ok()).unwrap_or(24);
    for (family, number) in Family::ALL.into_iter().zip(1..) {
        let (mut compared, mut differing, mut first) = (0, 0, None);
        for launch in 0..launches {
            let seed = number * 1000 + launch * 3;
            let fill = |seed: u64, len: usize, factor: usize| -> Vec<Bf16> {
                let indices = (0..len).into_par_iter();
                indices.map(|i| family.bf16(draw(seed, i as u64), factor)).collect()
            };
            let a = fill(seed, TILES * 256, 0);
            let b = fill(seed + 1, TILES * 128, 1);
            let c: Vec<F32> = (0..TILES * 128)
                .into_par_iter()
                .map(|i| family.accumulator(draw(seed + 2, i as u64)))
                .collect();
            let gpu = probe.mma_tiles(&a, &b, &c).unwrap();
            let model = |output: usize| {
                let (tile, row, column) = (output / 128, output / 8 % 16, output % 8);
                let a = &a[tile * 256 + row * 16..][..16];
                let b = &b[tile * 128 + column * 16..][..16];
                block_fma(profile, a, b, c[output])
            };
            let wrong = |&output: &usize| gpu[output] != model(output);
            compared += gpu.len() as u64;
            differing += (0..gpu.len()).into_par_iter().filter(wrong).count() as u64;
            if differing > 0 && first.is_none() {
                let output = (0..gpu.len()).find(wrong);
                first = output.map(|o| format!("[{o}] GPU {:?} model {:?}", gpu[o], model(o)));
            }
        }
        tally.add(format!("mma.sync bf16, {family:?}"), compared, differing, first);
    }
    tally.finish();
}
