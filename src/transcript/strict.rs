//! One pass over the bytes: the one allowed CBOR encoding, or a refusal.
//!
//! Runs before any decoder allocates. What passes here is deterministic CBOR
//! (RFC 8949 section 4.2.1) of a small subset: integers, byte strings, text
//! strings, arrays and maps. Tags, floats and simple values have no place inside
//! a transcript, so nothing has two spellings.

use super::TranscriptError;

/// Deepest nesting that is read (levels). A statement needs five; the limit
/// keeps a hostile file from exhausting the stack.
pub const MAX_DEPTH: usize = 16;

/// What is wrong at a byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// The data end inside an item.
    #[error("the data end inside an item")]
    Truncated,
    /// An integer or length is not in its shortest form.
    #[error("a number is not in its shortest form")]
    NotShortest,
    /// A length is given as "until a break".
    #[error("indefinite length")]
    Indefinite,
    /// Reserved additional information (28 to 30).
    #[error("reserved length code")]
    Reserved,
    /// A tag where none is allowed.
    #[error("a tag is not allowed here")]
    Tag,
    /// A float, boolean, null, undefined or other simple value.
    #[error("floats and simple values are not allowed")]
    Simple,
    /// Text that is not UTF-8.
    #[error("text is not UTF-8")]
    NotUtf8,
    /// Map keys out of order.
    #[error("map keys are not in order")]
    KeyOrder,
    /// The same map key twice.
    #[error("a map key appears twice")]
    DuplicateKey,
    /// Nesting beyond [`MAX_DEPTH`].
    #[error("nested deeper than {MAX_DEPTH} levels")]
    TooDeep,
    /// More elements announced than bytes left.
    #[error("announces more elements or bytes than the data hold")]
    TooLong,
    /// Data after the item.
    #[error("data after the end of the item")]
    Trailing,
    /// Another item was required here.
    #[error("a byte string is required here")]
    NotBytes,
}

/// Checks that `bytes` is exactly one item in the allowed encoding.
///
/// `base` is the offset of `bytes` in the file, for messages.
///
/// # Errors
/// [`TranscriptError::Encoding`] at the first byte that breaks a rule.
pub fn check_item(bytes: &[u8], base: usize) -> Result<(), TranscriptError> {
    let mut scanner = Scanner { bytes, at: 0 };
    let outcome = scanner.whole();
    outcome.map_err(|(at, fault)| TranscriptError::Encoding { offset: base + at, fault })
}

/// Returns the end of the item that starts at `start`, checking its encoding.
///
/// # Errors
/// [`TranscriptError::Encoding`] at the first byte that breaks a rule.
pub fn item_end(bytes: &[u8], start: usize) -> Result<usize, TranscriptError> {
    let mut scanner = Scanner { bytes, at: start };
    match scanner.item(0) {
        Ok(()) => Ok(scanner.at),
        Err((offset, fault)) => Err(TranscriptError::Encoding { offset, fault }),
    }
}

/// Returns the range of the contents of the byte string that starts at `start`.
///
/// # Errors
/// [`TranscriptError::Encoding`] if there is no byte string or it is cut short.
pub fn byte_string(bytes: &[u8], start: usize) -> Result<std::ops::Range<usize>, TranscriptError> {
    let first = bytes.get(start..).unwrap_or_default();
    let range = byte_string_of(first, start as u64, bytes.len() as u64)?;
    Ok(range.start as usize..range.end as usize) // Within `bytes`.
}

/// As [`byte_string`], of a file of `end` bytes of which only `first` is at hand: what
/// follows offset `start`, at least [`MAX_HEAD_LEN_BYTES`] of it unless the file ends.
///
/// # Errors
/// [`TranscriptError::Encoding`] if there is no byte string or it is cut short.
pub fn byte_string_of(
    first: &[u8],
    start: u64,
    end: u64,
) -> Result<std::ops::Range<u64>, TranscriptError> {
    let refuse = |fault| {
        let offset = usize::try_from(start).unwrap_or(usize::MAX);
        TranscriptError::Encoding { offset, fault }
    };
    let mut scanner = Scanner { bytes: first, at: 0 };
    let (major, length) = scanner.head().map_err(|(_, fault)| refuse(fault))?;
    if major != BYTES {
        return Err(refuse(Fault::NotBytes));
    }
    let from = start.saturating_add(scanner.at as u64);
    match from.checked_add(length) {
        Some(after) if after <= end => Ok(from..after),
        Some(_) | None => Err(refuse(Fault::TooLong)),
    }
}

/// Longest head of an item: its first byte and an argument of eight.
pub const MAX_HEAD_LEN_BYTES: usize = 9;

type Refusal = (usize, Fault);

struct Scanner<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Scanner<'_> {
    fn whole(&mut self) -> Result<(), Refusal> {
        self.item(0)?;
        if self.at == self.bytes.len() { Ok(()) } else { Err((self.at, Fault::Trailing)) }
    }

    fn item(&mut self, depth: usize) -> Result<(), Refusal> {
        let start = self.at;
        if depth >= MAX_DEPTH {
            return Err((start, Fault::TooDeep));
        }
        let (major, argument) = self.head()?;
        match major {
            UNSIGNED | NEGATIVE => Ok(()),
            BYTES => self.skip(start, argument),
            TEXT => {
                let from = self.at;
                self.skip(start, argument)?;
                match std::str::from_utf8(&self.bytes[from..self.at]) {
                    Ok(_) => Ok(()),
                    Err(error) => Err((from + error.valid_up_to(), Fault::NotUtf8)),
                }
            }
            ARRAY => {
                // Every element takes at least one byte.
                for _ in 0..self.count(start, argument, 1)? {
                    self.item(depth + 1)?;
                }
                Ok(())
            }
            MAP => self.map(start, argument, depth),
            TAG => Err((start, Fault::Tag)),
            _ => Err((start, Fault::Simple)),
        }
    }

    fn map(&mut self, start: usize, argument: u64, depth: usize) -> Result<(), Refusal> {
        let mut previous: Option<std::ops::Range<usize>> = None;
        for _ in 0..self.count(start, argument, 2)? {
            let key_start = self.at;
            self.item(depth + 1)?;
            let key = key_start..self.at;
            if let Some(previous) = previous {
                // RFC 8949 section 4.2.1: bytewise order of the encoded keys.
                match self.bytes[previous].cmp(&self.bytes[key.clone()]) {
                    std::cmp::Ordering::Less => {}
                    std::cmp::Ordering::Equal => return Err((key_start, Fault::DuplicateKey)),
                    std::cmp::Ordering::Greater => return Err((key_start, Fault::KeyOrder)),
                }
            }
            previous = Some(key);
            self.item(depth + 1)?;
        }
        Ok(())
    }

    /// Reads the first byte of an item and its argument.
    fn head(&mut self) -> Result<(u8, u64), Refusal> {
        let start = self.at;
        let first = *self.bytes.get(start).ok_or((start, Fault::Truncated))?;
        self.at += 1;
        let (major, info) = (first >> 5, first & 0x1f);
        if major == SIMPLE {
            return Err((start, Fault::Simple));
        }
        let (width, smallest) = match info {
            0..=23 => return Ok((major, u64::from(info))),
            24 => (1, 24),
            25 => (2, 1 << 8),
            26 => (4, 1 << 16),
            27 => (8, 1 << 32),
            28..=30 => return Err((start, Fault::Reserved)),
            _ => return Err((start, Fault::Indefinite)),
        };
        let from = self.at;
        let digits = self.bytes.get(from..from + width).ok_or((start, Fault::Truncated))?;
        self.at += width;
        let argument = digits.iter().fold(0u64, |sum, &byte| sum << 8 | u64::from(byte));
        if argument < smallest { Err((start, Fault::NotShortest)) } else { Ok((major, argument)) }
    }

    /// Turns a declared count into one that the remaining bytes can hold.
    fn count(&self, start: usize, declared: u64, least_bytes: u64) -> Result<u64, Refusal> {
        let left = (self.bytes.len() - self.at) as u64;
        match declared.checked_mul(least_bytes) {
            Some(needed) if needed <= left => Ok(declared),
            _ => Err((start, Fault::TooLong)),
        }
    }

    fn skip(&mut self, start: usize, length: u64) -> Result<(), Refusal> {
        self.count(start, length, 1)?;
        self.at += length as usize; // At most the bytes left, so it fits.
        Ok(())
    }
}

// Major types, RFC 8949 section 3.1.
const UNSIGNED: u8 = 0;
const NEGATIVE: u8 = 1;
const BYTES: u8 = 2;
const TEXT: u8 = 3;
const ARRAY: u8 = 4;
const MAP: u8 = 5;
const TAG: u8 = 6;
const SIMPLE: u8 = 7;
