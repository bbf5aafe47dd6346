//! Checks of the values of a preset: ranges, lengths and counts, each with the error that names its key.

/// An invalid value: its key, and what is allowed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ValidationError {
    /// For example `prompt_order.3.place`.
    pub field: String,
    pub message: String,
}

/// Checks the range of an integer.
///
/// # Errors
/// Returns `ValidationError` when the value is not allowed.
pub fn check_integer(
    field: &str,
    value: Option<i64>,
    min: i64,
    max: i64,
) -> Result<(), ValidationError> {
    match value.is_none_or(|it| (min..=max).contains(&it)) {
        true => Ok(()),
        false => Err(validation_error(
            field,
            format!("Must be between {min} and {max}."),
        )),
    }
}

/// Checks the range of a number.
///
/// # Errors
/// Returns `ValidationError` when the value is not allowed.
pub fn check_number(
    field: &str,
    value: Option<f64>,
    min: f64,
    max: f64,
) -> Result<(), ValidationError> {
    match value.is_none_or(|it| (min..=max).contains(&it)) {
        true => Ok(()),
        false => Err(validation_error(
            field,
            format!("Must be between {min} and {max}."),
        )),
    }
}

/// Checks the number of characters of a text.
///
/// # Errors
/// Returns `ValidationError` when the value is not allowed.
pub fn check_length(field: &str, text: &str, max: usize) -> Result<(), ValidationError> {
    match text.chars().count() <= max {
        true => Ok(()),
        false => Err(validation_error(
            field,
            format!("Must have at most {max} characters."),
        )),
    }
}

/// Checks the number of items of a list.
///
/// # Errors
/// Returns `ValidationError` when the value is not allowed.
pub fn check_count(field: &str, n: usize, max: usize) -> Result<(), ValidationError> {
    match n <= max {
        true => Ok(()),
        false => Err(validation_error(
            field,
            format!("Must have at most {max} items."),
        )),
    }
}

/// Checks the number of texts and the number of characters of each.
///
/// # Errors
/// Returns `ValidationError` when the value is not allowed.
pub fn check_texts(
    field: &str,
    texts: Option<&[String]>,
    (max, max_chars): (usize, usize),
) -> Result<(), ValidationError> {
    let texts = texts.unwrap_or_default();
    check_count(field, texts.len(), max)?;
    for (at, text) in texts.iter().enumerate() {
        check_length(&format!("{field}.{at}"), text, max_chars)?;
    }
    Ok(())
}

/// Returns the error for the key `field`.
pub fn validation_error(field: &str, message: impl Into<String>) -> ValidationError {
    ValidationError {
        field: field.to_owned(),
        message: message.into(),
    }
}
