//! One `[[key]]` of a trust file, read and written.

use serde::Deserialize;
use toml::value::Datetime;

use super::{Models, Revocation, Role, TrustError, TrustedKey, time};
use crate::transcript::key::PublicKey;

impl TrustedKey {
    /// The entry as lines of a trust file; reading them gives the same entry.
    pub fn to_toml(&self) -> String {
        let quoted = |text: &str| toml::Value::from(text).to_string();
        let models = match &self.models {
            Models::Any => quoted("*"),
            Models::Listed(models) => toml::Value::from(models.clone()).to_string(),
        };
        let mut lines = vec![
            "[[key]]".to_owned(),
            format!("name = {}", quoted(&self.name)),
            format!("public_key = \"{}\"", self.key.to_hex()),
            format!("role = \"{}\"", self.role.word()),
            format!("models = {models}"),
        ];
        let limits = [("valid_from", self.valid_from), ("valid_until", self.valid_until)];
        for (field, limit) in limits {
            lines.extend(limit.map(|limit| format!("{field} = {}", time::rfc3339(limit))));
        }
        if let Some(Revocation { at, reason }) = &self.revocation {
            lines.push(format!("revoked_at = {}", time::rfc3339(*at)));
            lines.push(format!("reason = {}", quoted(reason)));
        }
        lines.join("\n")
    }

    /// Makes a key of an entry whose fields make sense.
    pub(super) fn from_entry(entry: Entry) -> Result<Self, TrustError> {
        let name = entry.name;
        let key = PublicKey::from_text(&entry.public_key)
            .map_err(|source| TrustError::Key { name: name.clone(), source })?;
        let field = |field, reason| TrustError::Field { name: name.clone(), field, reason };
        let seconds = |label, time: Option<Datetime>| {
            let seconds = time.as_ref().map(time::unix_seconds).transpose();
            seconds.map_err(|reason| field(label, reason))
        };
        let valid_from = seconds("valid_from", entry.valid_from)?;
        let valid_until = seconds("valid_until", entry.valid_until)?;
        if let (Some(from), Some(until)) = (valid_from, valid_until)
            && from >= until
        {
            return Err(field("valid_until", "not after valid_from"));
        }
        let revocation = match (seconds("revoked_at", entry.revoked_at)?, entry.reason) {
            (Some(at), Some(reason)) => Some(Revocation { at, reason }),
            (Some(_), None) => return Err(field("reason", "missing beside revoked_at")),
            (None, Some(_)) => return Err(field("revoked_at", "missing beside reason")),
            (None, None) => None,
        };
        let models = match entry.models {
            ModelList::One(star) if star == "*" => Models::Any,
            ModelList::One(_) => return Err(field("models", "must be \"*\" or a list")),
            ModelList::Many(list) if list.is_empty() => {
                return Err(field("models", "lists no model"));
            }
            ModelList::Many(list) if list.iter().any(|model| model == "*") => {
                return Err(field("models", "\"*\" stands alone, not in a list"));
            }
            ModelList::Many(list) => Models::Listed(list),
        };
        let role = entry.role;
        Ok(Self { name, key, role, models, valid_from, valid_until, revocation })
    }
}

/// One `[[key]]` as the parser leaves it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Entry {
    name: String,
    public_key: String,
    role: Role,
    models: ModelList,
    valid_from: Option<Datetime>,
    valid_until: Option<Datetime>,
    revoked_at: Option<Datetime>,
    reason: Option<String>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum ModelList {
    One(String),
    Many(Vec<String>),
}
