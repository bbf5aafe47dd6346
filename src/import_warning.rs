//! What had to be put right in a file that somebody brought, or was left out, and what is wrong with a
//! lorebook: a code with its values, which a client says in its reader's language, and a sentence for
//! everybody else.
//!
//! **Invariant:** a code is never used for something else. Every code has a sentence in each
//! language of the client; `tests/web/warnings.test.mjs` reads them from the sources.

use std::borrow::Cow;
use std::ops::Deref;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

/// Something to tell whoever brought a file, or wrote a book. As a text it is its sentence.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = Warning)]
pub struct ImportWarning {
    /// What it is; the same in every version.
    #[schema(value_type = String)]
    pub code: Cow<'static, str>,
    /// What its sentence names: texts and numbers.
    #[schema(value_type = Object)]
    pub params: Map<String, Value>,
    /// A sentence in English. One that was stored has it no more: it is kept beside it.
    #[serde(skip)]
    pub message: String,
}

impl ImportWarning {
    /// A warning that names nothing.
    pub fn new(code: &'static str, message: impl Into<String>) -> Self {
        Self {
            code: Cow::Borrowed(code),
            params: Map::new(),
            message: message.into(),
        }
    }

    /// The same, naming this too.
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

/// The sentences of warnings.
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
    fn a_warning_is_a_code_for_programs_and_a_sentence_for_people() {
        let warning = ImportWarning::new("assets_missing", "Two are missing.").with("n", 2);

        assert_eq!(
            json!(warning),
            json!({"code": "assets_missing", "params": {"n": 2}})
        );
        assert_eq!(sentences(&[warning]), ["Two are missing."]);
    }
}
