//! OpenAPI schemas of usernames, passwords, display names and titles, with the limits that their
//! parsers enforce.
//!
//! **Invariant:** a schema and its parser accept the same values; the patterns list the same sets
//! of characters.

use std::borrow::Cow;

use utoipa::openapi::schema::{SchemaType, Type};
use utoipa::openapi::{KnownFormat, ObjectBuilder, RefOr, Schema, SchemaFormat};
use utoipa::{PartialSchema, ToSchema};

use crate::accounts::username_password::{Password, Username};

/// Characters that are trimmed.
macro_rules! blank {
    () => {
        "[\\t-\\r \\u0085\\u00a0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000]"
    };
}

/// Characters that may appear in one line.
macro_rules! in_line {
    () => {
        "[^\\u0000-\\u001f\\u007f-\\u009f\\u2028\\u2029]"
    };
}

/// Visible characters.
macro_rules! seen {
    () => {
        concat!(
            "[^\\u0000- \\u007f-\\u00a0\\u00ad\\u034f\\u061c\\u115f\\u1160\\u1680\\u17b4\\u17b5",
            "\\u180b-\\u180f\\u2000-\\u200f\\u2028-\\u202f\\u205f-\\u206f\\u2800\\u3000\\u3164",
            "\\ufe00-\\ufe0f\\ufeff\\uffa0]",
        )
    };
}

const DISPLAY_NAME_PATTERN: &str = concat!(
    "^",
    blank!(),
    "*",
    in_line!(),
    "*",
    seen!(),
    in_line!(),
    "*",
    blank!(),
    "*$",
);

/// A display name of at most 100 characters.
pub struct DisplayNameSchema;

/// A title of at most 200 characters.
pub struct TitleSchema;

/// A name from a character card, which is truncated and cleaned if necessary.
pub struct CardNameSchema;

impl PartialSchema for DisplayNameSchema {
    fn schema() -> RefOr<Schema> {
        display_name_schema(100).into()
    }
}

impl ToSchema for DisplayNameSchema {
    fn name() -> Cow<'static, str> {
        "ShownName".into()
    }
}

impl PartialSchema for TitleSchema {
    fn schema() -> RefOr<Schema> {
        display_name_schema(200).into()
    }
}

impl ToSchema for TitleSchema {
    fn name() -> Cow<'static, str> {
        "LongName".into()
    }
}

impl PartialSchema for CardNameSchema {
    fn schema() -> RefOr<Schema> {
        let about = "A name with at least one visible character. The server converts it to one line \
            of at most 100 characters.";
        let kinds = [Type::String, Type::Number, Type::Boolean];
        ObjectBuilder::new()
            .schema_type(SchemaType::from_iter(kinds))
            .pattern(Some(seen!()))
            .description(Some(about))
            .into()
    }
}

impl ToSchema for CardNameSchema {
    fn name() -> Cow<'static, str> {
        "CardName".into()
    }
}

impl PartialSchema for Username {
    fn schema() -> RefOr<Schema> {
        string_schema()
            .min_length(Some(2))
            .max_length(Some(32))
            .pattern(Some(r"^[\p{L}\p{Nd}_.-]+$"))
            .description(Some("Letters and digits of any script, `_`, `-` and `.`."))
            .into()
    }
}

impl ToSchema for Username {}

impl PartialSchema for Password {
    fn schema() -> RefOr<Schema> {
        string_schema()
            .min_length(Some(8))
            .max_length(Some(256))
            .format(Some(SchemaFormat::KnownFormat(KnownFormat::Password)))
            .description(Some("A new password."))
            .into()
    }
}

impl ToSchema for Password {
    fn name() -> Cow<'static, str> {
        "NewPassword".into()
    }
}

fn display_name_schema(max_chars: usize) -> ObjectBuilder {
    let about = format!("One line of 1 to {max_chars} characters, at least one of them visible.");
    string_schema()
        .min_length(Some(1))
        .max_length(Some(max_chars))
        .pattern(Some(DISPLAY_NAME_PATTERN))
        .description(Some(about))
}

fn string_schema() -> ObjectBuilder {
    ObjectBuilder::new().schema_type(Type::String)
}
