//! Whose the entries of a custody log are.
//!
//! An entry says what its signer did with a transcript, not that a model computed
//! something, so a key of any role may sign one, for any model. Only to have verified or
//! counter-signed is an auditor's to say.

use super::{Distrust, Role, TrustStore, TrustedKey};
use crate::transcript::custody::{Action, Entry, Logged};
use crate::transcript::key::PublicKey;

impl TrustStore {
    /// Finds who signed an entry and whether they may: signature first, then revocation,
    /// role and window.
    ///
    /// # Errors
    /// [`Distrust`]
    pub fn authenticate_entry(&self, logged: &Logged) -> Result<&TrustedKey, Distrust> {
        let envelope = &logged.envelope;
        let signer = self.signer(envelope.key_id, |key| envelope.is_signed_by(key))?;
        self.may_log(&signer.key, &logged.entry)
    }

    /// Says whether a key may sign this entry.
    ///
    /// # Errors
    /// [`Distrust`]; with several entries of the key, the reason of the last one.
    pub fn may_log(&self, key: &PublicKey, entry: &Entry) -> Result<&TrustedKey, Distrust> {
        self.allowing(key, |trusted| {
            match entry.action {
                Action::Verified | Action::Countersigned => trusted.has_role(Role::Auditor)?,
                Action::Received | Action::HandedOver | Action::Note => {}
            }
            trusted.is_in_window(entry.time)
        })
    }
}
