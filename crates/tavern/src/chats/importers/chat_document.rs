//! Detects, from its content, which program wrote a chat document, and converts it. Files are
//! untrusted; the caller has limited size, depth and number of values.

use serde_json::Value;

use crate::chats::importers::chat_builder::ImportedChat;
use crate::chats::importers::{agnai_chat, character_ai, kobold_save, risu_chat, webui_chat};

/// The program that wrote a chat document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChatKind {
    Agnai,
    Kobold,
    WebUi,
    CharacterAi,
    Risu,
}

impl ChatKind {
    /// Returns the name of the program.
    pub fn program(self) -> &'static str {
        match self {
            Self::Agnai => "Agnai",
            Self::Kobold => "KoboldAI",
            Self::WebUi => "text-generation-webui",
            Self::CharacterAi => "Character.AI",
            Self::Risu => "Risu",
        }
    }
}

/// Returns whether a document is a chat of one kind.
type Detector = fn(&Value) -> bool;

/// Returns which program wrote a document; `None` if it is not a chat.
pub fn kind_of(document: &Value) -> Option<ChatKind> {
    let kinds: [(ChatKind, Detector); 5] = [
        (ChatKind::Risu, risu_chat::is_chat),
        (ChatKind::Kobold, kobold_save::is_save),
        (ChatKind::WebUi, webui_chat::is_chat),
        (ChatKind::CharacterAi, character_ai::is_dump),
        (ChatKind::Agnai, agnai_chat::is_chat),
    ];
    let found = kinds.into_iter().find(|(_, is_kind)| is_kind(document));
    found.map(|(kind, _)| kind)
}

/// Converts a document to its chats that contain a message, in the order of the file.
pub fn convert(kind: ChatKind, document: &Value) -> Vec<ImportedChat> {
    let mut chats = match kind {
        ChatKind::Agnai => vec![agnai_chat::convert(document)],
        ChatKind::Kobold => vec![kobold_save::convert(document)],
        ChatKind::WebUi => vec![webui_chat::convert(document)],
        ChatKind::CharacterAi => character_ai::convert(document),
        ChatKind::Risu => risu_chat::convert(document),
    };
    chats.retain(|it| !it.messages.is_empty());
    chats
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{ChatKind, kind_of};

    #[test]
    fn each_program_is_recognized_by_the_content() {
        for (document, kind) in [
            (
                json!({"type": "risuChat", "data": {"message": []}}),
                Some(ChatKind::Risu),
            ),
            (
                json!({"gamestarted": true, "prompt": "", "actions": []}),
                Some(ChatKind::Kobold),
            ),
            (
                json!({"internal": [], "visible": []}),
                Some(ChatKind::WebUi),
            ),
            (
                json!({"histories": {"histories": []}}),
                Some(ChatKind::CharacterAi),
            ),
            (json!([{"turns": []}]), Some(ChatKind::CharacterAi)),
            (json!({"messages": [{"msg": "Hi."}]}), Some(ChatKind::Agnai)),
            (
                json!({"messages": [{"role": "user", "content": "Hi."}]}),
                None,
            ),
            (json!({"name": "Ada", "description": "A character."}), None),
            (json!([]), None),
            (json!("text"), None),
        ] {
            assert_eq!(kind_of(&document), kind, "{document}");
        }
    }
}
