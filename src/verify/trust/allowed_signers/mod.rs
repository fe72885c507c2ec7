//! OpenSSH's list of allowed signers, read as `ssh-keygen -Y verify` reads it.
//!
//! One key a line: principals, options, key type, base64, comment (ssh-keygen(1),
//! ALLOWED SIGNERS). Nothing is dropped in silence: a line that gives no entry is
//! an error or is listed with its reason.

mod options;
mod pattern;

use crate::transcript::key::{KeyError, PublicKey};
use options::Options;

/// A line that names a key for the namespace asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signer {
    /// The line, from 1 on.
    pub line: usize,
    /// Who holds the key: the pattern list, as it stands there.
    pub principals: String,
    /// The key.
    pub key: PublicKey,
    /// First second of the window (Unix time).
    pub valid_from: Option<u64>,
    /// First second after the window (Unix time).
    pub valid_until: Option<u64>,
    /// Whether a time had no `Z`: OpenSSH reads it in the machine's time zone, here
    /// it is UTC.
    pub local_time: bool,
}

/// What a line says.
#[derive(Debug)]
pub enum Line {
    /// A key.
    Signer(Box<Signer>),
    /// A key that is not for here.
    Skipped {
        /// The line, from 1 on.
        line: usize,
        /// Who holds the key.
        principals: String,
        /// Why it is skipped.
        reason: String,
    },
}

/// Why a list is refused.
#[derive(Debug, thiserror::Error)]
#[error("line {line}: {reason}")]
pub struct Refused {
    /// The line, from 1 on.
    pub line: usize,
    /// Why.
    pub reason: Reason,
}

/// What is wrong with a line.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Reason {
    /// Fewer fields than principals and a key.
    #[error("no key after the principals")]
    NoKey,
    /// A quote without its end.
    #[error("a quote has no end")]
    Quote,
    /// Certificates are not used here.
    #[error("cert-authority: certificates are not used here; list the signers' own keys")]
    CertAuthority,
    /// An option that nobody knows.
    #[error("unknown option {name:?}")]
    UnknownOption {
        /// Its name.
        name: String,
    },
    /// An option without a quoted value.
    #[error("option {name} needs a value in double quotes")]
    NoValue {
        /// Its name.
        name: &'static str,
    },
    /// An option that is given twice.
    #[error("option {name} is given twice")]
    Repeated {
        /// Its name.
        name: &'static str,
    },
    /// A time that is none.
    #[error("{name} {value:?}: {reason}")]
    Time {
        /// Name of the option.
        name: &'static str,
        /// Its value.
        value: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// A window without a moment in it.
    #[error("valid-before is not after valid-after")]
    EmptyWindow,
    /// A key that cannot be used.
    #[error("{0}")]
    Key(KeyError),
}

/// Reads a list, as far as it is for `namespace`.
///
/// # Errors
/// [`Refused`] for the first line that cannot be read. Keys of other algorithms and
/// for other namespaces are no error but [`Line::Skipped`].
pub fn read(text: &str, namespace: &str) -> Result<Vec<Line>, Refused> {
    let mut lines = Vec::new();
    for (line, content) in text.lines().enumerate().map(|(index, content)| (index + 1, content)) {
        let content = content.trim_matches(BLANK);
        if content.is_empty() || content.starts_with('#') {
            continue;
        }
        let read = read_line(line, content, namespace);
        lines.push(read.map_err(|reason| Refused { line, reason })?);
    }
    Ok(lines)
}

fn read_line(line: usize, content: &str, namespace: &str) -> Result<Line, Reason> {
    let (principals, rest) = first_field(content)?;
    let (options, key) = Options::read(rest)?;
    if options.cert_authority {
        return Err(Reason::CertAuthority);
    }
    let (valid_from, valid_until) = options.window()?;
    let skipped = |reason| Ok(Line::Skipped { line, principals: principals.clone(), reason });
    let key = match PublicKey::from_text(key) {
        Ok(key) => key,
        Err(error @ KeyError::OtherAlgorithm { .. }) => return skipped(error.to_string()),
        Err(error) => return Err(Reason::Key(error)),
    };
    if let Some(list) = &options.namespaces
        && !pattern::list_matches(list, namespace)
    {
        return skipped(format!("the key is for namespaces {list:?}, not for {namespace:?}"));
    }
    let local_time = options.local_time();
    let signer = Signer { line, principals, key, valid_from, valid_until, local_time };
    Ok(Line::Signer(Box::new(signer)))
}

/// Splits off the principals, which may stand in double quotes.
fn first_field(content: &str) -> Result<(String, &str), Reason> {
    let (field, rest) = match content.strip_prefix('"') {
        Some(quoted) => quoted.split_once('"').ok_or(Reason::Quote)?,
        None => content.split_once(BLANK).ok_or(Reason::NoKey)?,
    };
    let rest = rest.trim_start_matches(BLANK);
    if field.is_empty() || rest.is_empty() {
        return Err(Reason::NoKey);
    }
    Ok((field.to_owned(), rest))
}

const BLANK: [char; 3] = [' ', '\t', '\r'];

#[cfg(test)]
mod tests;
