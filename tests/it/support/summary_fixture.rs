//! A conversation that outgrows the window of its model, which summarizes in a way that a test can
//! read.

use std::pin::pin;

use base::ids::UserId;
use sea_orm::ActiveValue::Set;
use sea_orm::{ActiveModelTrait, DbErr, IntoActiveModel};
use serde_json::{Value, json};
use tokio::select;
use troupe::conversations::{conversation, message};
use troupe::memories::message_changes::MessageChange;
use troupe::memories::summaries::summary_edit::{SummaryEdit, SummaryUpdate};
use troupe::memories::summaries::{summary, summary_changes, summary_edit};

use crate::support::backends::TestBackend;
use crate::support::engine_test::EngineTest;
use crate::support::fake_provider::script::{HoldPoint, ResponseScript};

/// Exchanges that exceed the window of [`open_summaries`] once.
pub const LONG: usize = 24;

/// The summary of messages of which the scripted model keeps no word.
const NOTHING: &str = "Nothing";

/// A conversation in a window of about 20 exchanges, without memories.
pub async fn open_summaries(backend: TestBackend) -> EngineTest {
    let app = EngineTest::builder(backend)
        .rules(|it| {
            it.settings = json!({
                "preset": {"context_tokens": 1_000, "max_tokens": 100},
                "memory": {"learn": false, "recall": false, "summaries": {"chunk_messages": 10}},
            });
        })
        .open()
        .await;
    app.upstream.answer_with(|body| answer(body, None));
    app
}

/// Summarizes messages by their first words, and continues a summary by appending its parts.
pub fn answer(body: &Value, gate: Option<&HoldPoint>) -> ResponseScript {
    let system = body["messages"][0]["content"].as_str().unwrap_or_default();
    let input = body["messages"][1]["content"].as_str().unwrap_or_default();
    let input: Value = serde_json::from_str(input).unwrap_or_default();
    let words = |list: &Value, field: &str| -> Vec<String> {
        let texts = list.as_array().into_iter().flatten();
        texts
            .filter_map(|it| it[field].as_str())
            .map(str::to_owned)
            .collect()
    };
    let first_word = |it: String| it.split(' ').next().unwrap_or_default().to_owned();
    let summary: Vec<String> = if system.starts_with("You summarize") {
        let texts = words(&input["messages"], "text")
            .into_iter()
            .map(first_word);
        texts.filter(|it| it.starts_with('W')).collect()
    } else if system.starts_with("You maintain") {
        let mut parts = words(&input["parts"], "text");
        parts.retain(|it| it != NOTHING);
        parts.insert(0, input["summary"].as_str().unwrap_or_default().to_owned());
        parts
    } else {
        return ResponseScript::say("Indeed, the sea was rough, and the wind came from the north.");
    };
    let summary = match summary.join(" ").trim() {
        "" => NOTHING.to_owned(),
        text => text.to_owned(),
    };
    let script = ResponseScript::stream()
        .role()
        .text(&json!({ "summary": summary }).to_string())
        .finish("stop")
        .usage(7, 5)
        .done();
    ResponseScript {
        gate: gate.cloned(),
        ..script
    }
}

impl EngineTest {
    /// Says one sentence that begins with `W{n}`, and waits for the reply.
    pub async fn say(&self, n: usize) {
        self.user
            .post(&format!("W{n} they sailed on past the harbor wall."))
            .await;
        self.settle().await;
    }

    /// Says this many sentences without summaries. Returns the number of replies.
    pub async fn talk_without_summaries(&self, n_exchanges: usize) -> usize {
        let first = self.messages().await.len() / 2;
        for n in first..first + n_exchanges {
            self.say(n).await;
        }
        n_exchanges
    }

    /// Says this many sentences, and summarizes whenever a summary is requested.
    pub async fn talk(&self, n_exchanges: usize) {
        let first = self.messages().await.len() / 2;
        for n in first..first + n_exchanges {
            self.say(n).await;
            self.summarize().await;
        }
    }

    pub async fn summarize(&self) -> usize {
        let learning = self.learning();
        let mut all_due = pin!(learning.run_due());
        loop {
            // A long conversation causes more events than the queue of the recorder holds.
            select! {
                done = &mut all_due => return done.expect("the database answers"),
                () = self.events.next_frame_or_a_moment() => {}
            }
        }
    }

    pub async fn running(&self) -> Option<summary::Model> {
        let found = summary::find_running(self.db.reader(), self.conversation);
        found.await.expect("the database answers")
    }

    pub async fn in_use(&self) -> summary::Model {
        self.running().await.expect("a running summary")
    }

    pub async fn parts(&self) -> Vec<(i64, i64)> {
        let parts = summary::list_parts(self.db.reader(), self.conversation);
        let parts = parts.await.expect("the database answers").into_iter();
        parts.map(|it| (it.from_seq, it.to_seq)).collect()
    }

    /// Says one more sentence, and returns the texts of the prompt of its reply.
    pub async fn prompt_texts(&self) -> Vec<String> {
        let n = self.messages().await.len();
        self.say(n).await;
        // The newest first: the server keeps only the last requests.
        let mut sent = (0..self.upstream.n_requests())
            .rev()
            .map(|i| self.upstream.body(i));
        let is_reply = |it: &Value| {
            !it["messages"][1]["content"]
                .as_str()
                .is_some_and(|it| it.starts_with('{'))
        };
        let last = sent.find(is_reply).expect("a prompt");
        let texts = last["messages"].as_array().expect("a list").iter();
        texts
            .map(|it| it["content"].as_str().expect("a text").to_owned())
            .collect()
    }

    /// The same, as one text.
    pub async fn prompt(&self) -> String {
        self.prompt_texts().await.join("\n")
    }

    /// Changes the text of a message that a summary covers, as a step of the engine does.
    pub async fn edit_covered(&self, word: &str, text: &str) {
        let mut row = self.message_of(word).await;
        (row.content, row.version) = (text.to_owned(), row.version + 1);
        let now = self.clock.now();
        let changed = self.db.write(move |tx| {
            let row = row.clone();
            Box::pin(async move {
                let conversation = conversation::lock(tx, row.conversation_id)
                    .await?
                    .expect("a row");
                let seq = row.seq;
                row.into_active_model().reset_all().update(tx).await?;
                let mut next = conversation.clone().into_active_model();
                // The node keeps the history of this `rev`.
                next.rev = Set(conversation.rev + 1);
                next.update(tx).await?;
                summary_changes::apply(tx, &conversation, seq, MessageChange::TextChanged, now)
                    .await
            })
        });
        let changed: Result<bool, DbErr> = changed.await;
        changed.expect("the database answers");
    }

    pub async fn owner(&self) -> UserId {
        let sql = format!(
            "SELECT CAST(owner_id AS TEXT) FROM spaces WHERE id = {}",
            self.space.0
        );
        UserId(self.facts().await.number(&sql).await)
    }

    pub async fn message_of(&self, word: &str) -> message::Model {
        let found = self.messages().await.into_iter();
        let mut found = found.filter(|it| it.content.starts_with(word));
        found.next().expect("the message")
    }

    pub async fn edit_summary(&self, change: SummaryEdit) -> summary::Model {
        let of = self.in_use().await;
        let by = self.owner().await;
        let edited = summary_edit::edit(&self.db, &of, change, (by, of.version), self.clock.now());
        match edited.await.expect("the database answers") {
            Some(SummaryUpdate::Updated(row)) => row,
            other => panic!("not updated: {other:?}"),
        }
    }
}

pub fn with_content(content: &str) -> SummaryEdit {
    SummaryEdit {
        content: Some(content.to_owned()),
        facts: None,
    }
}

/// Returns whether a text contains this word, and not only one that begins with it.
pub fn has_word(text: &str, word: &str) -> bool {
    let words = text.split(|it: char| !it.is_alphanumeric());
    words.into_iter().any(|it| it == word)
}
