//! The options of a line, between the principals and the key.

use super::{BLANK, Reason};
use crate::verify::trust::time::unix_time;

/// The options of one line.
#[derive(Default, Debug)]
pub(super) struct Options {
    /// Whether the key is one that certifies others.
    pub(super) cert_authority: bool,
    /// Pattern list of namespaces; without one, every namespace.
    pub(super) namespaces: Option<String>,
    valid_after: Option<Moment>,
    valid_before: Option<Moment>,
}

#[derive(Clone, Copy, Debug)]
struct Moment {
    seconds: u64,
    local: bool,
}

impl Options {
    /// Reads the options, if there are any, and returns what follows them.
    pub(super) fn read(rest: &str) -> Result<(Self, &str), Reason> {
        let mut options = Self::default();
        let word = rest.split(BLANK).next().unwrap_or_default();
        if KEY_TYPES.iter().any(|start| word.starts_with(start)) {
            return Ok((options, rest));
        }
        let end = end_of_options(rest)?;
        let (mut text, key) = (&rest[..end], rest[end..].trim_start_matches(BLANK));
        loop {
            text = options.read_one(text)?;
            match text.strip_prefix(',') {
                Some(more) => text = more,
                None if text.is_empty() => break,
                None => return Err(Reason::UnknownOption { name: text.to_owned() }),
            }
        }
        if key.is_empty() { Err(Reason::NoKey) } else { Ok((options, key)) }
    }

    /// Reads one option and returns what follows it.
    fn read_one<'t>(&mut self, text: &'t str) -> Result<&'t str, Reason> {
        let end = text.find([',', '=']).unwrap_or(text.len());
        let (name, rest) = text.split_at(end);
        match name.to_ascii_lowercase().as_str() {
            "cert-authority" => {
                self.cert_authority = true;
                Ok(rest)
            }
            NAMESPACES => {
                let (value, rest) = value(NAMESPACES, rest)?;
                once(NAMESPACES, &mut self.namespaces, value)?;
                Ok(rest)
            }
            VALID_AFTER => {
                let (value, rest) = value(VALID_AFTER, rest)?;
                once(VALID_AFTER, &mut self.valid_after, moment(VALID_AFTER, value)?)?;
                Ok(rest)
            }
            VALID_BEFORE => {
                let (value, rest) = value(VALID_BEFORE, rest)?;
                once(VALID_BEFORE, &mut self.valid_before, moment(VALID_BEFORE, value)?)?;
                Ok(rest)
            }
            _ => Err(Reason::UnknownOption { name: name.to_owned() }),
        }
    }

    /// First second of the window, and first second after it.
    pub(super) fn window(&self) -> Result<(Option<u64>, Option<u64>), Reason> {
        let from = self.valid_after.map(|moment| moment.seconds);
        let last = self.valid_before.map(|moment| moment.seconds);
        if let (Some(from), Some(last)) = (from, last)
            && last <= from
        {
            return Err(Reason::EmptyWindow);
        }
        // OpenSSH's window holds its last second, ours ends before it. TOML has no
        // year 10000; there the window is one second short.
        Ok((from, last.map(|last| (last + 1).min(LAST_OF_TOML))))
    }

    /// Whether a time had no `Z`.
    pub(super) fn local_time(&self) -> bool {
        [self.valid_after, self.valid_before].into_iter().flatten().any(|moment| moment.local)
    }
}

/// Where the options end: at the first blank outside quotes.
fn end_of_options(text: &str) -> Result<usize, Reason> {
    let (mut quoted, mut escaped) = (false, false);
    for (index, c) in text.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' if quoted => escaped = true,
            '"' => quoted = !quoted,
            c if !quoted && BLANK.contains(&c) => return Ok(index),
            _ => {}
        }
    }
    if quoted { Err(Reason::Quote) } else { Ok(text.len()) }
}

/// The value of an option, in double quotes, and what follows it. `\"` is a quote.
fn value<'t>(name: &'static str, rest: &'t str) -> Result<(String, &'t str), Reason> {
    let quoted = rest.strip_prefix("=\"").ok_or(Reason::NoValue { name })?;
    let mut value = String::new();
    let mut chars = quoted.char_indices().peekable();
    while let Some((index, c)) = chars.next() {
        match c {
            '"' => return Ok((value, &quoted[index + 1..])),
            '\\' if chars.peek().is_some_and(|(_, next)| *next == '"') => {
                value.push('"');
                chars.next();
            }
            c => value.push(c),
        }
    }
    Err(Reason::Quote)
}

fn once<T>(name: &'static str, place: &mut Option<T>, value: T) -> Result<(), Reason> {
    match place.replace(value) {
        None => Ok(()),
        Some(_) => Err(Reason::Repeated { name }),
    }
}

/// A time: YYYYMMDD, YYYYMMDDHHMM or YYYYMMDDHHMMSS, with or without Z.
fn moment(name: &'static str, value: String) -> Result<Moment, Reason> {
    let digits = value.strip_suffix(['Z', 'z']).unwrap_or(&value);
    let local = digits.len() == value.len();
    let all_digits = digits.bytes().all(|byte| byte.is_ascii_digit());
    let part = |from: usize| &digits[from..from + 2];
    let (hour, minute, second) = match digits.len() {
        _ if !all_digits => ("", "", ""),
        8 => ("00", "00", "00"),
        12 => (part(8), part(10), "00"),
        14 => (part(8), part(10), part(12)),
        _ => ("", "", ""),
    };
    let seconds = if hour.is_empty() {
        Err("not YYYYMMDD[HHMM[SS]][Z]")
    } else {
        let (year, month, day) = (&digits[..4], part(4), part(6));
        unix_time(&format!("{year}-{month}-{day}T{hour}:{minute}:{second}Z"))
    };
    match seconds {
        Ok(seconds) => Ok(Moment { seconds, local }),
        Err(reason) => Err(Reason::Time { name, value, reason }),
    }
}

const NAMESPACES: &str = "namespaces";
const VALID_AFTER: &str = "valid-after";
const VALID_BEFORE: &str = "valid-before";

/// What a key type begins with, and no option does.
const KEY_TYPES: [&str; 5] = ["ssh-", "ecdsa-sha2-", "sk-ssh-", "sk-ecdsa-", "rsa-sha2-"];

/// 9999-12-31T23:59:59Z.
const LAST_OF_TOML: u64 = 253_402_300_799;
