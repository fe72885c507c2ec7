//! Between Rust values and the CBOR values of a statement.
//!
//! [`record!`] writes a struct and both directions of its encoding from one
//! list, so a key cannot be written under one number and read under another.

use ciborium::Value;

use crate::num::{Digest, Dtype};

use super::TranscriptError;

/// A value with one CBOR form.
pub(super) trait Wire: Sized {
    /// Returns the CBOR form.
    fn to_value(&self) -> Value;
    /// Reads the CBOR form; `at` is the path of the field, for messages.
    fn from_value(value: Value, at: &str) -> Result<Self, TranscriptError>;
}

/// A member of a map: present always, or an [`Option`].
pub(super) trait Member: Sized {
    fn put(&self, key: u64, entries: &mut Entries);
    fn take(entries: &mut Entries, key: u64, at: String) -> Result<Self, TranscriptError>;
}

/// A map being written or read, in order of its keys.
pub(super) type Entries = std::collections::BTreeMap<u64, Value>;

impl<T: Wire> Member for T {
    fn put(&self, key: u64, entries: &mut Entries) {
        entries.insert(key, self.to_value());
    }

    fn take(entries: &mut Entries, key: u64, at: String) -> Result<Self, TranscriptError> {
        match entries.remove(&key) {
            Some(value) => T::from_value(value, &at),
            None => Err(TranscriptError::MissingField { field: at }),
        }
    }
}

impl<T: Wire> Member for Option<T> {
    fn put(&self, key: u64, entries: &mut Entries) {
        if let Some(present) = self {
            present.put(key, entries);
        }
    }

    fn take(entries: &mut Entries, key: u64, at: String) -> Result<Self, TranscriptError> {
        entries.remove(&key).map(|value| T::from_value(value, &at)).transpose()
    }
}

/// Returns the map as a CBOR value.
pub(super) fn map(entries: Entries) -> Value {
    Value::Map(entries.into_iter().map(|(key, value)| (Value::from(key), value)).collect())
}

/// Takes a map with unsigned keys apart.
pub(super) fn entries(value: Value, at: &str) -> Result<Entries, TranscriptError> {
    let Value::Map(pairs) = value else { return Err(wrong(at, "a map")) };
    let mut entries = Entries::new();
    for (key, value) in pairs {
        let key =
            u64::from_value(key, at).map_err(|_| wrong(at, "a map with unsigned integer keys"))?;
        if entries.insert(key, value).is_some() {
            return Err(wrong(at, "a map with distinct keys"));
        }
    }
    Ok(entries)
}

/// Refuses what is left of a map after its known keys were taken.
pub(super) fn refuse_rest(entries: &Entries, at: &str) -> Result<(), TranscriptError> {
    match entries.keys().next() {
        Some(&key) => Err(TranscriptError::UnknownKey { field: at.to_owned(), key }),
        None => Ok(()),
    }
}

/// The error for a field of another type.
pub(super) fn wrong(at: &str, expected: &'static str) -> TranscriptError {
    TranscriptError::WrongType { field: at.to_owned(), expected }
}

/// Returns deterministic CBOR of a value that holds no floats.
///
/// Keys come from [`Entries`], so they are in order; ciborium writes shortest
/// integers and definite lengths. `strict` checks all of that again.
pub(super) fn encode(value: &Value) -> Vec<u8> {
    let mut bytes = Vec::new();
    ciborium::into_writer(value, &mut bytes).expect("writing CBOR to memory does not fail");
    bytes
}

/// Returns what precedes the contents of a byte string of this length.
pub(super) fn byte_string_head(len_bytes: u64) -> Vec<u8> {
    let mut head = encode(&Value::from(len_bytes));
    head[0] |= 2 << 5; // Major type 2; an unsigned integer has 0 there.
    head
}

impl Wire for u64 {
    fn to_value(&self) -> Value {
        Value::from(*self)
    }

    fn from_value(value: Value, at: &str) -> Result<Self, TranscriptError> {
        let unsigned = value.as_integer().and_then(|integer| u64::try_from(integer).ok());
        unsigned.ok_or_else(|| wrong(at, "an unsigned integer"))
    }
}

impl Wire for u32 {
    fn to_value(&self) -> Value {
        Value::from(*self)
    }

    fn from_value(value: Value, at: &str) -> Result<Self, TranscriptError> {
        let unsigned = value.as_integer().and_then(|integer| u32::try_from(integer).ok());
        unsigned.ok_or_else(|| wrong(at, "an unsigned integer below 2^32"))
    }
}

impl Wire for String {
    fn to_value(&self) -> Value {
        Value::Text(self.clone())
    }

    fn from_value(value: Value, at: &str) -> Result<Self, TranscriptError> {
        value.into_text().map_err(|_| wrong(at, "text"))
    }
}

/// Bytes; without it, `Vec<u8>` would be an array of integers.
impl Wire for Vec<u8> {
    fn to_value(&self) -> Value {
        Value::Bytes(self.clone())
    }

    fn from_value(value: Value, at: &str) -> Result<Self, TranscriptError> {
        value.into_bytes().map_err(|_| wrong(at, "a byte string"))
    }
}

impl Wire for Digest {
    fn to_value(&self) -> Value {
        Value::Bytes(self.0.to_vec())
    }

    fn from_value(value: Value, at: &str) -> Result<Self, TranscriptError> {
        let bytes = value.into_bytes().ok().and_then(|bytes| bytes.try_into().ok());
        bytes.map(Digest).ok_or_else(|| wrong(at, "a byte string of 32 bytes"))
    }
}

impl Wire for Dtype {
    fn to_value(&self) -> Value {
        Value::from(self.name())
    }

    fn from_value(value: Value, at: &str) -> Result<Self, TranscriptError> {
        let all = [Dtype::Bf16, Dtype::F32, Dtype::U32];
        let known = all.into_iter().find(|dtype| value.as_text() == Some(dtype.name()));
        known.ok_or_else(|| wrong(at, "one of \"bf16\", \"f32\", \"u32\""))
    }
}

impl<T: Wire> Wire for Vec<T> {
    fn to_value(&self) -> Value {
        Value::Array(self.iter().map(Wire::to_value).collect())
    }

    fn from_value(value: Value, at: &str) -> Result<Self, TranscriptError> {
        let items = value.into_array().map_err(|_| wrong(at, "an array"))?;
        let read = |(index, item)| T::from_value(item, &format!("{at}[{index}]"));
        items.into_iter().enumerate().map(read).collect()
    }
}

/// Defines a struct that is a closed CBOR map: `key => field: Type`.
macro_rules! record {
    ($(#[$meta:meta])* $name:ident {
        $($(#[$field_meta:meta])* $key:literal => $field:ident: $kind:ty,)+
    }) => {
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub struct $name {
            $($(#[$field_meta])* pub $field: $kind,)+
        }

        impl $crate::transcript::wire::Wire for $name {
            fn to_value(&self) -> ciborium::Value {
                let mut entries = $crate::transcript::wire::Entries::new();
                $($crate::transcript::wire::Member::put(&self.$field, $key, &mut entries);)+
                $crate::transcript::wire::map(entries)
            }

            fn from_value(
                value: ciborium::Value,
                at: &str,
            ) -> Result<Self, $crate::transcript::TranscriptError> {
                let mut entries = $crate::transcript::wire::entries(value, at)?;
                let record = Self {
                    $($field: $crate::transcript::wire::Member::take(
                        &mut entries, $key, format!("{at}.{}", stringify!($field)),
                    )?,)+
                };
                $crate::transcript::wire::refuse_rest(&entries, at)?;
                Ok(record)
            }
        }
    };
}

/// Defines an enum that is one of a closed list of texts: `Variant => "text"`.
macro_rules! words {
    ($(#[$meta:meta])* $name:ident {
        $($(#[$variant_meta:meta])* $variant:ident => $text:literal,)+
    }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum $name {
            $($(#[$variant_meta])* $variant,)+
        }

        impl $name {
            /// The word in the transcript, on the command line and in reports.
            pub fn word(self) -> &'static str {
                match self {
                    $(Self::$variant => $text,)+
                }
            }
        }

        impl $crate::transcript::wire::Wire for $name {
            fn to_value(&self) -> ciborium::Value {
                ciborium::Value::from(self.word())
            }

            fn from_value(
                value: ciborium::Value,
                at: &str,
            ) -> Result<Self, $crate::transcript::TranscriptError> {
                match value.as_text() {
                    $(Some($text) => Ok(Self::$variant),)+
                    _ => Err($crate::transcript::wire::wrong(
                        at, concat!("one of" $(, " \"", $text, "\"")+),
                    )),
                }
            }
        }
    };
}

pub(super) use {record, words};
