//! Defines the request and response bodies of the endpoints that list, create and change
//! conversations or mark them as read.

use std::borrow::Cow;

use base::ids::ConversationId;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::openapi::schema::{AnyOfBuilder, SchemaType, Type};
use utoipa::openapi::{ObjectBuilder, Ref, RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

use crate::accounts::name_schemas::TitleSchema;
use crate::runs::reading::views::ConversationView;
use crate::web::api::space_settings;
use crate::web::extract::json_body;
use crate::web::openapi::endpoint::NamedSchema;
use crate::web::openapi::schemas;

/// A new conversation.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CreateConversation {
    pub title: Option<String>,
    /// Defaults to `root`.
    pub kind: Option<NewConversationKind>,
    /// Required for a thread: a conversation of the same space. A root has none.
    pub parent_conversation_id: Option<ConversationId>,
}

/// The kinds that can be created here. A branch is created from a message.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NewConversationKind {
    Root,
    Thread,
}

impl PartialSchema for CreateConversation {
    fn schema() -> RefOr<Schema> {
        let kind = |word: &str| {
            let kinds = SchemaType::from_iter([Type::String, Type::Null]);
            let words = [Some(word.to_owned()), None];
            ObjectBuilder::new()
                .schema_type(kinds)
                .enum_values(Some(words))
        };
        let titled =
            || schemas::deny_unknown().property("title", schemas::nullable::<TitleSchema>());
        let root = titled()
            .property("kind", kind("root"))
            .property("parent_conversation_id", schemas::null());
        let only_thread = ObjectBuilder::new().schema_type(Type::String);
        let thread = titled()
            .property("kind", only_thread.enum_values(Some(["thread"])))
            .required("kind")
            .property(
                "parent_conversation_id",
                Ref::from_schema_name(ConversationId::name()),
            )
            .required("parent_conversation_id");
        AnyOfBuilder::new()
            .item(root)
            .item(thread)
            .description(Some(
                "A root, or a thread whose parent is a conversation of its space.",
            ))
            .into()
    }
}

impl ToSchema for CreateConversation {
    fn name() -> Cow<'static, str> {
        "NewConversation".into()
    }

    fn schemas(named: &mut Vec<NamedSchema>) {
        named.extend(schemas::for_type::<TitleSchema>());
        named.extend(schemas::for_type::<ConversationId>());
    }
}

/// Changes to a conversation.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = ConversationChange)]
pub struct UpdateConversation {
    #[serde(default, deserialize_with = "json_body::present")]
    #[schema(value_type = TitleSchema)]
    pub title: Option<String>,
    #[serde(default, deserialize_with = "json_body::present")]
    #[schema(value_type = space_settings::KnownSettings)]
    pub settings: Option<Map<String, Value>>,
}

/// The caller's read position.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = ReadMark)]
pub struct MarkRead {
    /// The `seq` of the last message read; 0 if none.
    #[schema(minimum = 0)]
    pub seq: i64,
}

/// A conversation in a list, with the caller's read position.
#[derive(Serialize, ToSchema)]
#[schema(as = ListedConversation)]
pub struct ConversationSummary {
    #[serde(flatten)]
    pub view: ConversationView,
    /// Equal to `last_seq` if all later messages are whispers to others.
    pub last_read_seq: i64,
}
