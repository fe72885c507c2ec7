//! The table of whole models.

use super::markdown::{count, table};
use super::record::{Batch, Model, Record, Verifier};

/// A row for each record, in the order of the file; or a line that there is none.
pub(crate) fn tables(records: &[Record]) -> String {
    if records.is_empty() {
        return "No run of a whole model is recorded yet.\n".into();
    }
    let head = [
        "GPU",
        "driver, libraries",
        "stack",
        "model",
        "prompt + generated",
        "batch",
        "logits compared",
        "other outputs compared",
        "differing",
        "verified by",
    ];
    let rows: Vec<Vec<String>> = records.iter().map(row).collect();
    table(&head, &rows)
}

/// The tokens of a run: of the prompt, and generated.
pub(crate) fn lengths(record: &Record) -> String {
    format!("{} + {}", record.prompt_tokens, record.generated_tokens)
}

/// The number of outputs that differ, or the checks that did not pass.
fn differing(record: &Record) -> String {
    let sentence = |check: &serde_json::Value| {
        let text = |name: &str| check[name].as_str().unwrap_or_default().to_owned();
        format!("{}: {}{}", text("subject"), text("detail"), text("reason"))
    };
    match record.differing {
        Some(differing) => count(differing),
        None => {
            let findings: Vec<String> = record.findings.iter().map(sentence).collect();
            format!("{}. {}", record.verdict, findings.join("; "))
        }
    }
}

fn row(record: &Record) -> Vec<String> {
    let gpu = &record.gpu;
    // What was due to be compared with a refused transcript is nobody's evidence.
    let compared = |number: u64| record.differing.map_or("–".to_owned(), |_| count(number));
    vec![
        gpu.name.clone(),
        format!(
            "{}, CUDA {}, cuBLASLt {}, NVRTC {}",
            gpu.driver, gpu.cuda_driver, gpu.cublaslt, gpu.nvrtc
        ),
        format!("`{}`", record.stack),
        format!("{}: {}", record.model.name, shape(&record.model)),
        lengths(record),
        record.batch.as_ref().map_or("alone".to_owned(), batch),
        compared(record.logits.elements),
        compared(record.trace.elements_beside_logits),
        differing(record),
        verifier(&record.verifier),
    ]
}

fn shape(model: &Model) -> String {
    format!(
        "{} layers, hidden {}, {} query and {} key/value heads of {}, intermediate {}, vocabulary {}",
        model.layers,
        model.hidden,
        model.query_heads,
        model.key_value_heads,
        model.head,
        model.intermediate,
        count(model.vocabulary)
    )
}

fn batch(batch: &Batch) -> String {
    format!("up to {} together, {} passes", batch.most_together, batch.passes)
}

fn verifier(by: &Verifier) -> String {
    let mut text = format!("attest {}, {}", by.version, by.simd);
    if let Some(threads) = by.threads {
        text += &format!(", {threads} threads");
    }
    if let Some(seconds) = by.seconds {
        text += &format!(", {seconds} s");
    }
    text
}
