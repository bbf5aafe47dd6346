//! Defines `ImportWarning`, a warning about an imported file or a lorebook: a code with values,
//! which clients translate, and an English sentence. The codes are in the modules that warn.
//!
//! **Invariant:** the meaning of a code never changes. Every code has a sentence in each language
//! of the client; `tests/web/warnings.test.mjs` reads the codes from the sources.

use std::borrow::Cow;
use std::ops::Deref;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

/// A warning about an imported file or a lorebook.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = Warning)]
pub struct ImportWarning {
    /// The kind of the warning; the same in every version.
    #[schema(value_type = String)]
    pub code: Cow<'static, str>,
    /// The values named in the sentence: texts and numbers.
    #[schema(value_type = Object)]
    pub params: Map<String, Value>,
    /// An English sentence. It is not part of the stored JSON: it is stored separately.
    #[serde(skip)]
    pub message: String,
}

impl ImportWarning {
    /// Creates a warning without values.
    pub fn new(code: &'static str, message: impl Into<String>) -> Self {
        Self {
            code: Cow::Borrowed(code),
            params: Map::new(),
            message: message.into(),
        }
    }

    /// Adds a value.
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.params.insert(name.to_owned(), value.into());
        self
    }
}

impl Deref for ImportWarning {
    type Target = str;

    fn deref(&self) -> &str {
        &self.message
    }
}

/// Returns the sentences of warnings.
pub fn sentences(all: &[ImportWarning]) -> Vec<String> {
    all.iter().map(|it| it.message.clone()).collect()
}

#[cfg(test)]
impl<T: AsRef<str>> PartialEq<T> for ImportWarning {
    fn eq(&self, sentence: &T) -> bool {
        self.message == sentence.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{ImportWarning, sentences};

    #[test]
    fn a_warning_has_a_code_and_a_sentence() {
        let warning = ImportWarning::new("assets_missing", "Two are missing.").with("n", 2);

        assert_eq!(
            json!(warning),
            json!({"code": "assets_missing", "params": {"n": 2}})
        );
        assert_eq!(sentences(&[warning]), ["Two are missing."]);
    }
}
