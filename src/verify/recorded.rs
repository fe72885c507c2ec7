//! What a transcript says of outputs: each by itself where it holds them, all together
//! where it withholds them.
//!
//! A section that is withheld is still committed to: the verifier computes every leaf
//! and compares the root. Then a difference shows, but not where it is.

use std::collections::{BTreeMap, HashMap};

use super::environment::Refusal;
use super::report::Verdict;
use crate::num::{Digest, Hashing, Tensor, sha256, sha256_of};
use crate::plan::{Pass, Plan, Step};
use crate::transcript::cells::{self, Layout};
use crate::transcript::leaf::{LeafHeader, logits_header};
use crate::transcript::statement::{LogitsMode, TraceMode};
use crate::transcript::{LOGITS_SECTION, TRACE_SECTION, Transcript, merkle};

/// What is recorded of one output.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Expected {
    /// The row that is meant; `None` if all are.
    pub(super) row: Option<usize>,
    /// Its SHA-256, where that is known.
    pub(super) digest: Option<Digest>,
    /// Its bytes, where they are known.
    pub(super) bytes: Option<Vec<u8>>,
}

impl Expected {
    /// Whether an output is the recorded one.
    pub(super) fn is(&self, output: &Tensor) -> bool {
        let own = match self.row {
            Some(row) => output.rows(row..row + 1),
            None => Some(output.clone()),
        };
        own.is_some_and(|own| {
            self.digest.is_none_or(|digest| own.content_digest() == digest)
                && self.bytes.as_ref().is_none_or(|bytes| own.is_le_bytes(bytes))
        })
    }
}

/// What a transcript says of outputs.
#[derive(Debug)]
pub(super) struct Recorded<'a> {
    transcript: &'a Transcript,
    traced: Traced,
    /// What is computed of a section that is withheld: rows of logits by pass.
    rows: BTreeMap<usize, Leaf>,
    /// The same of the trace, by number.
    leaves: BTreeMap<u64, Leaf>,
    /// The bytes of the withheld rows of logits, in order.
    values: Hashing,
}

/// A leaf that was computed.
#[derive(Debug)]
struct Leaf {
    hash: Digest,
    content: Digest,
}

/// Which outputs the trace has.
#[derive(Debug)]
enum Traced {
    Nothing,
    /// Whole outputs: their numbers, by pass and step.
    Outputs(HashMap<(usize, usize), u64>),
    /// Rows.
    Rows(Layout),
}

impl<'a> Recorded<'a> {
    /// Binds the trace to its root, as far as it is there. Names and shapes are the
    /// verifier's own, so a leaf cannot be moved.
    pub(super) fn new(transcript: &'a Transcript, plans: &[Plan]) -> Result<Self, Refusal> {
        let trace = &transcript.statement().trace;
        let malformed = |detail: String| Refusal { leads_to: Verdict::Malformed, detail };
        let (traced, leaves) = match trace.mode {
            TraceMode::None => (Traced::Nothing, Some(Vec::new())),
            TraceMode::Layers | TraceMode::Steps => {
                let (mut numbers, mut leaves) = (HashMap::new(), Some(Vec::new()));
                for plan in plans {
                    let steps = plan.steps.iter().enumerate();
                    for (index, step) in steps.filter(|(_, step)| trace.mode.includes(step)) {
                        let number = numbers.len() as u64;
                        numbers.insert((plan.pass.index, index), number);
                        let content = transcript.trace_digest(number);
                        let leaf = content.map(|content| hash(&plan.pass, index, step, content));
                        leaves = leaves.zip(leaf).map(|(mut all, leaf)| {
                            all.push(leaf);
                            all
                        });
                    }
                }
                (Traced::Outputs(numbers), leaves)
            }
            TraceMode::Cells => {
                let layout = Layout::new(plans);
                let leaves = layout.hashes(|index| transcript.trace_digest(index));
                (Traced::Rows(layout), leaves)
            }
        };
        let recorded = Self {
            transcript,
            traced,
            rows: BTreeMap::new(),
            leaves: BTreeMap::new(),
            values: Hashing::default(),
        };
        let due = recorded.due_of_trace();
        if due != trace.count {
            return Err(malformed(format!("the trace has {} leaves, {due} due", trace.count)));
        }
        if !transcript.withholds(TRACE_SECTION) {
            let root = leaves.filter(|leaves| !leaves.is_empty()).map(|all| merkle::root(&all));
            if root != trace.root {
                return Err(malformed("the trace section does not match its root".into()));
            }
        }
        Ok(recorded)
    }

    /// How many outputs are committed to.
    pub(super) fn due(&self) -> u64 {
        self.transcript.statement().logits.count + self.due_of_trace()
    }

    fn due_of_trace(&self) -> u64 {
        match &self.traced {
            Traced::Nothing => 0,
            Traced::Outputs(numbers) => numbers.len() as u64,
            Traced::Rows(layout) => layout.count(),
        }
    }

    /// Whether the trace has this output, or rows of it.
    pub(super) fn traces(&self, pass: &Pass, index: usize, step: &Step) -> bool {
        match &self.traced {
            Traced::Nothing => false,
            Traced::Outputs(numbers) => numbers.contains_key(&(pass.index, index)),
            Traced::Rows(_) => cells::is_leaf(step),
        }
    }

    /// Compares a pass's row of logits; returns what is recorded of it if that is
    /// something else.
    pub(super) fn logits(&mut self, pass: &Pass, row: &Tensor) -> Option<Expected> {
        let content = row.content_digest();
        if self.transcript.withholds(LOGITS_SECTION) {
            let logits = &self.transcript.statement().logits;
            let (position, vocab) = ((pass.start + pass.tokens - 1) as u64, [logits.vocab]);
            let header = logits_header(pass.index as u64, position, logits.dtype, &vocab);
            self.rows.insert(pass.index, Leaf { hash: header.hash(content), content });
            // The run shows the passes of a step in their order.
            self.values.update(&row.to_le_bytes());
            return None;
        }
        let digest = self.transcript.logits_digest(pass.index as u64);
        if digest == Some(content) {
            return None;
        }
        // The bytes locate the element, a digest cannot.
        let bytes = self.transcript.logits_row(pass.index as u64);
        Some(Expected { row: None, digest, bytes: bytes.map(std::borrow::Cow::into_owned) })
    }

    /// Compares a traced output; returns how many leaves were equal, and what is
    /// recorded of the first that is not.
    pub(super) fn output(
        &mut self,
        pass: &Pass,
        index: usize,
        step: &Step,
        output: &Tensor,
    ) -> (u64, Option<Expected>) {
        let withheld = self.transcript.withholds(TRACE_SECTION);
        let recorded = |number: u64| self.transcript.trace_digest(number);
        match &self.traced {
            Traced::Nothing => (0, None),
            Traced::Outputs(numbers) => {
                let Some(&number) = numbers.get(&(pass.index, index)) else { return (0, None) };
                let content = output.content_digest();
                if withheld {
                    let hash = hash(pass, index, step, content);
                    self.leaves.insert(number, Leaf { hash, content });
                } else if recorded(number) != Some(content) {
                    let digest = recorded(number);
                    return (0, Some(Expected { row: None, digest, bytes: None }));
                }
                (1, None)
            }
            Traced::Rows(layout) => {
                let width = (step.columns * step.dtype.size_bytes()).max(1);
                let mut equal = 0;
                for (row, bytes) in output.to_le_bytes().chunks(width).enumerate() {
                    let Some(number) = layout.index(pass.start + row, index) else { continue };
                    let content = sha256(&[bytes]);
                    if withheld {
                        let hash = layout.hash(number, content);
                        self.leaves.extend(hash.map(|hash| (number, Leaf { hash, content })));
                    } else if recorded(number) != Some(content) {
                        let digest = recorded(number);
                        return (equal, Some(Expected { row: Some(row), digest, bytes: None }));
                    }
                    equal += 1;
                }
                (equal, None)
            }
        }
    }

    /// After everything was computed: whether what is withheld is what the statement
    /// commits to, by its root and by the digest of the section.
    ///
    /// # Errors
    /// A sentence that says what is not.
    pub(super) fn check_withheld(&self) -> Result<(), String> {
        let stated = self.transcript.statement().trace.root;
        self.check_logits()?;
        let own = || sha256_of(self.leaves.values().map(|leaf| &leaf.content.0[..]));
        self.check(TRACE_SECTION, stated, self.leaves.values(), &own)
    }

    /// As [`Self::check_withheld`], of the logits alone.
    pub(super) fn check_logits(&self) -> Result<(), String> {
        let logits = &self.transcript.statement().logits;
        let own = || match logits.mode {
            LogitsMode::Full => self.values.clone().finish(),
            LogitsMode::Hash => sha256_of(self.rows.values().map(|leaf| &leaf.content.0[..])),
        };
        self.check(LOGITS_SECTION, Some(logits.root), self.rows.values(), &own)
    }

    fn check<'l>(
        &self,
        kind: &str,
        stated: Option<Digest>,
        leaves: impl Iterator<Item = &'l Leaf>,
        contents: &dyn Fn() -> Digest,
    ) -> Result<(), String> {
        if !self.transcript.withholds(kind) {
            return Ok(());
        }
        let leaves: Vec<Digest> = leaves.map(|leaf| leaf.hash).collect();
        let own = merkle::root(&leaves);
        if stated != Some(own) {
            let stated = stated.map_or("none".into(), |root| root.to_string());
            return Err(format!(
                "the outputs of section {kind}, which the file withholds, are others than those \
                 computed: root {stated} in the transcript, {own} computed; where, the file that the \
                 prover kept tells (run's .kept file)"
            ));
        }
        let sections = &self.transcript.statement().sections;
        let stated = sections.iter().find(|section| section.kind == kind).map(|own| own.sha256);
        let own = contents();
        if stated != Some(own) {
            let stated = stated.map_or("none".into(), |digest| digest.to_string());
            return Err(format!(
                "section {kind}, which the file withholds, has SHA-256 {own} by its root, the \
                 transcript says {stated}: no such section exists"
            ));
        }
        Ok(())
    }

    /// The leaves, if the trace is one of cells.
    pub(super) fn cells(&self) -> Option<&Layout> {
        match &self.traced {
            Traced::Rows(layout) => Some(layout),
            Traced::Nothing | Traced::Outputs(_) => None,
        }
    }

    /// Sections that the file withholds.
    pub(super) fn withheld(&self) -> Vec<&'static str> {
        let kinds = [LOGITS_SECTION, TRACE_SECTION];
        kinds.into_iter().filter(|kind| self.transcript.withholds(kind)).collect()
    }
}

fn hash(pass: &Pass, index: usize, step: &Step, content: Digest) -> Digest {
    LeafHeader {
        kind: TRACE_SECTION,
        pass: pass.index as u64,
        index: index as u64,
        name: &step.name,
        dtype: step.dtype,
        shape: &[step.rows as u64, step.columns as u64],
    }
    .hash(content)
}
