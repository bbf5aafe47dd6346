//! Defines the answer with a translation, and the WebSocket events about one, which only the person who
//! asked for it receives.

use std::sync::Arc;

use base::ids::MessageId;
use realtime::envelope::Event;
use serde::Serialize;
use utoipa::ToSchema;

/// A translation of a message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = MessageTranslation)]
pub struct TranslationView {
    pub message_id: MessageId,
    /// The version of the message that was translated.
    pub version: i64,
    /// The language of the text (BCP 47).
    pub language: String,
    pub text: String,
    /// `text` as safe HTML; clients must not show any other HTML.
    #[schema(value_type = String)]
    pub html: Arc<str>,
}

/// A translation that the user asked for is ready.
#[derive(Debug, Serialize, ToSchema)]
pub struct MessageTranslated<'a> {
    pub message_id: MessageId,
    pub version: i64,
    pub language: &'a str,
    pub text: &'a str,
    /// `text` as safe HTML.
    pub html: &'a str,
}

impl<'a> From<&'a TranslationView> for MessageTranslated<'a> {
    fn from(view: &'a TranslationView) -> Self {
        Self {
            message_id: view.message_id,
            version: view.version,
            language: &view.language,
            text: &view.text,
            html: &view.html,
        }
    }
}

/// A translation that the user asked for could not be made. The next request tries again.
#[derive(Debug, Serialize, ToSchema)]
pub struct TranslationFailed<'a> {
    pub message_id: MessageId,
    pub version: i64,
    pub language: &'a str,
    /// `upstream_error`, `token_limit_exceeded`, `message_changed` or `unavailable`.
    pub code: &'static str,
}

impl Event for MessageTranslated<'_> {
    fn name(&self) -> &'static str {
        "message_translated"
    }
}

impl Event for TranslationFailed<'_> {
    fn name(&self) -> &'static str {
        "translation_failed"
    }
}
