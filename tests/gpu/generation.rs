//! Both engines, step by step, over whole generations.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use attest::engine::cuda::{CudaEngine, Device};
use attest::engine::emulator::Emulator;
use attest::engine::generate::{StopRule, generate, layout};
use attest::engine::run;
use attest::isa::mma::Simd;
use attest::isa::profile::Profile;
use attest::model::files::Folder;
use attest::model::{Config, Weights, qwen3};
use attest::plan::{Contract, Op, Pass, Stack};
use attest::recipe::catalog::Catalog;

use super::batches::{BATCHED, BATCHED_TOKENS, BATCHES, batches};
use super::inputs::{activations, draw};
use super::recording::{Compare, Record};
use super::tally::{Tally, device};

/// Prompt lengths: a decode-like prefill, one that fills no tile, one past three.
const PROMPTS: [usize; 3] = [1, 17, 203];
/// Tokens generated after each.
const GENERATED: usize = 64;

/// The example model, where it is.
pub fn tiny_model() -> Option<PathBuf> {
    let named = std::env::var_os("ATTEST_TINY_MODEL").map(PathBuf::from);
    let folders = named.into_iter().chain([
        PathBuf::from("examples/tiny/model"),
        Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/tiny/model"),
    ]);
    let found = folders.into_iter().find(|folder| folder.join("config.json").is_file());
    if found.is_none() {
        println!("skipped: examples/tiny/model is not here");
    }
    found
}

#[test]
fn engines_agree_on_the_example_model() {
    let Some(device) = device() else { return };
    let Some(folder) = tiny_model() else { return };
    let mut tally = Tally::new("engines_agree_on_the_example_model", &device);
    let (config, weights) = open(&folder);
    for prompt in PROMPTS {
        generation(&device, &mut tally, "tiny", (&config, &weights), Stack::Native, prompt);
    }
    tally.finish();
}

/// Random weights reach states that a trained model does not.
#[test]
fn engines_agree_on_a_random_model() {
    let Some(device) = device() else { return };
    let mut tally = Tally::new("engines_agree_on_a_random_model", &device);
    let folder = tempfile::tempdir().unwrap();
    write_random_model(folder.path());
    let (config, weights) = open(folder.path());
    for prompt in PROMPTS {
        generation(&device, &mut tally, "random", (&config, &weights), Stack::Native, prompt);
    }
    tally.finish();
}

/// Both stacks, and batches, at the size of a published model: `ATTEST_FULL_MODEL` names its folder.
/// Takes minutes and, for the records, 10 GB.
#[test]
fn a_model_of_full_size() {
    let Some(folder) = std::env::var_os("ATTEST_FULL_MODEL").map(PathBuf::from) else {
        println!("skipped: ATTEST_FULL_MODEL names no model");
        return;
    };
    let Some(device) = device() else { return };
    let mut tally = Tally::new("a_model_of_full_size", &device);
    let (config, weights) = open(&folder);
    let name = folder.file_name().unwrap().to_string_lossy().into_owned();
    for stack in [Stack::Native, Stack::NativeStock] {
        let name = format!("{name}, {}", stack.name());
        for prompt in FULL_PROMPTS {
            generation(&device, &mut tally, &name, (&config, &weights), stack, prompt);
        }
    }
    let catalog = catalog(&config, Stack::Native);
    let positions = BATCHED.1 + BATCHED_TOKENS;
    let engine = || cuda(&device, &weights, Stack::Native, &catalog, positions);
    let mut single = engine();
    for count in BATCHES {
        batches(&mut tally, (&name, &config), count, (&mut engine(), &mut single));
    }
    tally.finish();
}

/// Prompt lengths at full size.
const FULL_PROMPTS: [usize; 3] = [32, 250, 1000];

/// The catalogue that lists the model's products, else the general one.
pub fn catalog(config: &Config, stack: Stack) -> Catalog {
    let plan = qwen3::forward(config, Contract::Native, Pass::alone(0, 0, 1)).unwrap();
    let shapes = plan.steps.iter().filter_map(|step| {
        let Op::Linear { k } = step.op else { return None };
        Some((step.columns as u64, k as u64))
    });
    Catalog::knowing(stack.choice(), &shapes.collect::<Vec<_>>()).unwrap()
}

pub fn cuda(
    device: &Device,
    weights: &Weights,
    stack: Stack,
    catalog: &Catalog,
    positions: usize,
) -> CudaEngine {
    let mut engine = CudaEngine::new(device, catalog.clone(), stack.choice(), positions).unwrap();
    engine.load(weights).unwrap();
    engine
}

/// The same checks without a GPU: the emulator stands in for it, so that the
/// harness itself is tested where there is none.
#[test]
fn the_harness_compares_every_step() {
    let folder = tempfile::tempdir().unwrap();
    write_random_model(folder.path());
    let (config, weights) = open(folder.path());
    let profile = Profile::by_id("h200").unwrap();
    let mma = profile.mma("bf16").unwrap();
    let mut record = Record::default();
    let rule = StopRule { max_new_tokens: 2, stop_ids: vec![] };
    let mut engine = Emulator::new(mma, Simd::detect(), &weights, 16);
    let made = generate(&mut engine, &config, Contract::Native, &[5, 6, 7], &rule, &mut record);
    let made = made.unwrap().unwrap();
    let (plans, tokens) = layout(&config, Contract::Native, &[5, 6, 7], &made.tokens).unwrap();
    let mut compare = Compare::with(&record);
    let mut engine = Emulator::new(mma, Simd::detect(), &weights, 16);
    run(&mut engine, &plans, &tokens, &mut compare).unwrap();
    assert_eq!(compare.steps as usize, 2 * plans[0].steps.len());
    assert_eq!((compare.differing, compare.first), (0, None));
}

fn generation(
    device: &Device,
    tally: &mut Tally,
    model: &str,
    (config, weights): (&Config, &Weights),
    stack: Stack,
    prompt_len: usize,
) {
    let catalog = catalog(config, stack);
    let contract = Contract::new(stack, &catalog);
    let vocab = config.vocab_size as u64;
    let prompt: Vec<u32> = (0..prompt_len as u64).map(|i| (draw(77, i) % vocab) as u32).collect();
    let positions = prompt_len + GENERATED;
    let engine = || cuda(device, weights, stack, &catalog, positions);
    // No stop ids: all of the tokens are wanted, whatever they are.
    let rule = StopRule { max_new_tokens: GENERATED, stop_ids: vec![] };
    let mut record = Record::default();
    let mut cuda = engine();
    let made = generate(&mut cuda, config, contract, &prompt, &rule, &mut record);
    let made = made.unwrap().unwrap();
    let (plans, tokens) = layout(config, contract, &prompt, &made.tokens).unwrap();

    let mut check = |what: &str, execute: &mut dyn FnMut(&mut Compare<'_>)| {
        let mut compare = Compare::with(&record);
        execute(&mut compare);
        let what =
            format!("{model}, prompt {prompt_len} + {GENERATED}, {} steps: {what}", compare.steps);
        tally.add(what, compare.compared, compare.differing, compare.first);
    };
    check("emulator", &mut |compare| {
        let profile = Profile::by_id("h200").unwrap();
        let mma = profile.mma("bf16").unwrap();
        let mut emulator = Emulator::new(mma, Simd::detect(), weights, positions);
        run(&mut emulator, &plans, &tokens, compare).unwrap();
    });
    match stack {
        // Batch invariance on the hardware: all passes stacked give the same bits.
        Stack::Native => check("GPU, stacked", &mut |compare| {
            run(&mut engine(), &plans, &tokens, compare).unwrap();
        }),
        // Stacked, the products have other rows, and so other recipes.
        Stack::NativeStock => {}
    }
}

pub fn open(folder: &Path) -> (Config, Weights) {
    let folder = Folder::open(folder).unwrap();
    let config = Config::from_json(folder.read("config.json").unwrap().bytes()).unwrap();
    let weights = Weights::open(&folder, &config).unwrap();
    (config, weights)
}

/// Two layers at the smallest sizes that use every path: grouped heads, three
/// norm widths, tied embedding.
pub fn write_random_model(folder: &Path) {
    let (vocab, hidden, inner, layers, q_heads, kv_heads) = (512, 256, 768, 2, 4, 2);
    let config = serde_json::json!({
        "architectures": ["Qwen3ForCausalLM"],
        "model_type": "qwen3",
        "vocab_size": vocab,
        "hidden_size": hidden,
        "intermediate_size": inner,
        "num_hidden_layers": layers,
        "num_attention_heads": q_heads,
        "num_key_value_heads": kv_heads,
        "head_dim": 128,
        "rms_norm_eps": 1e-6,
        "rope_theta": 10000.0,
        "max_position_embeddings": 1024,
        "tie_word_embeddings": true,
        "eos_token_id": 0,
        "hidden_act": "silu",
        "torch_dtype": "bfloat16",
    });
    std::fs::write(folder.join("config.json"), config.to_string()).unwrap();

    let mut tensors: Vec<(String, Vec<usize>)> =
        vec![("model.embed_tokens.weight".into(), vec![vocab, hidden])];
    for layer in 0..layers {
        for (name, shape) in [
            ("input_layernorm", vec![hidden]),
            ("self_attn.q_proj", vec![q_heads * 128, hidden]),
            ("self_attn.k_proj", vec![kv_heads * 128, hidden]),
            ("self_attn.v_proj", vec![kv_heads * 128, hidden]),
            ("self_attn.q_norm", vec![128]),
            ("self_attn.k_norm", vec![128]),
            ("self_attn.o_proj", vec![hidden, q_heads * 128]),
            ("post_attention_layernorm", vec![hidden]),
            ("mlp.gate_proj", vec![inner, hidden]),
            ("mlp.up_proj", vec![inner, hidden]),
            ("mlp.down_proj", vec![hidden, inner]),
        ] {
            tensors.push((format!("model.layers.{layer}.{name}.weight"), shape));
        }
    }
    tensors.push(("model.norm.weight".into(), vec![hidden]));

    let mut header = serde_json::Map::new();
    let mut data = Vec::new();
    for (seed, (name, shape)) in tensors.into_iter().enumerate() {
        let start = data.len();
        for x in activations(seed as u64 + 500, shape.iter().product()) {
            // Matrices 16 times smaller, so that the residual stream stays in range.
            let small = shape.len() == 2 && x.0 & 0x7fff > 4 << 7;
            let bits = if small { x.0 - (4 << 7) } else { x.0 };
            data.extend_from_slice(&bits.to_le_bytes());
        }
        let entry = serde_json::json!({
            "dtype": "BF16", "shape": shape, "data_offsets": [start, data.len()],
        });
        header.insert(name, entry);
    }
    let header = serde_json::Value::from(header).to_string();
    let padding = " ".repeat(header.len().next_multiple_of(8) - header.len());
    let mut file = std::fs::File::create(folder.join("model.safetensors")).unwrap();
    let len = (header.len() + padding.len()) as u64;
    file.write_all(&len.to_le_bytes()).unwrap();
    file.write_all(header.as_bytes()).unwrap();
    file.write_all(padding.as_bytes()).unwrap();
    file.write_all(&data).unwrap();
}
