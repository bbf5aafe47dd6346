//! Reads the fields of a request one by one: `null` counts as absent, and errors name the field.

use std::ops::RangeInclusive;

use serde_json::{Map, Value, json};

use crate::web::v1::error::{V1Error, V1Result};

/// The fields of an object.
pub struct Fields<'a>(pub &'a Map<String, Value>);

impl<'a> Fields<'a> {
    /// Returns a field that is present and not `null`.
    pub fn get(&self, name: &str) -> Option<&'a Value> {
        self.0.get(name).filter(|it| !it.is_null())
    }

    /// Returns a boolean, or `default` if the field is absent.
    pub fn flag(&self, name: &str, default: bool) -> V1Result<bool> {
        match self.get(name) {
            None => Ok(default),
            Some(value) => value
                .as_bool()
                .ok_or_else(|| wrong_type(name, "true or false")),
        }
    }

    /// Returns a string.
    pub fn text(&self, name: &str) -> V1Result<Option<&'a str>> {
        let read = |value: &'a Value| value.as_str().ok_or_else(|| wrong_type(name, "a string"));
        self.get(name).map(read).transpose()
    }

    /// Returns a string that must be one of `words`.
    pub fn one_of(&self, name: &str, words: &[&str]) -> V1Result<Option<&'a str>> {
        let text = self.text(name)?;
        match text.is_none_or(|it| words.contains(&it)) {
            true => Ok(text),
            false => Err(wrong_value(name, &format!("one of {}", words.join(", ")))),
        }
    }

    /// Returns a number within a range.
    pub fn number(&self, name: &str, range: RangeInclusive<f64>) -> V1Result<Option<f64>> {
        let Some(value) = self.get(name) else {
            return Ok(None);
        };
        let number = value.as_f64().ok_or_else(|| wrong_type(name, "a number"))?;
        match range.contains(&number) {
            true => Ok(Some(number)),
            false => Err(out_of_range(name, *range.start(), *range.end())),
        }
    }

    /// Returns an integer within a range.
    pub fn integer(&self, name: &str, range: RangeInclusive<i64>) -> V1Result<Option<i64>> {
        let Some(value) = self.get(name) else {
            return Ok(None);
        };
        // SDKs of some languages send 16.0 for 16.
        let is_whole = |it: &f64| it.fract() == 0.0 && it.abs() < 9e15;
        let whole = value.as_f64().filter(is_whole).map(|it| it as i64);
        let whole = value.as_i64().or(whole);
        let whole = whole.ok_or_else(|| wrong_type(name, "an integer"))?;
        match range.contains(&whole) {
            true => Ok(Some(whole)),
            false => Err(out_of_range(
                name,
                *range.start() as f64,
                *range.end() as f64,
            )),
        }
    }

    /// Returns an object.
    pub fn object(&self, name: &str) -> V1Result<Option<&'a Map<String, Value>>> {
        let read = |value: &'a Value| {
            value
                .as_object()
                .ok_or_else(|| wrong_type(name, "an object"))
        };
        self.get(name).map(read).transpose()
    }

    /// Returns a list.
    pub fn list(&self, name: &str) -> V1Result<Option<&'a Vec<Value>>> {
        let read = |value: &'a Value| value.as_array().ok_or_else(|| wrong_type(name, "a list"));
        self.get(name).map(read).transpose()
    }

    /// Returns a list of objects, empty if the field is absent.
    pub fn objects(&self, name: &str) -> V1Result<Vec<&'a Map<String, Value>>> {
        let given = self.list(name)?.into_iter().flatten().enumerate();
        let read = |(at, value): (usize, &'a Value)| {
            let object = value.as_object();
            object.ok_or_else(|| wrong_type(&format!("{name}[{at}]"), "an object"))
        };
        given.map(read).collect()
    }

    /// Rejects a field that is not in `known`.
    pub fn require_known(&self, known: &[&str]) -> V1Result<()> {
        match self.0.keys().find(|it| !known.contains(&it.as_str())) {
            None => Ok(()),
            Some(name) => {
                let message = "Unknown parameter.";
                Err(V1Error::invalid("unknown_parameter", name, message))
            }
        }
    }

    /// Returns the caller's metadata: up to 16 short texts.
    pub fn metadata(&self) -> V1Result<Value> {
        let Some(metadata) = self.object("metadata")? else {
            return Ok(json!({}));
        };
        if metadata.len() > 16 {
            return Err(wrong_value("metadata", "at most 16 pairs"));
        }
        for (name, value) in metadata {
            let param = format!("metadata.{name}");
            let text = value
                .as_str()
                .ok_or_else(|| wrong_type(&param, "a string"))?;
            if name.chars().count() > 64 || text.chars().count() > 512 {
                let takes = "at most 512 characters, with a name of at most 64";
                return Err(wrong_value(&param, takes));
            }
        }
        Ok(Value::Object(metadata.clone()))
    }
}

fn out_of_range(name: &str, min: f64, max: f64) -> V1Error {
    let takes = match max >= u32::MAX.into() {
        true => format!("at least {min}"),
        false => format!("between {min} and {max}"),
    };
    wrong_value(name, &takes)
}

/// 400 `invalid_type`.
pub fn wrong_type(param: &str, takes: &str) -> V1Error {
    V1Error::invalid("invalid_type", param, format!("Must be {takes}."))
}

/// 400 `invalid_value`.
pub fn wrong_value(param: &str, takes: &str) -> V1Error {
    V1Error::invalid("invalid_value", param, format!("Must be {takes}."))
}

/// 400 `unsupported_parameter`.
pub fn unsupported(param: &str) -> V1Error {
    let message = "This parameter is not supported.";
    V1Error::invalid("unsupported_parameter", param, message)
}

/// Prefixes the error's field path with the name of the enclosing field.
pub fn nested_in(name: &str, problem: V1Error) -> V1Error {
    let inner = problem.param.clone().unwrap_or_default();
    problem.for_param(format!("{name}.{inner}"))
}
