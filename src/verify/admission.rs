//! What comes before the model: encoding, freshness, signature, trust.

use super::report::{Report, Subject, Verdict};
use super::trust::Distrust;
use super::{Anchor, Claim, Input, Verified, claims};
use crate::transcript::statement::Statement;
use crate::transcript::{RefusalClass, Transcript};

/// A transcript whose signer is worth the work of looking further.
pub(super) struct Admitted {
    pub(super) report: Report,
    pub(super) transcript: Transcript,
    pub(super) claims: Vec<Claim>,
}

/// Parses and authenticates a file; the report's end if nothing may follow.
pub(super) fn admit(
    file: Input,
    anchor: &Anchor<'_>,
    nonce: Option<&[u8]>,
) -> Result<Admitted, Box<Verified>> {
    let refused = |report, transcript| {
        let (text, claims, digests, layers) = (None, Vec::new(), None, None);
        Box::new(Verified { report, transcript, draw: None, text, claims, digests, layers })
    };
    let mut report = Report::default();
    let transcript = match file.read() {
        Ok(transcript) => transcript,
        Err(error) => {
            match error.class() {
                RefusalClass::Malformed | RefusalClass::Untrusted => {
                    report.fail(Subject::Encoding, Verdict::Malformed, error.to_string());
                }
                RefusalClass::Unreadable => {
                    report.undecided(Subject::Encoding, error.to_string());
                }
            }
            return Err(refused(report.close("not reached: the file is not a transcript"), None));
        }
    };
    let statement = transcript.statement();
    report.pass(Subject::Encoding, encoding(&transcript));
    check_freshness(&mut report, statement, nonce);
    if !check_signer(&mut report, &transcript, anchor) {
        let report = report.close("not reached: the signer is not trusted");
        return Err(refused(report, Some(transcript)));
    }
    let claims = match anchor {
        Anchor::Store(_) | Anchor::Countersigned(..) => claims::claims(statement),
        // Nobody's word.
        Anchor::Anyone | Anchor::Nothing => Vec::new(),
    };
    Ok(Admitted { report, transcript, claims })
}

/// What the file is.
fn encoding(transcript: &Transcript) -> String {
    let stated = &transcript.statement().sections;
    let withheld: Vec<&str> = stated
        .iter()
        .map(|section| section.kind.as_str())
        .filter(|kind| transcript.withholds(kind))
        .collect();
    let length = transcript.statement_bytes().len();
    let held = stated.len() - withheld.len();
    let mut detail = format!("statement of {length} bytes");
    if held > 0 {
        detail += &format!(", {held} sections match their commitments");
    }
    if !withheld.is_empty() {
        detail += &format!(", {} withheld", withheld.join(" and "));
    }
    detail
}

fn check_freshness(report: &mut Report, statement: &Statement, wanted: Option<&[u8]>) {
    let stated = statement.nonce.as_deref();
    let hex = |nonce: Option<&[u8]>| nonce.map_or_else(|| "none".into(), hex::encode);
    match wanted {
        None => report.not_asked(Subject::Freshness, "no nonce was asked for: a replay would pass"),
        Some(_) if wanted == stated => report.pass(Subject::Freshness, "the nonce matches"),
        Some(_) => report.fail(
            Subject::Freshness,
            Verdict::Untrusted,
            format!("nonce {} was asked for, the transcript has {}", hex(wanted), hex(stated)),
        ),
    }
}

/// Returns whether what follows is worth executing.
fn check_signer(report: &mut Report, transcript: &Transcript, anchor: &Anchor<'_>) -> bool {
    let key_id = transcript.key_id();
    let (store, countersignatures) = match *anchor {
        Anchor::Store(store) => (store, &[][..]),
        Anchor::Countersigned(store, files) => (store, files),
        Anchor::Nothing => {
            let reason = "no trust file was given";
            report.undecided(Subject::Signature, format!("{reason}: key {key_id} is not known"));
            report.fail(Subject::Trust, Verdict::Untrusted, reason);
            return false;
        }
        Anchor::Anyone => {
            let reason = "skipped: any key was to be accepted";
            report.undecided(Subject::Signature, reason);
            report.fail(Subject::Trust, Verdict::Untrusted, reason);
            return true;
        }
    };
    match store.authenticate(transcript) {
        Ok(key) => {
            report.pass(Subject::Signature, format!("Ed25519, key {key_id}"));
            let signer = format!("{:?} may sign as prover", key.name);
            match store.check_policy(transcript, countersignatures) {
                Ok(more) => {
                    report.pass(Subject::Trust, signer + &more);
                    return true;
                }
                Err(why) => report.fail(Subject::Trust, Verdict::Untrusted, signer + &why),
            }
        }
        Err(reason @ Distrust::BadSignature { .. }) => {
            report.fail(Subject::Signature, Verdict::Untrusted, reason.to_string());
        }
        Err(reason @ Distrust::UnknownKey { .. }) => {
            report.undecided(Subject::Signature, format!("key {key_id} is not known"));
            report.fail(Subject::Trust, Verdict::Untrusted, reason.to_string());
        }
        Err(
            reason @ (Distrust::Revoked { .. }
            | Distrust::WrongRole { .. }
            | Distrust::OutOfWindow { .. }
            | Distrust::OtherModel { .. }),
        ) => {
            report.pass(Subject::Signature, format!("Ed25519, key {key_id}"));
            report.fail(Subject::Trust, Verdict::Untrusted, reason.to_string());
        }
    }
    false
}
