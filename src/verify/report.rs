//! The report: a list of checks, and the one word derived from it.

use serde::{Deserialize, Serialize};

/// What the report says in one word. Exit codes: [`Verdict::exit_code`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
#[non_exhaustive]
pub enum Verdict {
    /// Signer trusted, every check exact.
    Verified,
    /// Authentic, but re-execution or sampling differs.
    Mismatch,
    /// Signature bad, key not trusted, or no trust given.
    Untrusted,
    /// Not a valid transcript, or a file of the model's folder is not a valid model file.
    Malformed,
    /// Cannot be decided here: something is missing or not known.
    Incomplete,
    /// Everything that was drawn is exact, but not everything was drawn.
    Partial,
}

impl Verdict {
    /// The process's exit code.
    pub fn exit_code(self) -> u8 {
        match self {
            Self::Verified => 0,
            Self::Mismatch => 1,
            Self::Untrusted => 3,
            Self::Malformed => 4,
            Self::Incomplete => 5,
            Self::Partial => 6,
        }
    }

    /// Whether nothing speaks against what was checked, and what was asked for was.
    pub fn holds(self) -> bool {
        match self {
            Self::Verified | Self::Partial => true,
            Self::Mismatch | Self::Untrusted | Self::Malformed | Self::Incomplete => false,
        }
    }

    /// The one verdict of several: the first of them in the order that decides within
    /// a report ([`Report::verdict`]). `None` of none.
    pub fn of_several(verdicts: impl IntoIterator<Item = Self>) -> Option<Self> {
        let rank = |verdict: &Self| match verdict {
            Self::Malformed => 0,
            Self::Untrusted => 1,
            Self::Mismatch => 2,
            Self::Incomplete => 3,
            Self::Partial => 4,
            Self::Verified => 5,
        };
        verdicts.into_iter().min_by_key(rank)
    }

    /// The word as printed.
    pub fn word(self) -> &'static str {
        match self {
            Self::Verified => "VERIFIED",
            Self::Mismatch => "MISMATCH",
            Self::Untrusted => "UNTRUSTED",
            Self::Malformed => "MALFORMED",
            Self::Incomplete => "INCOMPLETE",
            Self::Partial => "PARTIAL",
        }
    }
}

/// What a check is about, in the order of checking.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Subject {
    /// One encoding, all fields present, sections match their commitments.
    Encoding,
    /// The signature is the signer's.
    Signature,
    /// The signer is trusted for this model at the claimed time.
    Trust,
    /// The nonce is the one asked for.
    Freshness,
    /// The model's files are those of the manifest.
    Model,
    /// Profile, catalogue, kernels, dispatch rows and plans are known and agree.
    Environment,
    /// The prompt's bytes give the stated token ids.
    Prompt,
    /// Every recorded output equals the re-execution's.
    Execution,
    /// Every chosen token and the end follow the stated rule.
    Sampling,
    /// How much was compared.
    Coverage,
}

/// How a check ended.
#[expect(clippy::large_enum_variant, reason = "a report has ten, one of them with a finding")]
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum Outcome {
    /// It holds; the text says what was seen.
    Passed {
        /// What was seen.
        detail: String,
    },
    /// What was drawn holds; it is not everything.
    Partial {
        /// How much was drawn, and what that shows.
        detail: String,
    },
    /// It does not hold.
    Failed {
        /// The verdict this failure alone leads to.
        leads_to: Verdict,
        /// What failed, with the object and the numbers.
        detail: String,
        /// Where outputs first differ, for [`Subject::Execution`].
        #[serde(skip_serializing_if = "Option::is_none")]
        finding: Option<Finding>,
    },
    /// There was nothing to check; decides nothing.
    NotAsked {
        /// Why.
        reason: String,
    },
    /// It was not reached or cannot be decided.
    NotDecided {
        /// Why.
        reason: String,
    },
}

/// The first output that differs.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Finding {
    /// Pass, 0 is the prefill.
    pub pass: usize,
    /// Position of the token whose row it is, where that is known.
    pub position: Option<usize>,
    /// Layer, if the step belongs to one.
    pub layer: Option<usize>,
    /// Index of the step in its plan.
    pub step_index: usize,
    /// Name of the step.
    pub step: String,
    /// The step's recipe.
    pub recipe: String,
    /// What differs.
    pub difference: Difference,
    /// Which undeclared way of computing gives the recorded bits, or that none of those
    /// tried does; nothing if none was tried. It decides nothing.
    pub diagnosis: Option<String>,
}

/// How two outputs differ.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Difference {
    /// The transcript holds the values.
    Element {
        /// Row of the first differing element.
        row: usize,
        /// Its column.
        column: usize,
        /// Its bits in the transcript, hex.
        recorded: String,
        /// Its bits as computed, hex.
        computed: String,
        /// How many elements of this output differ.
        differing: usize,
        /// Elements of this output.
        elements: usize,
    },
    /// The transcript holds more or fewer bytes than the output has.
    Length {
        /// Bytes in the transcript.
        recorded: usize,
        /// Bytes of the computed output.
        computed: usize,
    },
    /// The transcript holds a digest only.
    Digest {
        /// Digest in the transcript.
        recorded: String,
        /// Digest of the computed output.
        computed: String,
    },
}

impl std::fmt::Display for Finding {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "pass {}", self.pass)?;
        if let Some(layer) = self.layer {
            write!(f, ", layer {layer}")?;
        }
        write!(f, ", step {} {} ({})", self.step_index, self.step, self.recipe)?;
        if let Some(position) = self.position {
            write!(f, " at position {position}")?;
        }
        f.write_str(": ")?;
        match &self.difference {
            Difference::Element { row, column, recorded, computed, differing, elements } => write!(
                f,
                "element [{row}, {column}] is {} in the transcript, {} computed{}; \
                 {differing} of {elements} elements differ",
                valued(recorded),
                valued(computed),
                // Else two different words are shown as the same thing.
                if is_nan(recorded) && is_nan(computed) { NAN_DIFFERS } else { "" }
            ),
            Difference::Length { recorded, computed } => {
                write!(f, "{recorded} bytes in the transcript, {computed} computed")
            }
            Difference::Digest { recorded, computed } => {
                write!(f, "digest is {recorded} in the transcript, {computed} computed")
            }
        }
    }
}

/// The bits of an element, and beside them the number where they are bfloat16
/// (four digits; every other type has eight). For readers only: what is compared
/// is the bits.
pub fn valued(bits: &str) -> String {
    match u16::from_str_radix(bits, 16) {
        Ok(word) if bits.len() == 4 => format!("{bits} ({})", half::bf16::from_bits(word)),
        Ok(_) | Err(_) => bits.to_owned(),
    }
}

/// Whether the bits of an element are a bfloat16 NaN.
fn is_nan(bits: &str) -> bool {
    bits.len() == 4
        && u16::from_str_radix(bits, 16).is_ok_and(|word| half::bf16::from_bits(word).is_nan())
}

const NAN_DIFFERS: &str = ": NaN sign or payload differs";

/// One line of the report.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Check {
    /// What it is about.
    pub subject: Subject,
    /// How it ended.
    #[serde(flatten)]
    pub outcome: Outcome,
}

/// The result of a verification: every check, passed ones too.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Default)]
pub struct Report {
    /// The checks, in order.
    pub checks: Vec<Check>,
}

impl Report {
    /// Adds a check that holds.
    pub fn pass(&mut self, subject: Subject, detail: impl Into<String>) {
        self.push(subject, Outcome::Passed { detail: detail.into() });
    }

    /// Adds a check that does not hold.
    pub fn fail(&mut self, subject: Subject, leads_to: Verdict, detail: impl Into<String>) {
        self.push(subject, Outcome::Failed { leads_to, detail: detail.into(), finding: None });
    }

    /// Adds a check that nobody asked for.
    pub fn not_asked(&mut self, subject: Subject, reason: impl Into<String>) {
        self.push(subject, Outcome::NotAsked { reason: reason.into() });
    }

    /// Adds a check that was not decided.
    pub fn undecided(&mut self, subject: Subject, reason: impl Into<String>) {
        self.push(subject, Outcome::NotDecided { reason: reason.into() });
    }

    /// Adds a check, in place of an earlier one of the same subject that did not
    /// fail: a failure is never taken back.
    pub fn push(&mut self, subject: Subject, outcome: Outcome) {
        if self.failures().any(|failed| failed == subject) {
            return;
        }
        self.checks.retain(|check| check.subject != subject);
        self.checks.push(Check { subject, outcome });
    }

    /// Marks every subject that has no check yet as not reached.
    pub fn close(mut self, reason: &str) -> Self {
        for subject in SUBJECTS {
            if !self.checks.iter().any(|check| check.subject == subject) {
                self.undecided(subject, reason);
            }
        }
        self.checks.sort_by_key(|check| check.subject);
        self
    }

    /// What failed, in the order of the checks.
    pub fn failures(&self) -> impl Iterator<Item = Subject> {
        let failed = |check: &&Check| matches!(check.outcome, Outcome::Failed { .. });
        self.checks.iter().filter(failed).map(|check| check.subject)
    }

    /// The one word.
    ///
    /// A failed check decides by its own verdict; of several, the first in this
    /// order does: MALFORMED (nothing else can be claimed), UNTRUSTED (not known
    /// whose claim it is), MISMATCH (one difference is proof), INCOMPLETE. A
    /// check that was not decided makes the verdict INCOMPLETE, one that holds for a
    /// draw PARTIAL, never VERIFIED.
    pub fn verdict(&self) -> Verdict {
        let order = [Verdict::Malformed, Verdict::Untrusted, Verdict::Mismatch];
        for verdict in order {
            let fails = |check: &Check| match &check.outcome {
                Outcome::Failed { leads_to, .. } => *leads_to == verdict,
                Outcome::Passed { .. }
                | Outcome::Partial { .. }
                | Outcome::NotAsked { .. }
                | Outcome::NotDecided { .. } => false,
            };
            if self.checks.iter().any(fails) {
                return verdict;
            }
        }
        let partial = |check: &Check| matches!(check.outcome, Outcome::Partial { .. });
        let passed = |check: &Check| {
            matches!(check.outcome, Outcome::Passed { .. } | Outcome::NotAsked { .. })
                || partial(check)
        };
        let complete = SUBJECTS
            .iter()
            .all(|subject| self.checks.iter().any(|c| c.subject == *subject && passed(c)));
        if !complete || !self.checks.iter().all(passed) {
            Verdict::Incomplete
        } else if self.checks.iter().any(partial) {
            Verdict::Partial
        } else {
            Verdict::Verified
        }
    }
}

/// Every subject, in the order of checking.
pub const SUBJECTS: [Subject; 10] = [
    Subject::Encoding,
    Subject::Signature,
    Subject::Trust,
    Subject::Freshness,
    Subject::Model,
    Subject::Environment,
    Subject::Prompt,
    Subject::Execution,
    Subject::Sampling,
    Subject::Coverage,
];

#[cfg(test)]
mod tests {
    use super::*;

    fn all_passed() -> Report {
        let mut report = Report::default();
        for subject in SUBJECTS {
            report.pass(subject, "seen");
        }
        report
    }

    #[test]
    fn an_element_has_its_number_beside_the_bits_where_it_is_bf16() {
        let cases = [
            ("3f81", "3f81 (1.0078125)", "one step above 1"),
            ("8000", "8000 (-0)", "the sign of zero is visible"),
            ("7fff", "7fff (NaN)", "the canonical NaN"),
            ("ff80", "ff80 (-inf)", "an infinity"),
            ("00000007", "00000007", "a token id has eight digits"),
        ];
        for (bits, shown, reason) in cases {
            assert_eq!(valued(bits), shown, "{reason}");
        }
        let difference = Difference::Element {
            row: 0,
            column: 7,
            recorded: "3f81".into(),
            computed: "3f80".into(),
            differing: 1,
            elements: 8,
        };
        let (step, recipe) = ("lm_head".into(), "single_walk".into());
        let mut finding = Finding {
            pass: 0,
            position: Some(6),
            layer: None,
            step_index: 3,
            step,
            recipe,
            difference,
            diagnosis: None,
        };
        assert_eq!(
            finding.to_string(),
            "pass 0, step 3 lm_head (single_walk) at position 6: element [0, 7] is 3f81 (1.0078125) in the \
             transcript, 3f80 (1) computed; 1 of 8 elements differ"
        );
        if let Difference::Element { recorded, computed, .. } = &mut finding.difference {
            (*recorded, *computed) = ("7fc0".into(), "7fff".into());
        }
        assert!(
            finding.to_string().ends_with(
                "is 7fc0 (NaN) in the transcript, 7fff (NaN) computed: NaN sign or payload differs; \
                 1 of 8 elements differ"
            ),
            "{finding}"
        );
    }

    #[test]
    fn of_several_verdicts_the_worst_decides() {
        use Verdict::{Incomplete, Malformed, Mismatch, Partial, Untrusted, Verified};
        let order = [Malformed, Untrusted, Mismatch, Incomplete, Partial, Verified];
        for (index, &verdict) in order.iter().enumerate() {
            let rest = &order[index..];
            assert_eq!(Verdict::of_several(rest.iter().copied()), Some(verdict));
            assert_eq!(Verdict::of_several(rest.iter().rev().copied()), Some(verdict));
        }
        assert_eq!(Verdict::of_several([]), None);
    }

    #[test]
    fn only_a_full_list_of_passed_checks_verifies() {
        assert_eq!(all_passed().verdict(), Verdict::Verified);
        assert_eq!(Report::default().verdict(), Verdict::Incomplete);
        for missing in 0..SUBJECTS.len() {
            let mut report = all_passed();
            report.checks.remove(missing);
            assert_eq!(report.verdict(), Verdict::Incomplete);
            let closed = report.close("not reached");
            assert_eq!(closed.verdict(), Verdict::Incomplete);
            assert_eq!(closed.checks.len(), SUBJECTS.len());
        }
    }

    #[test]
    fn a_draw_never_verifies() {
        let mut report = all_passed();
        report.push(Subject::Coverage, Outcome::Partial { detail: "3 of 9 cells".into() });
        assert_eq!(report.verdict(), Verdict::Partial);
        report.undecided(Subject::Freshness, "not reached");
        assert_eq!(report.verdict(), Verdict::Incomplete);
        report.fail(Subject::Execution, Verdict::Mismatch, "one bit");
        assert_eq!(report.verdict(), Verdict::Mismatch);
    }

    #[test]
    fn a_subject_has_one_row_and_a_failure_stays() {
        let mut report = all_passed();
        report.fail(Subject::Encoding, Verdict::Malformed, "the trace does not match its root");
        report.pass(Subject::Encoding, "seen");
        let rows = report.checks.iter().filter(|check| check.subject == Subject::Encoding);
        let rows: Vec<_> = rows.collect();
        assert!(matches!(rows[..], [Check { outcome: Outcome::Failed { .. }, .. }]), "{rows:?}");
        assert_eq!(report.verdict(), Verdict::Malformed);
    }

    #[test]
    fn the_gravest_failure_names_the_verdict() {
        let mut report = all_passed();
        report.fail(Subject::Model, Verdict::Incomplete, "files differ");
        assert_eq!(report.verdict(), Verdict::Incomplete);
        report.fail(Subject::Execution, Verdict::Mismatch, "one bit");
        assert_eq!(report.verdict(), Verdict::Mismatch);
        report.fail(Subject::Trust, Verdict::Untrusted, "unknown key");
        assert_eq!(report.verdict(), Verdict::Untrusted);
        report.fail(Subject::Encoding, Verdict::Malformed, "trailing byte");
        assert_eq!(report.verdict(), Verdict::Malformed);
    }
}
