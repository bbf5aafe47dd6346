//! What the tests of assistants and threads share: threads with texts, and rows of runs.

use responses_api::threads::thread_status::{ThreadMessageRole, ThreadMessageStatus};
use sea_orm::DbErr;
use serde_json::{Value, json};
use troupe::responses::threads::thread_message::MessageDraft;
use troupe::responses::threads::{thread_error, thread_message, thread_writer};

use crate::support::database_facts::DatabaseFacts;
use crate::support::http_client::expect;
use crate::v1::fixture::{V1Fixture, id};

/// A message of the user.
pub fn user(text: &str) -> Value {
    json!({ "role": "user", "content": text })
}

/// Creates an assistant with the model of the tests and these fields.
pub async fn create_assistant(fixture: &V1Fixture, fields: Value) -> Value {
    let mut body = fields;
    body["model"] = json!("scripted");
    expect(200, fixture.program.post("/assistants", body).await)
}

/// Creates a thread with these messages of the user, and returns its id.
pub async fn create_thread(fixture: &V1Fixture, texts: &[&str]) -> String {
    let messages: Vec<Value> = texts.iter().map(|it| user(it)).collect();
    let body = json!({ "messages": messages });
    let made = expect(200, fixture.program.post("/threads", body).await);
    id(&made).to_owned()
}

/// Returns the objects of a list.
pub async fn objects(fixture: &V1Fixture, path: &str) -> Vec<Value> {
    let list = expect(200, fixture.program.get(path).await);
    list["data"].as_array().expect("a list").clone()
}

/// Returns the texts of the messages of a thread, oldest first.
pub async fn texts(fixture: &V1Fixture, thread: &str) -> Vec<String> {
    let messages = objects(fixture, &format!("/threads/{thread}/messages?order=asc")).await;
    messages.iter().map(text_of).collect()
}

/// The text of the first part of a message.
pub fn text_of(message: &Value) -> String {
    let text = &message["content"][0]["text"]["value"];
    text.as_str().expect("the part is a text").to_owned()
}

/// Inserts a run that waits for outputs of its client for a long time.
pub async fn insert_run(fixture: &V1Fixture, thread: &str, run: &str) {
    let mut facts = DatabaseFacts::open(&fixture.app.database).await;
    facts
        .execute(&format!(
            "INSERT INTO thread_runs (id, thread_id, assistant_id, user_id, status, spec, metadata, expires_at, created_at) \
             SELECT '{run}', id, 'asst_1', user_id, 'requires_action', '{{}}', '{{}}', 9000000000000, 0 \
             FROM threads WHERE id = '{thread}'"
        ))
        .await;
}

/// Ends a run.
pub async fn complete_run(fixture: &V1Fixture, run: &str) {
    let mut facts = DatabaseFacts::open(&fixture.app.database).await;
    let update = format!("UPDATE thread_runs SET status = 'completed' WHERE id = '{run}'");
    facts.execute(&update).await;
}

/// A message that a run writes.
pub fn answer_of(run: &str, text: &str) -> MessageDraft {
    let text = json!({ "value": text, "annotations": [] });
    MessageDraft {
        id: format!("msg_of_{run}"),
        role: ThreadMessageRole::Assistant,
        content: json!([{ "type": "text", "text": text }]),
        status: ThreadMessageStatus::Completed,
        assistant_id: Some("asst_1".to_owned()),
        run_id: Some(run.to_owned()),
        hidden_for_run_id: None,
        metadata: json!({}),
        incomplete_details: None,
    }
}

/// Appends messages as a run does, while it is active.
pub async fn append_as_run(
    fixture: &V1Fixture,
    thread: &str,
    drafts: Vec<MessageDraft>,
) -> Vec<thread_message::Model> {
    let (thread, now) = (thread.to_owned(), fixture.app.app.clock.now());
    let write = fixture.app.app.db.write(move |tx| {
        Box::pin(
            async move { thread_writer::append_in_transaction(tx, &thread, drafts, now).await },
        )
    });
    let appended: Result<_, thread_error::ThreadError> = write.await;
    appended.expect("the messages are appended")
}

/// Runs the cleanup that each node repeats.
pub async fn clean_up(fixture: &V1Fixture) {
    let services = fixture.app.app.responses.services();
    let cleaned: Result<(), DbErr> = troupe::responses::recovery::clean_up(services).await;
    cleaned.expect("the cleanup succeeds");
}
