//! What was executed and what is committed to.

use crate::num::{Digest, Dtype};
use crate::transcript::wire::{record, words};

record! {
    /// A profile or a catalogue: its id, and the digest that pins its contents.
    Artifact {
        /// Id, for instance `h200`.
        1 => id: String,
        /// SHA-256 of the file.
        2 => digest: Digest,
    }
}

record! {
    /// How tokens were chosen.
    Sampling {
        /// The rule, for instance `greedy`.
        1 => rule: String,
        /// Most tokens to generate.
        2 => max_new_tokens: u64,
        /// Token ids that end the generation, ascending.
        3 => stop_ids: Vec<u32>,
        /// The sampling fields of the model's generation config as text:
        /// recorded, not applied.
        4 => recorded: String,
    }
}

words! {
    /// Why generation ended.
    FinishReason {
        /// A stop token was generated.
        Stop => "stop",
        /// The largest number of new tokens was reached.
        Length => "length",
    }
}

record! {
    #[derive(PartialOrd, Ord)]
    /// A cuBLASLt algorithm as its configuration attributes describe it.
    Algorithm {
        /// `CUBLASLT_ALGO_CONFIG_ID`.
        1 => id: u32,
        /// `CUBLASLT_ALGO_CONFIG_TILE_ID`.
        2 => tile: u32,
        /// `CUBLASLT_ALGO_CONFIG_STAGES_ID`.
        3 => stages: u32,
        /// `CUBLASLT_ALGO_CONFIG_SPLITK_NUM`.
        4 => split_k: u32,
        /// `CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME`.
        5 => reduction_scheme: u32,
        /// `CUBLASLT_ALGO_CONFIG_CTA_SWIZZLING`.
        6 => swizzle: u32,
        /// `CUBLASLT_ALGO_CONFIG_CUSTOM_OPTION`.
        7 => custom_option: u32,
        /// `CUBLASLT_ALGO_CONFIG_INNER_SHAPE_ID`.
        8 => inner_shape: u32,
        /// `CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID`.
        9 => cluster_shape: u32,
        /// Workspace that the heuristic asked for (bytes).
        10 => workspace_bytes: u64,
    }
}

record! {
    #[derive(PartialOrd, Ord)]
    /// One distinct dispatch: an operation at a shape, and how it was computed.
    DispatchRow {
        /// Operation, for instance `linear`.
        1 => op: String,
        /// Rows of the result.
        2 => m: u64,
        /// Columns of the result.
        3 => n: u64,
        /// Length of the dot products.
        4 => k: u64,
        /// The recipe in its canonical text.
        5 => recipe: String,
        /// The library's algorithm; absent where no library was asked.
        6 => algorithm: Option<Algorithm>,
    }
}

impl DispatchRow {
    /// The row without its algorithm: what a plan tells of it.
    pub fn shape(&self) -> Self {
        Self { algorithm: None, ..self.clone() }
    }
}

record! {
    #[derive(Copy)]
    /// Forward passes of several sequences that were launched together.
    Batch {
        /// How many, the pass itself included; at least two.
        1 => passes: u64,
        /// Tokens that they take, all together.
        2 => rows: u64,
    }
}

record! {
    /// One forward pass.
    Pass {
        /// Position of its first token.
        1 => start_position: u64,
        /// How many tokens it takes.
        2 => token_count: u64,
        /// Digest of its plan, which the verifier builds for itself.
        3 => plan_digest: Digest,
        /// How many of its last positions have their logits committed to: one
        /// for a pass that chooses a token, none for an earlier part of a prompt.
        4 => logits_rows: u64,
        /// What it was launched together with; absent if it ran alone.
        5 => batch: Option<Batch>,
    }
}

words! {
    /// What the logits section holds.
    LogitsMode {
        /// Every row's bytes.
        Full => "full",
        /// Every row's SHA-256.
        Hash => "hash",
    }
}

record! {
    /// Commitment to the logits.
    Logits {
        /// What the section holds; the root is the same in both modes.
        1 => mode: LogitsMode,
        /// Rows: one per position committed to.
        2 => count: u64,
        /// Elements of a row.
        3 => vocab: u64,
        /// Element type.
        4 => dtype: Dtype,
        /// RFC 9162 root over the rows' leaves.
        5 => root: Digest,
    }
}

words! {
    /// Which step outputs are committed to.
    TraceMode {
        /// None.
        None => "none",
        /// The output of each layer.
        Layers => "layers",
        /// The output of every step.
        Steps => "steps",
        /// At every position what each layer keeps and hands on, each row by itself, so
        /// that single ones can be opened.
        Cells => "cells",
    }
}

record! {
    /// Commitment to the outputs of steps.
    Trace {
        /// Which outputs.
        1 => mode: TraceMode,
        /// Leaves.
        2 => count: u64,
        /// RFC 9162 root over the leaves; absent exactly if the mode is `none`.
        3 => root: Option<Digest>,
    }
}

record! {
    /// A byte string that follows the statement in the file.
    Section {
        /// `logits` or `trace`.
        1 => kind: String,
        /// Length of its contents (bytes).
        2 => len_bytes: u64,
        /// Leaves of its tree.
        3 => leaf_count: u64,
        /// SHA-256 of its contents, so that damage shows without the model.
        4 => sha256: Digest,
    }
}
