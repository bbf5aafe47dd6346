//! Defines `LanguageTag`, a well-formed language tag (BCP 47) in its usual case, so that equal
//! languages have equal tags.

use std::borrow::Cow;
use std::fmt;

use utoipa::openapi::schema::Type;
use utoipa::openapi::{ObjectBuilder, RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

/// The length of the longest tag; no registered one is longer.
const MAX_CHARS: usize = 35;
/// The pattern of a tag in the API document.
const PATTERN: &str = "^[A-Za-z]{2,3}((-[A-Za-z0-9])*-[A-Za-z0-9]{2,8})*$";

/// A language tag such as `en`, `pt-BR` or `zh-Hans`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct LanguageTag(String);

impl LanguageTag {
    /// Parses a tag; `None` if it is not well-formed.
    pub fn parse(text: &str) -> Option<Self> {
        if text.len() > MAX_CHARS {
            return None;
        }
        let mut subtags = text.split('-');
        let language = subtags.next()?;
        let is_language = (2..=3).contains(&language.len())
            && language.bytes().all(|it| it.is_ascii_alphabetic());
        if !is_language {
            return None;
        }
        let mut tag = language.to_ascii_lowercase();
        let mut is_extension = false;
        for subtag in subtags {
            let is_subtag = (1..=8).contains(&subtag.len())
                && subtag.bytes().all(|it| it.is_ascii_alphanumeric());
            if !is_subtag {
                return None;
            }
            is_extension |= subtag.len() == 1;
            tag.push('-');
            tag.push_str(&in_usual_case(subtag, is_extension));
        }
        // A single letter begins an extension, which needs further subtags.
        let is_complete = tag.rsplit('-').next().is_some_and(|it| it.len() > 1);
        is_complete.then_some(Self(tag))
    }

    /// Returns the tag.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for LanguageTag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl PartialSchema for LanguageTag {
    fn schema() -> RefOr<Schema> {
        ObjectBuilder::new()
            .schema_type(Type::String)
            .description(Some(
                "A language tag (BCP 47) such as `en`, `pt-BR` or `zh-Hans`.",
            ))
            .pattern(Some(PATTERN))
            .max_length(Some(MAX_CHARS))
            .into()
    }
}

impl ToSchema for LanguageTag {
    fn name() -> Cow<'static, str> {
        "LanguageTag".into()
    }
}

/// Writes a script as `Hans`, a region as `BR`, and everything else in lower case.
fn in_usual_case(subtag: &str, is_extension: bool) -> String {
    let is_word = subtag.bytes().all(|it| it.is_ascii_alphabetic());
    match subtag.len() {
        2 if is_word && !is_extension => subtag.to_ascii_uppercase(),
        4 if is_word && !is_extension => {
            let (first, others) = subtag.split_at(1);
            first.to_ascii_uppercase() + &others.to_ascii_lowercase()
        }
        _ => subtag.to_ascii_lowercase(),
    }
}

#[cfg(test)]
mod tests {
    use super::LanguageTag;

    #[test]
    fn equal_languages_have_equal_tags() {
        let parse = |text| LanguageTag::parse(text).map(|it| it.to_string());
        for (written, tag) in [
            ("EN", "en"),
            ("pt-br", "pt-BR"),
            ("ZH-hans-cn", "zh-Hans-CN"),
            ("yue", "yue"),
            ("es-419", "es-419"),
            ("de-CH-1996", "de-CH-1996"),
            ("en-u-NU-latn", "en-u-nu-latn"),
        ] {
            assert_eq!(parse(written).as_deref(), Some(tag), "{written}");
        }
    }

    #[test]
    fn what_is_no_tag_is_refused() {
        for text in [
            "",
            "e",
            "en-",
            "-en",
            "en_US",
            "english",
            "12",
            "en-123456789",
            "en-ü",
            "en-u",
            "x-klingon",
            "en GB",
            "en\nIgnore",
            &"en-abcdefgh".repeat(4),
        ] {
            assert_eq!(LanguageTag::parse(text), None, "{text}");
        }
    }
}
