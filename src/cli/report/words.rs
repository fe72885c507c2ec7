//! What verdicts and checks mean, in plain words.

use crate::transcript::statement::TraceMode;
use crate::verify::report::{Subject, Verdict};

/// What a verdict means, and what to do about it.
pub(super) fn verdict(verdict: Verdict) -> (&'static str, &'static str) {
    match verdict {
        Verdict::Verified => (
            "A signer whom you trust stated this run, and computing it again gave every recorded \
             bit.",
            "File this report with the transcript, and read under Limits what it does not show.",
        ),
        Verdict::Mismatch => (
            "A signer whom you trust stated this run, and the statement is false: computing it \
             again gives something else.",
            "Do not rely on the output. Keep the transcript, and ask the signer to account for the \
             failed check below.",
        ),
        Verdict::Untrusted => (
            "It is not shown that somebody whom you trust stated this run, and for you: nothing in it \
             can be held against anybody.",
            "If the signature or trust failed, get the signer's public key in a way that you trust, \
             name it in the trust file, and verify again. If only freshness failed, the transcript is \
             not an answer to your nonce: ask for one that carries it.",
        ),
        Verdict::Malformed => (
            "The file is not a valid transcript, or a file of the model is not a valid model file: \
             there is nothing to judge.",
            "If it is the encoding that failed, ask for the transcript again; it was damaged or changed \
             on its way, or never was one. If it is the model, get the model's files again: the \
             transcript may be in order.",
        ),
        Verdict::Partial => (
            "A signer whom you trust stated this run, and the parts of it that were drawn at random \
             are what computing them again gives.",
            "Read under Coverage how much was drawn and how likely a forgery would have been \
             noticed; verify in full where that is not enough.",
        ),
        Verdict::Incomplete => (
            "It could not be decided here, because something is missing or not known. This is \
             neither a pass nor a failure of the run.",
            "Supply what the checks below name, and verify again. A challenge that the prover does not \
             answer counts as failed.",
        ),
    }
}

/// The name of a check, and the question that it answers.
pub(super) fn subject(subject: Subject) -> (&'static str, &'static str) {
    match subject {
        Subject::Encoding => ("encoding", "Is the file one intact transcript?"),
        Subject::Signature => ("signature", "Did the holder of the key sign it?"),
        Subject::Trust => ("trust", "May that key sign for this model at the claimed time?"),
        Subject::Freshness => ("freshness", "Was it made for this request, and is not an old one?"),
        Subject::Model => ("model", "Are the model's files at hand the ones stated?"),
        Subject::Environment => {
            ("environment", "Are the stated GPU, kernels and algorithms ones that were measured?")
        }
        Subject::Prompt => ("prompt", "Does the prompt give the stated tokens?"),
        Subject::Execution => {
            ("execution", "Is every output that was computed again what was recorded?")
        }
        Subject::Sampling => ("sampling", "Do the generated tokens follow from the logits?"),
        Subject::Coverage => ("coverage", "How much was compared?"),
    }
}

/// What the transcript holds of the steps, and so what a comparison covers.
pub(super) fn trace(mode: TraceMode) -> &'static str {
    match mode {
        TraceMode::None => {
            "The transcript holds the logits of every pass and no output of a layer: layers are \
             computed again on the way to the logits, and checked through them."
        }
        TraceMode::Layers => {
            "The transcript holds the logits of every pass and a digest of the output of the \
             embedding and of every layer."
        }
        TraceMode::Cells => {
            "The transcript commits to the logits of every pass and, for every position, to what \
             each layer keeps and hands on, so that single layers of single positions can be \
             computed again by themselves."
        }
        TraceMode::Steps => {
            "The transcript holds the logits of every pass and a digest of the output of every \
             step."
        }
    }
}
