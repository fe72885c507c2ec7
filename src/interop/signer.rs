//! Who exported: the signature first, then what is said, then whether they may.

use super::InteropError;
use super::dsse::{Envelope, Signature};
use super::in_toto::Statement;
use crate::transcript::key::{KeyId, PublicKey};
use crate::verify::trust::{Claim, Distrust, Role, TrustStore, unix_time};

/// An exporter who is trusted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exporter {
    /// Name in the trust file.
    pub name: String,
    /// Their key.
    pub key: PublicKey,
    /// The role in which the key is trusted: prover or auditor.
    pub role: Role,
}

/// Why an export is not accepted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NotTrusted {
    /// Not a well-formed export.
    #[error(transparent)]
    Malformed(#[from] InteropError),
    /// No signature is one of a key that is trusted for it.
    #[error(transparent)]
    Distrust(#[from] Distrust),
    /// No signature is one of any key in the trust store.
    #[error("none of {count} signatures is valid under a key of the trust store")]
    NoSigner {
        /// How many signatures there are.
        count: usize,
    },
    /// The key is for something else.
    #[error("the key of {name:?} is trusted as {found}, not as prover or auditor")]
    Role {
        /// Name of the entry.
        name: String,
        /// Role of the entry.
        found: &'static str,
    },
}

/// Finds out who exported, and reads what they exported.
///
/// One signature by a trusted key is enough; signatures of others are left alone. The key
/// may be a prover's or an auditor's: both have transcripts to pass on, and an
/// export claims no more than that somebody copied one. Its window is held against the
/// time of the export.
///
/// # Errors
/// [`NotTrusted`]
pub fn exporter(
    envelope: &Envelope,
    store: &TrustStore,
) -> Result<(Exporter, Statement), NotTrusted> {
    let keys = authentic(envelope, store)?;
    // Only now is what the payload says worth reading.
    let statement = Statement::from_json(&envelope.payload)?;
    let mut refusal = NotTrusted::NoSigner { count: envelope.signatures.len() };
    for key in keys {
        match judge(store, &key, &statement) {
            Ok(exporter) => return Ok((exporter, statement)),
            Err(reason) => refusal = reason,
        }
    }
    Err(refusal)
}

/// Keys of the trust store by which a signature is.
fn authentic(envelope: &Envelope, store: &TrustStore) -> Result<Vec<PublicKey>, NotTrusted> {
    let mut keys = Vec::new();
    for signature in &envelope.signatures {
        let signed_by = |key: &PublicKey| envelope.is_signed_by(signature, key);
        let named = store.keys().iter().map(|entry| entry.key).filter(|key| may_be(signature, key));
        keys.extend(named.into_iter().find(signed_by));
    }
    if !keys.is_empty() {
        return Ok(keys);
    }
    // Of one signature that names its key more can be said.
    if let [only] = envelope.signatures.as_slice()
        && let Some(id) = key_id(only)
    {
        store.signer(id, |key| envelope.is_signed_by(only, key))?;
    }
    Err(NotTrusted::NoSigner { count: envelope.signatures.len() })
}

/// Whether the hint leaves this key possible.
fn may_be(signature: &Signature, key: &PublicKey) -> bool {
    signature.key_id.is_empty() || signature.key_id == key.id().to_string()
}

fn key_id(signature: &Signature) -> Option<KeyId> {
    let mut bytes = [0; 8];
    hex::decode_to_slice(&signature.key_id, &mut bytes).ok()?;
    Some(KeyId(bytes))
}

fn judge(
    store: &TrustStore,
    key: &PublicKey,
    statement: &Statement,
) -> Result<Exporter, NotTrusted> {
    let predicate = &statement.predicate;
    let time = unix_time(&predicate.exporter.time)
        .map_err(|reason| InteropError::Statement { reason: format!("exporter.time: {reason}") })?;
    let mut refusal = None;
    for role in [Role::Prover, Role::Auditor] {
        let claim = Claim {
            model_name: &predicate.model.name,
            model_digest: predicate.model.manifest_digest.0,
            time,
            role,
        };
        match store.judge(key, &claim) {
            Ok(entry) => return Ok(Exporter { name: entry.name.clone(), key: *key, role }),
            Err(Distrust::WrongRole { name, found, .. }) => {
                refusal = refusal.or(Some(NotTrusted::Role { name, found }));
            }
            // The other role's refusal says only that the key is not in that role.
            Err(reason) => refusal = Some(reason.into()),
        }
    }
    Err(refusal.unwrap_or(NotTrusted::NoSigner { count: 1 }))
}
