//! Writes data of every kind through the API and finds acknowledged writes that were lost.

use serde_json::json;

use crate::support::database_facts::DatabaseFacts;
use crate::support::file_uploads::bring;
use crate::support::http_client::HttpClient;
use crate::support::v1_client::V1Client;

/// The values that identify the writes that were answered with 2xx.
#[derive(Default)]
pub struct AcknowledgedWrites {
    /// `table.column` and its value.
    rows: Vec<(&'static str, String)>,
    n_sessions: usize,
    n_written: usize,
}

/// The clients of one user, and the conversation that they post in.
pub struct Writer {
    pub person: HttpClient,
    pub program: V1Client,
    pub conversation: i64,
}

impl Writer {
    pub async fn new(person: &HttpClient, conversation: i64) -> Writer {
        Writer {
            person: person.clone(),
            program: V1Client::new(person).await,
            conversation,
        }
    }
}

impl AcknowledgedWrites {
    /// Posts one message; returns the status.
    pub async fn post(&mut self, writer: &Writer, text: &str) -> u16 {
        self.n_written += 1;
        let text = format!("{text} {}", self.n_written);
        let posted = writer
            .person
            .post_message(writer.conversation, &text, None)
            .await;
        self.record(posted.0, "messages.content", text);
        posted.0
    }

    /// Creates a space, a session, an imported preset and a stored response.
    pub async fn write_other_kinds(&mut self, writer: &Writer) {
        self.n_written += 1;
        let n = self.n_written;
        let name = format!("Space {n}");
        let made = writer
            .person
            .post("/api/spaces", json!({"name": name}))
            .await;
        self.record(made.0, "spaces.name", name);

        HttpClient::sign_in(writer.person.base(), "ann").await;
        self.n_sessions += 1;

        let file = include_bytes!("../../fixtures/presets/modern.json");
        let name = format!("Preset {n}");
        let file_name = format!("{name}.json");
        let imported = bring(&writer.person, "/api/presets/import", &file_name, file).await;
        self.record(imported.0, "presets.name", name);

        let request = json!({"model": "scripted", "input": format!("Question {n}")});
        let (status, response) = writer.program.post("/responses", request).await;
        let id = response["id"].as_str().unwrap_or_default().to_owned();
        self.record(status, "responses.id", id);
    }

    fn record(&mut self, status: u16, column: &'static str, value: String) {
        if status / 100 == 2 {
            self.rows.push((column, value));
        }
    }

    /// Returns the number of acknowledged writes.
    pub fn n_writes(&self) -> usize {
        self.rows.len() + self.n_sessions
    }

    /// Returns the acknowledged writes that another connection does not find.
    pub async fn missing(&self, facts: &mut DatabaseFacts) -> Vec<String> {
        let mut missing = Vec::new();
        for (column, value) in &self.rows {
            let (table, name) = column.split_once('.').expect("a table and a column");
            let sql = format!("SELECT '1' FROM {table} WHERE {name} = '{value}'");
            if facts.rows(&sql).await.len() != 1 {
                missing.push(format!("{column} = {value}"));
            }
        }
        let sql = "SELECT CAST(count(*) AS TEXT) FROM sessions";
        let stored = facts.number(sql).await;
        if stored < self.n_sessions as i64 {
            missing.push(format!("{} of {} sessions", stored, self.n_sessions));
        }
        missing
    }
}
