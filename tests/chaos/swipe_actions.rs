//! Actions of users on existing texts: regenerate, continue, select a swipe, branch, request suggestions.
//!
//! A request may be rejected (409, 422, 423); the result of an accepted one must exist.

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
    /// Performs a random one of these actions.
    pub async fn request_text(&mut self, space_conversation: &SpaceConversation) {
        // In a branch fewer users post, so the newest message is more often that of a character.
        let branch = self.guest.conversations.iter().rfind(|it| it.is_branch);
        let branch = branch.filter(|_| self.rng.random_range(0..2) == 0);
        let space_conversation = &branch.unwrap_or(space_conversation).clone();
        match self.rng.random_range(0..8) {
            0..2 => self.regenerate(space_conversation, None).await,
            2 => {
                let message = self.some_message(space_conversation, "assistant").await;
                self.regenerate(space_conversation, message).await;
            }
            3 => self.switch(space_conversation).await,
            4 => self.branch(space_conversation).await,
            5 => self.enable_copilot(space_conversation).await,
            6 => self.disable_copilot(space_conversation).await,
            _ => self.request_suggestions(space_conversation).await,
        }
    }

    async fn regenerate(&mut self, space_conversation: &SpaceConversation, message: Option<i64>) {
        let path = format!(
            "/api/conversations/{}/regenerate",
            space_conversation.conversation
        );
        let body = message.map_or_else(|| json!({}), |it| json!({"message_id": it}));
        let (status, answer) = self
            .request_with_retry(Method::POST, &path, Some(&body))
            .await;
        // Without a run it is a job: its branch is hidden until it is complete.
        if let (202, Some(run)) = (status, answer["run"]["id"].as_str()) {
            let conversation = answer["conversation_id"].as_i64();
            self.promised("another text", run, conversation);
        }
    }

    /// Continues the newest message, if a character wrote it.
    pub async fn continue_newest(&mut self, space_conversation: &SpaceConversation) {
        let conversation = space_conversation.conversation;
        let path = format!("/api/conversations/{conversation}/continue");
        let (status, answer) = self
            .request_with_retry(Method::POST, &path, Some(&json!({})))
            .await;
        if let (202, Some(run)) = (status, answer["run"]["id"].as_str()) {
            self.promised("a continued text", run, Some(conversation));
        }
    }

    /// Selects another swipe of the newest message with several.
    async fn switch(&mut self, space_conversation: &SpaceConversation) {
        let messages = self.messages(space_conversation).await;
        let several = |it: &&Value| it["swipes"]["count"].as_i64().unwrap_or(0) > 1;
        let Some(message) = messages.iter().rfind(several) else {
            return;
        };
        let n = message["swipes"]["count"].as_i64().unwrap_or(1);
        let path = format!("/api/messages/{}/swipes/select", message["id"]);
        let body = json!({"position": self.rng.random_range(0..n)});
        self.request_with_retry(Method::POST, &path, Some(&body))
            .await;
    }

    /// Creates a branch from a message; from then on the user reads and posts there too.
    async fn branch(&mut self, space_conversation: &SpaceConversation) {
        let n = self
            .guest
            .conversations
            .iter()
            .filter(|it| it.is_branch)
            .count();
        let message = self.some_message(space_conversation, "").await;
        let Some(message) = message.filter(|_| n < MAX_BRANCHES) else {
            return;
        };
        let path = format!(
            "/api/conversations/{}/branch",
            space_conversation.conversation
        );
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
            let space_conversation = SpaceConversation {
                conversation,
                is_branch: true,
                ..space_conversation.clone()
            };
            self.tab.enter(&space_conversation);
            self.guest.conversations.push(space_conversation);
        }
    }

    /// Lets the copilot write for the user for some steps.
    async fn enable_copilot(&mut self, space_conversation: &SpaceConversation) {
        let body = json!({
            "copilot_mode": "full",
            "copilot_remaining_steps": self.rng.random_range(1..4),
            "copilot_conversation_id": space_conversation.conversation,
        });
        let path = format!("/api/memberships/{}", space_conversation.membership);
        self.request_with_retry(Method::PATCH, &path, Some(&body))
            .await;
    }

    /// Turns the copilot off.
    pub async fn disable_copilot(&mut self, space_conversation: &SpaceConversation) {
        let path = format!("/api/memberships/{}", space_conversation.membership);
        let body = json!({"copilot_mode": "none"});
        self.request_with_retry(Method::PATCH, &path, Some(&body))
            .await;
    }

    async fn request_suggestions(&mut self, space_conversation: &SpaceConversation) {
        let count = self.rng.random_range(1..3);
        let path = format!(
            "/api/conversations/{}/copilot_candidates",
            space_conversation.conversation
        );
        let body = json!({"membership_id": space_conversation.membership, "count": count});
        self.request(Method::POST, &path, Some(&body)).await;
        // Without a response they may still have been generated.
        self.actions.lock().n_candidates += count;
    }

    /// Repeats a request a few times until a node responds, because these requests are rare and
    /// nodes are often down.
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

    /// Returns one of the newest messages, of this role unless it is empty.
    async fn some_message(
        &mut self,
        space_conversation: &SpaceConversation,
        role: &str,
    ) -> Option<i64> {
        let mut messages = self.messages(space_conversation).await;
        messages.retain(|it| role.is_empty() || it["role"] == role);
        if messages.is_empty() {
            return None;
        }
        let at = self.rng.random_range(0..messages.len());
        messages[at]["id"].as_i64()
    }

    async fn messages(&mut self, space_conversation: &SpaceConversation) -> Vec<Value> {
        let path = format!(
            "/api/conversations/{}/messages?limit=10",
            space_conversation.conversation
        );
        let (_, answer) = self.request_with_retry(Method::GET, &path, None).await;
        answer["data"].as_array().cloned().unwrap_or_default()
    }
}
