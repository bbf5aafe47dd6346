//! Defines `ObjectReader`, which reads typed fields of a JSON object: `null` counts as absent, and
//! only the first invalid field of a request is recorded as an error, with its path.
//!
//! A method that finds an invalid value records an error, and returns the same as for an absent
//! field. So a function that reads an object needs no branch for each error. Only the first error
//! of a request is reported, so **the order of the calls is the order in which fields are
//! checked**. Stored objects are read by the same functions, without errors.

use std::cell::OnceCell;
use std::fmt;
use std::ops::RangeInclusive;
use std::rc::Rc;

use serde::de::{Deserialize, IntoDeserializer};
use serde_json::{Map, Value};

use crate::request::error;
use crate::request::error::{RequestError, must_be};

/// The maximum length of a text in an item, in bytes.
const MAX_TEXT_BYTES: usize = 10 * 1024 * 1024;

/// Fields whose value a message never repeats, because it is or may contain a credential.
const SECRET_FIELDS: [&str; 4] = [
    "authorization",
    "headers",
    "server_url",
    "encrypted_content",
];

/// Reads one JSON object.
pub struct ObjectReader<'a> {
    pub fields: &'a Map<String, Value>,
    /// The path of the object; empty for the body.
    path: String,
    /// The first error of the request; `None` for a stored object.
    first_error: Option<Rc<OnceCell<RequestError>>>,
}

/// Reads the body of a request.
///
/// # Errors
/// Returns the first error that `read` finds.
pub fn parse<'a, T>(
    body: &'a Map<String, Value>,
    read: impl FnOnce(&ObjectReader<'a>) -> T,
) -> Result<T, RequestError> {
    let first_error = Rc::new(OnceCell::new());
    let parsed = read(&ObjectReader {
        fields: body,
        path: String::new(),
        first_error: Some(first_error.clone()),
    });
    match first_error.get() {
        None => Ok(parsed),
        Some(error) => Err(error.clone()),
    }
}

impl<'a> ObjectReader<'a> {
    /// Returns a reader of an object that was validated before it was stored.
    pub fn of_stored(fields: &'a Map<String, Value>) -> Self {
        Self {
            fields,
            path: String::new(),
            first_error: None,
        }
    }

    /// Returns whether the object was validated before it was stored.
    pub fn is_stored(&self) -> bool {
        self.first_error.is_none()
    }

    /// Returns a reader of the value of a field, or of an element of a list field.
    fn nested(&self, name: &str, fields: &'a Map<String, Value>) -> Self {
        Self {
            fields,
            path: self.param(name),
            first_error: self.first_error.clone(),
        }
    }

    /// Returns the path of a field.
    fn param(&self, name: &str) -> String {
        match self.path.is_empty() {
            true => name.to_owned(),
            false => format!("{}.{name}", self.path),
        }
    }

    /// Returns the path of the object; empty for the body.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Records `unknown_parameter`.
    pub fn unknown(&self, name: &str) {
        let message = format!("Unknown parameter: {}.", error::quoted(&self.param(name)));
        self.fail("unknown_parameter", name, message);
    }

    /// Records an error of a field.
    pub fn fail(&self, code: &'static str, name: &str, message: impl Into<String>) {
        if let Some(first_error) = &self.first_error {
            // Has no effect after an earlier error: only the first one is reported.
            let _ = first_error.set(RequestError {
                code,
                param: self.param(name),
                message: message.into(),
            });
        }
    }

    /// Records `invalid_type`.
    pub fn wrong_type(&self, name: &str, expected: &str) {
        self.fail("invalid_type", name, self.mismatch(name, expected));
    }

    /// Records `invalid_value`.
    pub fn wrong_value(&self, name: &str, expected: &str) {
        self.fail("invalid_value", name, self.mismatch(name, expected));
    }

    /// Records `invalid_value` unless the field is valid.
    pub fn require(&self, is_valid: bool, name: &str, expected: &str) {
        if !is_valid {
            self.wrong_value(name, expected);
        }
    }

    /// Returns the message for a field whose value is not `expected`.
    fn mismatch(&self, name: &str, expected: &str) -> String {
        if self.first_error.is_none() {
            return String::new();
        }
        let param = self.param(name);
        let is_secret = SECRET_FIELDS.iter().any(|it| param.contains(it));
        let value = self.value_at(name).filter(|_| !is_secret);
        let value = value.map_or_else(String::new, |it| format!(": {}", error::shown(it)));
        let must_be = must_be(expected);
        format!(
            "Invalid value for {}{value}. {must_be}",
            error::quoted(&param)
        )
    }

    /// Returns the value of a field, or of an element of a list field as `include[1]`.
    fn value_at(&self, name: &str) -> Option<&'a Value> {
        let Some((list, index)) = name.split_once('[') else {
            return self.fields.get(name);
        };
        let index: usize = index.strip_suffix(']')?.parse().ok()?;
        self.fields.get(list)?.get(index)
    }

    /// Records `missing_required_parameter`.
    pub fn missing(&self, name: &str, message: &str) {
        let param = error::quoted(&self.param(name));
        let message = format!("Missing required parameter: {param}. {message}");
        self.fail("missing_required_parameter", name, message);
    }

    /// Records `unsupported_parameter`.
    pub fn unsupported(&self, name: &str) {
        let message = format!(
            "Unsupported parameter: {}.",
            error::quoted(&self.param(name))
        );
        self.fail("unsupported_parameter", name, message);
    }

    /// Returns a field that is present and not `null`.
    pub fn get(&self, name: &str) -> Option<&'a Value> {
        self.fields.get(name).filter(|it| !it.is_null())
    }

    /// Returns a field that is converted by `read`, which returns `None` for another type.
    fn typed<T>(
        &self,
        name: &str,
        expected: &str,
        read: impl FnOnce(&'a Value) -> Option<T>,
    ) -> Option<T> {
        let value = read(self.get(name)?);
        if value.is_none() {
            self.wrong_type(name, expected);
        }
        value
    }

    /// Returns a boolean.
    pub fn flag(&self, name: &str) -> Option<bool> {
        self.typed(name, "true or false", Value::as_bool)
    }

    /// Returns a string.
    pub fn text(&self, name: &str) -> Option<&'a str> {
        self.typed(name, "a string", Value::as_str)
    }

    /// Returns a string that must be a variant of an enum.
    pub fn word<T: Deserialize<'a>>(&self, name: &str) -> Option<T> {
        let word = parse_word(self.text(name)?);
        word.map_err(|UnknownWord(expected)| self.wrong_value(name, &expected))
            .ok()
    }

    /// Returns a number within a range.
    pub fn number(&self, name: &str, range: RangeInclusive<f64>) -> Option<f64> {
        let number = self.typed(name, "a number", Value::as_f64)?;
        let (min, max) = range.clone().into_inner();
        self.require_range(name, range.contains(&number), min, max);
        Some(number)
    }

    /// Returns an integer within a range.
    pub fn integer(&self, name: &str, range: RangeInclusive<i64>) -> Option<i64> {
        // SDKs of some languages send 16.0 for 16.
        let is_whole = |it: &f64| it.fract() == 0.0 && it.abs() < 9e15;
        let whole = |it: &Value| it.as_f64().filter(is_whole).map(|it| it as i64);
        let integer = self.typed(name, "an integer", |it| it.as_i64().or_else(|| whole(it)))?;
        let (min, max) = (*range.start() as f64, *range.end() as f64);
        self.require_range(name, range.contains(&integer), min, max);
        Some(integer)
    }

    fn require_range(&self, name: &str, is_within: bool, min: f64, max: f64) {
        let expected = match max >= u32::MAX.into() {
            true => format!("at least {min}"),
            false => format!("between {min} and {max}"),
        };
        self.require(is_within, name, &expected);
    }

    /// Returns an object.
    pub fn object(&self, name: &str) -> Option<ObjectReader<'a>> {
        let object = self.typed(name, "an object", Value::as_object)?;
        Some(self.nested(name, object))
    }

    /// Returns a list.
    pub fn list(&self, name: &str) -> Option<&'a [Value]> {
        self.typed(name, "a list", Value::as_array)
            .map(Vec::as_slice)
    }

    /// Returns a list of objects, empty if the field is absent.
    pub fn objects(&self, name: &str) -> Vec<ObjectReader<'a>> {
        let list = self.list(name).unwrap_or_default();
        self.elements(name, list).collect()
    }

    /// Returns an iterator over the objects of the list in the field `name`; each is read when the
    /// iterator reaches it.
    pub fn elements(&self, name: &str, list: &'a [Value]) -> impl Iterator<Item = Self> {
        let each = list.iter().enumerate();
        each.filter_map(move |(at, value)| self.element(&format!("{name}[{at}]"), value))
    }

    /// Returns an element of a list, which must be an object; `name` is its path.
    pub fn element(&self, name: &str, value: &'a Value) -> Option<ObjectReader<'a>> {
        let object = value.as_object();
        if object.is_none() {
            self.wrong_type(name, "an object");
        }
        object.map(|it| self.nested(name, it))
    }

    /// Returns the strings of the list in the field `name`.
    pub fn strings(&self, name: &str, list: &'a [Value]) -> Vec<String> {
        let each = list.iter().enumerate();
        each.filter_map(|(at, value)| {
            if !value.is_string() {
                self.wrong_type(&format!("{name}[{at}]"), "a string");
            }
            value.as_str().map(str::to_owned)
        })
        .collect()
    }

    /// Rejects a field that is not in `known`.
    pub fn require_known(&self, known: &[&str]) {
        let mut names = self.fields.keys();
        if let Some(name) = names.find(|it| !known.contains(&it.as_str())) {
            self.unknown(name);
        }
    }

    /// Rejects a field of an item that is absent.
    fn require_present(&self, name: &str) -> bool {
        let is_present = self.get(name).is_some();
        if !is_present {
            self.missing(name, "An item of this type requires it.");
        }
        is_present
    }

    /// Returns a string of an item, empty if it is invalid. The field is required.
    pub fn item_text(&self, name: &str) -> &'a str {
        match self.require_present(name) {
            true => self.optional_item_text(name).unwrap_or_default(),
            false => "",
        }
    }

    /// Returns a string of an item.
    pub fn optional_item_text(&self, name: &str) -> Option<&'a str> {
        let text = self.text(name)?;
        self.require_text_limit(name, text);
        Some(text)
    }

    /// Rejects a text that is too long for an item.
    pub fn require_text_limit(&self, name: &str, text: &str) {
        let is_short = text.len() <= MAX_TEXT_BYTES;
        self.require(is_short, name, "at most 10 MiB of text");
    }

    /// Returns a field of an item that `read` converts; it returns `None` for another type. The
    /// field is required.
    pub fn item_field<T>(
        &self,
        name: &str,
        expected: &str,
        read: impl FnOnce(&'a Value) -> Option<T>,
    ) -> Option<T> {
        self.require_present(name);
        self.typed(name, expected, read)
    }

    /// Returns a reader of an object in an item. The field is required.
    pub fn item_object(&self, name: &str) -> Option<ObjectReader<'a>> {
        self.require_present(name);
        self.object(name)
    }
}

/// Returns the variant of an enum with this name.
///
/// # Errors
/// Returns the names of the variants.
pub fn parse_word<'a, T: Deserialize<'a>>(word: &'a str) -> Result<T, UnknownWord> {
    T::deserialize(word.into_deserializer())
}

/// A string that is not a variant of an enum; contains the variants.
#[derive(Debug)]
pub struct UnknownWord(String);

impl fmt::Display for UnknownWord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for UnknownWord {}

impl serde::de::Error for UnknownWord {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self(message.to_string())
    }

    fn unknown_variant(_: &str, expected: &'static [&'static str]) -> Self {
        Self(format!("one of {}", expected.join(", ")))
    }
}
