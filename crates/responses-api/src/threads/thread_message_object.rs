//! Defines the object of a message of a thread as clients see it.

use base::clock::Timestamp;
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use crate::objects::seconds;
use crate::threads::thread_status::{ThreadMessageRole, ThreadMessageStatus};

/// A message as it is stored.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredThreadMessage {
    pub id: String,
    pub created_at: Timestamp,
    pub assistant_id: Option<String>,
    pub thread_id: String,
    pub run_id: Option<String>,
    pub role: ThreadMessageRole,
    pub status: ThreadMessageStatus,
    pub incomplete_details: Option<Value>,
    /// When it ended, completed or not.
    pub ended_at: Option<Timestamp>,
    /// A list of parts, as the object contains them.
    pub content: Value,
    pub metadata: Value,
}

/// A message of a thread.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub struct ThreadMessageObject {
    pub id: String,
    object: &'static str,
    created_at: i64,
    assistant_id: Option<String>,
    thread_id: String,
    run_id: Option<String>,
    role: ThreadMessageRole,
    status: ThreadMessageStatus,
    #[schema(value_type = Option<Object>)]
    incomplete_details: Option<Value>,
    completed_at: Option<i64>,
    incomplete_at: Option<i64>,
    #[schema(value_type = Vec<Object>)]
    content: Value,
    #[schema(value_type = Vec<Object>)]
    attachments: Vec<Value>,
    #[schema(value_type = Object)]
    metadata: Value,
}

impl From<StoredThreadMessage> for ThreadMessageObject {
    fn from(stored: StoredThreadMessage) -> Self {
        let ended_as = |status| {
            let ended_at = stored.ended_at.filter(|_| stored.status == status);
            ended_at.map(seconds)
        };
        Self {
            id: stored.id,
            object: "thread.message",
            created_at: seconds(stored.created_at),
            assistant_id: stored.assistant_id,
            thread_id: stored.thread_id,
            run_id: stored.run_id,
            role: stored.role,
            status: stored.status,
            incomplete_details: stored.incomplete_details,
            completed_at: ended_as(ThreadMessageStatus::Completed),
            incomplete_at: ended_as(ThreadMessageStatus::Incomplete),
            content: stored.content,
            attachments: Vec::new(),
            metadata: stored.metadata,
        }
    }
}

#[cfg(test)]
mod tests {
    use base::clock::Timestamp;
    use serde_json::json;

    use super::{StoredThreadMessage, ThreadMessageObject};
    use crate::threads::thread_status::{ThreadMessageRole, ThreadMessageStatus};

    fn stored(status: ThreadMessageStatus) -> StoredThreadMessage {
        StoredThreadMessage {
            id: "msg_1".to_owned(),
            created_at: Timestamp(1_999),
            assistant_id: None,
            thread_id: "thread_1".to_owned(),
            run_id: None,
            role: ThreadMessageRole::User,
            status,
            incomplete_details: None,
            ended_at: Some(Timestamp(2_000)),
            content: json!([]),
            metadata: json!({}),
        }
    }

    #[test]
    fn a_message_has_exactly_this_json() {
        let object = ThreadMessageObject::from(stored(ThreadMessageStatus::Completed));

        assert_eq!(
            serde_json::to_string(&object).unwrap(),
            r#"{"id":"msg_1","object":"thread.message","created_at":1,"assistant_id":null,"thread_id":"thread_1","run_id":null,"role":"user","status":"completed","incomplete_details":null,"completed_at":2,"incomplete_at":null,"content":[],"attachments":[],"metadata":{}}"#
        );
    }

    #[test]
    fn a_message_that_was_cut_off_is_not_completed() {
        let object = json!(ThreadMessageObject::from(stored(
            ThreadMessageStatus::Incomplete
        )));

        assert_eq!(object["completed_at"], json!(null));
        assert_eq!(object["incomplete_at"], 2);
    }
}
