//! Deserializes a parsed JSON value into a request type. An error has a kind (unknown field,
//! missing field, wrong type, invalid value), the path of the field, and a message.
//!
//! serde_json reports errors only as text; endpoints must distinguish an unknown field from a
//! missing one and from a value out of range, so the values are walked here with our own error
//! type.

use std::fmt;

use serde::de::{
    DeserializeOwned, DeserializeSeed, Deserializer, EnumAccess, Error, Expected, IntoDeserializer,
    MapAccess, SeqAccess, Unexpected, VariantAccess, Visitor,
};
use serde::forward_to_deserialize_any;
use serde_json::Value;

/// The kind of an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldErrorKind {
    UnknownField,
    MissingField,
    Type,
    Value,
}

/// A value that does not match its type: the reason and the field.
#[derive(Debug)]
pub struct FieldError {
    pub kind: FieldErrorKind,
    pub message: String,
    /// The path of the field; reversed (innermost part first) while it is built.
    path: Vec<String>,
}

impl FieldError {
    /// Returns the field, as `entries.0.keys`; `None` for the whole body.
    pub fn param(&self) -> Option<String> {
        let parts: Vec<_> = self.path.iter().rev().map(String::as_str).collect();
        (!parts.is_empty()).then(|| parts.join("."))
    }

    fn new(kind: FieldErrorKind, message: String) -> Self {
        Self {
            kind,
            message,
            path: Vec::new(),
        }
    }

    fn within_part(mut self, part: impl fmt::Display) -> Self {
        self.path.push(part.to_string());
        self
    }
}

/// Deserializes a request type from a parsed body.
///
/// # Errors
/// Returns the first error.
pub fn from_value<T: DeserializeOwned>(value: Value) -> Result<T, FieldError> {
    T::deserialize(JsonNode(value))
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for FieldError {}

impl Error for FieldError {
    fn custom<M: fmt::Display>(message: M) -> Self {
        Self::new(FieldErrorKind::Value, message.to_string())
    }

    fn invalid_type(got: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::new(
            FieldErrorKind::Type,
            format!(
                "Must be {1}, not {0}.",
                describe_value(&got),
                describe_expected(expected)
            ),
        )
    }

    fn invalid_value(_: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::new(
            FieldErrorKind::Value,
            format!("Must be {}.", describe_expected(expected)),
        )
    }

    fn invalid_length(length: usize, expected: &dyn Expected) -> Self {
        Self::new(
            FieldErrorKind::Value,
            format!("Must be {expected}, not {length} elements."),
        )
    }

    fn unknown_variant(_: &str, expected: &'static [&'static str]) -> Self {
        Self::new(
            FieldErrorKind::Value,
            format!("Must be one of {}.", expected.join(", ")),
        )
    }

    fn unknown_field(field: &str, _: &'static [&'static str]) -> Self {
        let known: String = field.chars().take(100).collect();
        Self::new(
            FieldErrorKind::UnknownField,
            format!("Unknown field `{known}`."),
        )
        .within_part(known)
    }

    fn missing_field(field: &'static str) -> Self {
        Self::new(
            FieldErrorKind::MissingField,
            format!("The field `{field}` is missing."),
        )
        .within_part(field)
    }
}

/// Returns the type of the received value, without its content: responses do not echo bodies.
fn describe_value(got: &Unexpected<'_>) -> &'static str {
    match got {
        Unexpected::Bool(_) => "true or false",
        Unexpected::Unsigned(_) | Unexpected::Signed(_) => "an integer",
        Unexpected::Float(_) => "a number",
        Unexpected::Char(_) | Unexpected::Str(_) => "a string",
        Unexpected::Unit | Unexpected::Option => "null",
        Unexpected::Seq => "a list",
        Unexpected::Map => "an object",
        _ => "something else",
    }
}

/// Returns the expected type in terms of JSON, not Rust.
fn describe_expected(expected: &dyn Expected) -> String {
    let word = expected.to_string();
    match word.as_str() {
        "i8" | "i16" | "i32" | "i64" | "u8" | "u16" | "u32" | "u64" | "usize" => "an integer",
        "f32" | "f64" => "a number",
        "a boolean" => "true or false",
        "a string" => "a string",
        "a sequence" => "a list",
        "a map" => "an object",
        other => other,
    }
    .to_owned()
}

struct JsonNode(Value);

/// In JSON, `3.0` is as much an integer as `3`.
macro_rules! whole_numbers {
    ($($deserialize:ident)*) => {$(
        fn $deserialize<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, FieldError> {
            match self.0.as_f64().filter(|_| self.0.is_f64()).and_then(whole) {
                Some(it) => visitor.visit_i64(it),
                None => self.deserialize_any(visitor),
            }
        }
    )*};
}

/// Returns the integer value, within the range in which `f64` represents every integer.
fn whole(it: f64) -> Option<i64> {
    let is_exact = it.fract() == 0.0 && it.abs() <= 9_007_199_254_740_992.0;
    // Nothing is truncated in this range.
    #[allow(clippy::cast_possible_truncation)]
    is_exact.then_some(it as i64)
}

impl<'de> IntoDeserializer<'de, FieldError> for JsonNode {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

impl<'de> Deserializer<'de> for JsonNode {
    type Error = FieldError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, FieldError> {
        match self.0 {
            Value::Null => visitor.visit_unit(),
            Value::Bool(it) => visitor.visit_bool(it),
            Value::Number(it) => match (it.as_u64(), it.as_i64(), it.as_f64()) {
                (Some(it), _, _) => visitor.visit_u64(it),
                (_, Some(it), _) => visitor.visit_i64(it),
                (_, _, it) => visitor.visit_f64(it.unwrap_or(f64::NAN)),
            },
            Value::String(it) => visitor.visit_string(it),
            Value::Array(it) => visitor.visit_seq(SeqItems {
                rest: it.into_iter().enumerate(),
            }),
            Value::Object(it) => visitor.visit_map(MapFields {
                rest: it.into_iter(),
                value: None,
            }),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, FieldError> {
        match self.0 {
            Value::Null => visitor.visit_none(),
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, FieldError> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, FieldError> {
        match self.0 {
            Value::String(word) => visitor.visit_enum(VariantName(word)),
            _ => Err(FieldError::new(
                FieldErrorKind::Type,
                "Must be a string from the list of allowed values.".into(),
            )),
        }
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, FieldError> {
        match self.0 {
            Value::Object(_) => self.deserialize_any(visitor),
            // Derived code would accept a list as the fields in order.
            _ => Err(FieldError::new(
                FieldErrorKind::Type,
                "Must be an object.".into(),
            )),
        }
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, FieldError> {
        match self.0 {
            // serde_json's own map would accept null as an empty map.
            Value::Null => Err(FieldError::invalid_type(Unexpected::Unit, &visitor)),
            _ => self.deserialize_any(visitor),
        }
    }

    whole_numbers! {
        deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i64
        deserialize_u8 deserialize_u16 deserialize_u32 deserialize_u64
    }

    forward_to_deserialize_any! {
        bool i128 u128 f32 f64 char str string
        bytes byte_buf unit unit_struct seq tuple tuple_struct
        identifier ignored_any
    }
}

/// A unit variant of an enumeration; our requests have no others.
struct VariantName(String);

impl<'de> EnumAccess<'de> for VariantName {
    type Error = FieldError;
    type Variant = Self;

    fn variant_seed<V: DeserializeSeed<'de>>(
        self,
        seed: V,
    ) -> Result<(V::Value, Self), FieldError> {
        let variant = seed.deserialize(self.0.clone().into_deserializer())?;
        Ok((variant, self))
    }
}

impl<'de> VariantAccess<'de> for VariantName {
    type Error = FieldError;

    fn unit_variant(self) -> Result<(), FieldError> {
        Ok(())
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, _: T) -> Result<T::Value, FieldError> {
        Err(FieldError::custom("This variant needs a value."))
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, _: V) -> Result<V::Value, FieldError> {
        Err(FieldError::custom("This variant needs values."))
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        _: &'static [&'static str],
        _: V,
    ) -> Result<V::Value, FieldError> {
        Err(FieldError::custom("This variant needs fields."))
    }
}

struct SeqItems {
    rest: std::iter::Enumerate<std::vec::IntoIter<Value>>,
}

impl<'de> SeqAccess<'de> for SeqItems {
    type Error = FieldError;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, FieldError> {
        match self.rest.next() {
            None => Ok(None),
            Some((at, value)) => seed
                .deserialize(JsonNode(value))
                .map(Some)
                .map_err(|it| it.within_part(at)),
        }
    }
}

struct MapFields {
    rest: serde_json::map::IntoIter,
    value: Option<(String, Value)>,
}

impl<'de> MapAccess<'de> for MapFields {
    type Error = FieldError;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, FieldError> {
        let Some((key, value)) = self.rest.next() else {
            return Ok(None);
        };
        self.value = Some((key.clone(), value));
        seed.deserialize(key.into_deserializer()).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(
        &mut self,
        seed: V,
    ) -> Result<V::Value, FieldError> {
        // serde requests a value only after its key.
        let (key, value) = self.value.take().unwrap_or_default();
        seed.deserialize(JsonNode(value))
            .map_err(|it| it.within_part(key))
    }
}

#[cfg(test)]
#[path = "deserialize_tests.rs"]
mod tests;
