//! JSON with one reading: a repeated key is refused, at any depth.
//!
//! Parsers disagree on which of two equal keys counts, so a file with both
//! could mean one model here and another elsewhere.

use std::collections::HashSet;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

use super::ModelError;

/// Parses `bytes` as one JSON object without repeated keys.
///
/// # Errors
/// [`ModelError::Json`] if it is anything else.
pub(super) fn object(file: &str, bytes: &[u8]) -> Result<Map<String, Value>, ModelError> {
    let refused = |reason| ModelError::Json { file: file.into(), reason };
    refuse_repeated_keys(bytes).map_err(refused)?;
    serde_json::from_slice(bytes).map_err(|e| refused(e.to_string()))
}

/// Checks that `bytes` is one JSON value in which no object repeats a key.
///
/// # Errors
/// What is wrong, with line and column.
pub(crate) fn refuse_repeated_keys(bytes: &[u8]) -> Result<(), String> {
    let mut parser = serde_json::Deserializer::from_slice(bytes);
    UniqueKeys.deserialize(&mut parser).and_then(|()| parser.end()).map_err(|e| e.to_string())
}

/// Walks a value and keeps nothing but the keys of the open objects.
struct UniqueKeys;

impl<'de> DeserializeSeed<'de> for UniqueKeys {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for UniqueKeys {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let mut seen = HashSet::new();
        while let Some(key) = map.next_key::<String>()? {
            map.next_value_seed(UniqueKeys)?;
            if let Some(key) = seen.replace(key) {
                return Err(A::Error::custom(format_args!("key {key:?} appears twice")));
            }
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        while seq.next_element_seed(UniqueKeys)?.is_some() {}
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refuses_repeated_keys_at_any_depth_and_spelling() {
        // (text, reason)
        let cases = [
            (r#"{"a":1,"a":1}"#, "equal values do not excuse it"),
            (r#"{"a":1,"\u0061":2}"#, "an escaped spelling is the same key"),
            (r#"{"b":[{"a":1,"a":2}]}"#, "nested in a list"),
            (r#"{"b":{"a":1,"a":2}}"#, "nested in an object"),
        ];
        for (text, reason) in cases {
            let error = object("f.json", text.as_bytes()).unwrap_err().to_string();
            assert!(error.contains(r#"key "a" appears twice"#), "{reason}: {error}");
        }
    }

    #[test]
    fn refuses_what_is_not_one_object() {
        let deep = "[".repeat(100_000);
        for text in ["", "[]", "{} {}", "{", "nul", r#"{"a":NaN}"#, deep.as_str()] {
            assert!(object("f.json", text.as_bytes()).is_err(), "{:.20}", text);
        }
    }

    #[test]
    fn accepts_equal_keys_in_different_objects() {
        let text = br#"{"a":{"a":1},"b":{"a":"x"},"c":[null,true,-1,1.5,18446744073709551615]}"#;
        assert_eq!(object("f.json", text).unwrap().len(), 3);
    }
}
