//! Actions of users on existing texts: regenerate, select a swipe, branch, request suggestions.
//!
//! Whatever of it is refused (409, 422, 423) is refused; what was promised has to be there.

use rand::RngExt;
use reqwest::Method;
use serde_json::{Value, json};

use crate::record::PromisedText;
use crate::spaces::SpaceConversation;
use crate::user_actions::SimulatedUser;

/// The number of branches that one user creates.
const MAX_BRANCHES: usize = 3;
const MAX_TRIES: usize = 5;

impl SimulatedUser {
    /// Wants one of these things.
    pub async fn request_text(&mut self, room: &SpaceConversation) {
        // In a branch it is quiet: there the last word is more often that of a character.
        let branch = self.guest.conversations.iter().rfind(|it| it.is_branch);
        let branch = branch.filter(|_| self.dice.random_range(0..2) == 0);
        let room = &branch.unwrap_or(room).clone();
        match self.dice.random_range(0..8) {
            0..2 => self.regenerate(room, None).await,
            2 => {
                let message = self.some_message(room, "assistant").await;
                self.regenerate(room, message).await;
            }
            3 => self.switch(room).await,
            4 => self.branch(room).await,
            5 => self.lend_voice(room).await,
            6 => self.speak_for_oneself(room).await,
            _ => self.request_suggestions(room).await,
        }
    }

    async fn regenerate(&mut self, room: &SpaceConversation, message: Option<i64>) {
        let path = format!("/api/conversations/{}/regenerate", room.conversation);
        let body = message.map_or_else(|| json!({}), |it| json!({"message_id": it}));
        let (status, answer) = self
            .request_with_retry(Method::POST, &path, Some(&body))
            .await;
        // Without a run it is a job that continues: its branch is hidden until it is whole.
        if let (202, Some(run)) = (status, answer["run"]["id"].as_str()) {
            let conversation = answer["conversation_id"].as_i64();
            self.promised("another text", run, conversation);
        }
    }

    /// Shows another text of the newest message that has several.
    async fn switch(&mut self, room: &SpaceConversation) {
        let messages = self.messages(room).await;
        let several = |it: &&Value| it["swipes"]["count"].as_i64().unwrap_or(0) > 1;
        let Some(message) = messages.iter().rfind(several) else {
            return;
        };
        let n = message["swipes"]["count"].as_i64().unwrap_or(1);
        let path = format!("/api/messages/{}/swipes/select", message["id"]);
        let body = json!({"position": self.dice.random_range(0..n)});
        self.request_with_retry(Method::POST, &path, Some(&body))
            .await;
    }

    /// Continues from some message in a branch: reads there, and posts there.
    async fn branch(&mut self, room: &SpaceConversation) {
        let n = self
            .guest
            .conversations
            .iter()
            .filter(|it| it.is_branch)
            .count();
        let message = self.some_message(room, "").await;
        let Some(message) = message.filter(|_| n < MAX_BRANCHES) else {
            return;
        };
        let path = format!("/api/conversations/{}/branch", room.conversation);
        let body = json!({"message_id": message});
        let (status, answer) = self
            .request_with_retry(Method::POST, &path, Some(&body))
            .await;
        let branch = answer["conversation"]["id"].as_i64();
        if status != 201 {
            return;
        }
        self.promised("a branch", "", branch);
        if let Some(conversation) = branch {
            let room = SpaceConversation {
                conversation,
                is_branch: true,
                ..room.clone()
            };
            self.tab.enter(&room);
            self.guest.conversations.push(room);
        }
    }

    /// Has the copilot speak in its place for a while.
    async fn lend_voice(&mut self, room: &SpaceConversation) {
        let body = json!({
            "copilot_mode": "full",
            "copilot_remaining_steps": self.dice.random_range(1..4),
            "copilot_conversation_id": room.conversation,
        });
        let path = format!("/api/memberships/{}", room.seat);
        self.request_with_retry(Method::PATCH, &path, Some(&body))
            .await;
    }

    /// Turns the copilot off.
    pub async fn speak_for_oneself(&mut self, room: &SpaceConversation) {
        let path = format!("/api/memberships/{}", room.seat);
        let body = json!({"copilot_mode": "none"});
        self.request_with_retry(Method::PATCH, &path, Some(&body))
            .await;
    }

    async fn request_suggestions(&mut self, room: &SpaceConversation) {
        let count = self.dice.random_range(1..3);
        let path = format!(
            "/api/conversations/{}/copilot_candidates",
            room.conversation
        );
        let body = json!({"membership_id": room.seat, "count": count});
        self.request(Method::POST, &path, Some(&body)).await;
        // Where no answer came they may be written all the same.
        self.actions.lock().n_candidates += count;
    }

    /// Repeats a request a few times until a node answers: these are rare, and nodes are often
    /// down.
    async fn request_with_retry(
        &mut self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> (u16, Value) {
        let mut n_tries = 1;
        loop {
            let answer = self.request(method.clone(), path, body).await;
            let is_away = answer.0 == 0 || answer.0 >= 500;
            if !is_away || n_tries == MAX_TRIES {
                return answer;
            }
            self.move_on(n_tries).await;
            n_tries += 1;
        }
    }

    fn promised(&mut self, what: &'static str, run: &str, conversation: Option<i64>) {
        self.actions.lock().promised_texts.push(PromisedText {
            what,
            run: run.to_owned(),
            conversation: conversation.unwrap_or(0),
        });
    }

    /// One of the newest, of this role, if that matters.
    async fn some_message(&mut self, room: &SpaceConversation, role: &str) -> Option<i64> {
        let mut messages = self.messages(room).await;
        messages.retain(|it| role.is_empty() || it["role"] == role);
        if messages.is_empty() {
            return None;
        }
        let at = self.dice.random_range(0..messages.len());
        messages[at]["id"].as_i64()
    }

    async fn messages(&mut self, room: &SpaceConversation) -> Vec<Value> {
        let path = format!("/api/conversations/{}/messages?limit=10", room.conversation);
        let (_, answer) = self.request_with_retry(Method::GET, &path, None).await;
        answer["data"].as_array().cloned().unwrap_or_default()
    }
}
