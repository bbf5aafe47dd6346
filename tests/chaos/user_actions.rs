//! Simulated users that post, use the controls, and repeat requests that got no answer.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};
use reqwest::{Client, Method};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep, timeout};

use crate::record::{Post, PostAttempt, PromisedText, ReadBack, Skip, Stop, now};
use crate::spaces::{SignedInUser, SpaceConversation};
use crate::tabs::Tab;
use crate::{facts, text_keys};

/// The time without an event after which a user connects to another node.
const REPLY_TIMEOUT: Duration = Duration::from_millis(2_500);
/// The time without a response after which a user stops repeating a request.
const GIVE_UP_AFTER: Duration = Duration::from_secs(45);

/// The actions of all users.
#[derive(Default)]
pub struct ActionLog {
    pub posts: Vec<Post>,
    pub read_backs: Vec<ReadBack>,
    pub stops: Vec<Stop>,
    pub skips: Vec<Skip>,
    pub promised_texts: Vec<PromisedText>,
    /// How many candidates were requested.
    pub n_candidates: usize,
}

/// The newest message of a user.
#[derive(Clone, Debug)]
pub struct LastPost {
    message: i64,
    /// The last known version.
    version: i64,
    /// The key of a whisper.
    whisper: Option<String>,
}

/// One simulated user.
pub struct SimulatedUser {
    pub guest: SignedInUser,
    pub nodes: Vec<String>,
    pub http: Client,
    pub rng: ChaCha8Rng,
    /// The node that it sends requests to.
    pub at: usize,
    pub think: Duration,
    /// Its newest acknowledged message.
    pub last: Option<LastPost>,
    /// Its tab.
    pub tab: Arc<Tab>,
    pub actions: Arc<Mutex<ActionLog>>,
}

impl SimulatedUser {
    /// Performs random actions until the end.
    pub async fn run(mut self, end: Instant) {
        let mut n = 0;
        while Instant::now() < end {
            let longest = self.think.as_millis() as u64 * 2;
            sleep(Duration::from_millis(self.rng.random_range(0..=longest))).await;
            let index = self.rng.random_range(0..self.guest.conversations.len());
            let space_conversation = self.guest.conversations[index].clone();
            n += 1;
            if self.use_own_turn(n).await {
                continue;
            }
            match self.rng.random_range(0..200) {
                0..154 => self.post(&space_conversation, n).await,
                154..166 => self.whisper(&space_conversation, n).await,
                166..169 => self.look_around(&space_conversation).await,
                169..172 => self.continue_newest(&space_conversation).await,
                172..175 => self.edit(format!("said better, {n}")).await,
                175..177 => self.hide().await,
                177..182 => self.stop(&space_conversation).await,
                182..185 => self.press_button(&space_conversation, "retry").await,
                185..187 => self.skip(&space_conversation).await,
                187..189 => self.press_button(&space_conversation, "resume").await,
                189..192 => self.press_button(&space_conversation, "generate").await,
                _ => self.request_text(&space_conversation).await,
            }
        }
    }

    /// Posts a message to everyone.
    pub async fn post(&mut self, space_conversation: &SpaceConversation, n: usize) {
        let key = format!("c{}-{n}", self.guest.index);
        let post = Post {
            client: self.guest.index,
            conversation: space_conversation.conversation,
            content: match n % facts::EVERY {
                0 => facts::sentence(&key),
                _ => format!("{key} says something of its own"),
            },
            key,
            mentions: self.mentioned(space_conversation),
            expects_reply: space_conversation.expects_reply,
            ..Post::default()
        };
        self.send(space_conversation, post).await;
    }

    /// Sends a message until a node accepts or rejects it.
    pub async fn send(&mut self, space_conversation: &SpaceConversation, mut post: Post) {
        let path = format!(
            "/api/conversations/{}/messages",
            space_conversation.conversation
        );
        let mut body = json!({"content": post.content, "client_id": post.key});
        if !post.audience.is_empty() {
            body["audience"] = json!(post.audience);
        }
        if !post.mentions.is_empty() {
            body["mentions"] = json!(post.mentions);
        }
        let resigns = Instant::now() + GIVE_UP_AFTER;
        while Instant::now() < resigns {
            let at = now();
            let node = self.at;
            let (status, answer) = self.request(Method::POST, &path, Some(&body)).await;
            post.tries.push(PostAttempt {
                node,
                at,
                answered_at: now(),
                status,
                code: answer["error"]["code"].as_str().unwrap_or("").to_owned(),
                message: answer["message"]["id"].as_i64().unwrap_or(0),
                seq: answer["message"]["seq"].as_i64().unwrap_or(0),
            });
            match status {
                200..300 => {
                    // Sometimes the message is posted again; it must be stored once.
                    if self.rng.random_range(0..20) > 0 || post.tries.len() > 1 {
                        break;
                    }
                }
                400..500 if status != 429 => break,
                _ => self.move_on(post.tries.len()).await,
            }
        }
        let is_lent = post
            .tries
            .last()
            .is_some_and(|it| it.code == "copilot_active");
        if is_lent {
            self.disable_copilot(space_conversation).await;
        }
        let stored = post.acknowledged().map(|it| it.message);
        if let Some(message) = stored {
            let is_whisper = !post.audience.is_empty();
            self.last = Some(LastPost {
                message,
                version: 1,
                whisper: is_whisper.then(|| post.key.clone()),
            });
        }
        self.actions.lock().posts.push(post);
        if let Some(message) = stored.filter(|_| self.rng.random_range(0..5) == 0) {
            self.read_back(space_conversation, message).await;
        }
    }

    /// Reads through another node a message that this node acknowledged.
    async fn read_back(&mut self, space_conversation: &SpaceConversation, message: i64) {
        let here = self.at;
        self.at = (here + 1) % self.nodes.len();
        let path = format!(
            "/api/conversations/{}/messages?limit=200",
            space_conversation.conversation
        );
        let (status, answer) = self.request(Method::GET, &path, None).await;
        if status == 200 {
            let data = answer["data"].as_array();
            let found = data.is_some_and(|all| all.iter().any(|it| it["id"] == message));
            self.actions.lock().read_backs.push(ReadBack {
                conversation: space_conversation.conversation,
                message,
                node: self.at,
                found,
            });
        }
        self.at = here;
    }

    async fn stop(&mut self, space_conversation: &SpaceConversation) {
        let asked_at = now();
        let path = format!(
            "/api/conversations/{}/stop",
            space_conversation.conversation
        );
        let body = json!({"keep_partial": self.rng.random_range(0..2) == 0});
        let (status, _) = self.request(Method::POST, &path, Some(&body)).await;
        if status == 202 {
            self.actions.lock().stops.push(Stop {
                conversation: space_conversation.conversation,
                asked_at,
                at: now(),
            });
        }
    }

    /// Edits its last message, if that is still allowed.
    async fn edit(&mut self, more: String) {
        let Some(last) = self.last.clone() else {
            return;
        };
        let content = match &last.whisper {
            Some(key) => text_keys::whisper(key, &format!(", {more}")),
            None => more,
        };
        let path = format!("/api/messages/{}", last.message);
        let change = json!({"content": content, "expected_version": last.version});
        let (_, answer) = self.request(Method::PATCH, &path, Some(&change)).await;
        // If the response to an edit is lost, the next edit is rejected as a conflict.
        let present = answer["version"].as_i64();
        let present = present.or(answer["error"]["current"]["version"].as_i64());
        self.last = Some(LastPost {
            version: present.unwrap_or(last.version),
            ..last
        });
    }

    /// Hides its last message, if that is still allowed.
    async fn hide(&mut self) {
        if let Some(last) = &self.last {
            let path = format!("/api/messages/{}", last.message);
            let change = json!({"visibility": "hidden"});
            self.request(Method::PATCH, &path, Some(&change)).await;
        }
    }

    /// Skips the present turn, if the user may do that.
    pub async fn skip(&mut self, space_conversation: &SpaceConversation) {
        let asked_at = now();
        let path = format!(
            "/api/conversations/{}/skip",
            space_conversation.conversation
        );
        let (status, _) = self.request(Method::POST, &path, Some(&json!({}))).await;
        if !(400..500).contains(&status) {
            self.actions.lock().skips.push(Skip {
                conversation: space_conversation.conversation,
                asked_at,
                answered_at: (status == 200).then(now),
            });
        }
    }

    async fn press_button(&mut self, space_conversation: &SpaceConversation, button: &str) {
        let path = format!(
            "/api/conversations/{}/{button}",
            space_conversation.conversation
        );
        self.request(Method::POST, &path, Some(&json!({}))).await;
    }

    /// Returns status 0 if the response is missing or incomplete.
    pub async fn request(
        &mut self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> (u16, Value) {
        let url = format!("{}{path}", self.nodes[self.at]);
        let mut request = self.http.request(method, url);
        request = request.header("cookie", &self.guest.cookie);
        if let Some(body) = body {
            request = request.json(body);
        }
        let asked = async {
            let answer = request.send().await.ok()?;
            let status = answer.status().as_u16();
            let text = answer.text().await.ok()?;
            self.tab.note_received(&text);
            Some((status, serde_json::from_str(&text).ok()?))
        };
        match timeout(REPLY_TIMEOUT, asked).await {
            Ok(Some(answer)) => answer,
            _ => (0, Value::Null),
        }
    }

    /// Selects another node and waits, longer after more tries.
    pub async fn move_on(&mut self, n_tries: usize) {
        self.at = self.rng.random_range(0..self.nodes.len());
        let most = 250 * n_tries.min(8) as u64;
        sleep(Duration::from_millis(self.rng.random_range(50..=most))).await;
    }
}

/// Returns the random generator of one user or task, derived from the seed.
pub fn rng_for(seed: u64, index: usize) -> ChaCha8Rng {
    ChaCha8Rng::seed_from_u64(seed.wrapping_mul(1_000_003).wrapping_add(index as u64))
}
