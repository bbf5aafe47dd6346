//! Simulated users that post, use the controls, and repeat requests that got no answer.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};
use reqwest::{Client, Method};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep, timeout};

use crate::record::{Post, PostAttempt, PromisedText, ReadBack, Stop, now};
use crate::spaces::{SignedInUser, SpaceConversation};
use crate::tabs::Tab;

/// The time without an event after which a user connects to another node.
const REPLY_TIMEOUT: Duration = Duration::from_millis(2_500);
/// The time without a response after which a user gives up; the message may or may not be stored.
const GIVE_UP_AFTER: Duration = Duration::from_secs(45);

/// What they all did.
#[derive(Default)]
pub struct ActionLog {
    pub posts: Vec<Post>,
    pub read_backs: Vec<ReadBack>,
    pub stops: Vec<Stop>,
    pub promised_texts: Vec<PromisedText>,
    /// How many texts for one's own eyes were asked for.
    pub n_candidates: usize,
}

/// One of them.
pub struct SimulatedUser {
    pub guest: SignedInUser,
    pub nodes: Vec<String>,
    pub http: Client,
    pub dice: ChaCha8Rng,
    /// The node it speaks to.
    pub at: usize,
    pub think: Duration,
    /// The newest message of its own that was acknowledged, with its version as far as is known.
    pub last: Option<(i64, i64)>,
    /// The tab of its own in which it reads along.
    pub tab: Arc<Tab>,
    pub actions: Arc<Mutex<ActionLog>>,
}

impl SimulatedUser {
    /// Speaks until the end.
    pub async fn run(mut self, end: Instant) {
        let mut n = 0;
        while Instant::now() < end {
            let longest = self.think.as_millis() as u64 * 2;
            sleep(Duration::from_millis(self.dice.random_range(0..=longest))).await;
            let room = self.dice.random_range(0..self.guest.conversations.len());
            let room = self.guest.conversations[room].clone();
            match self.dice.random_range(0..200) {
                0..172 => {
                    n += 1;
                    self.post(&room, n).await;
                }
                172..175 => self.edit(format!("said better, {n}")).await,
                175..177 => self.hide().await,
                177..182 => self.stop(&room).await,
                182..185 => self.press_button(&room, "retry").await,
                185..187 => self.press_button(&room, "skip").await,
                187..189 => self.press_button(&room, "resume").await,
                189..192 => self.press_button(&room, "generate").await,
                _ => self.request_text(&room).await,
            }
        }
    }

    async fn post(&mut self, room: &SpaceConversation, n: usize) {
        let key = format!("c{}-{n}", self.guest.index);
        let mut post = Post {
            client: self.guest.index,
            conversation: room.conversation,
            content: format!("{key} says something of its own"),
            key,
            asks: room.asks,
            tries: Vec::new(),
        };
        let path = format!("/api/conversations/{}/messages", room.conversation);
        let body = json!({"content": post.content, "client_id": post.key});
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
                    // Some say it twice: it counts once.
                    if self.dice.random_range(0..20) > 0 || post.tries.len() > 1 {
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
            self.speak_for_oneself(room).await;
        }
        let stored = post.acknowledged().map(|it| it.message);
        self.last = stored.map(|id| (id, 1)).or(self.last);
        self.actions.lock().posts.push(post);
        if let Some(message) = stored.filter(|_| self.dice.random_range(0..5) == 0) {
            self.read_back(room, message).await;
        }
    }

    /// Looks through another node for what was acknowledged by this one.
    async fn read_back(&mut self, room: &SpaceConversation, message: i64) {
        let here = self.at;
        self.at = (here + 1) % self.nodes.len();
        let path = format!(
            "/api/conversations/{}/messages?limit=200",
            room.conversation
        );
        let (status, answer) = self.request(Method::GET, &path, None).await;
        if status == 200 {
            let data = answer["data"].as_array();
            let found = data.is_some_and(|all| all.iter().any(|it| it["id"] == message));
            self.actions.lock().read_backs.push(ReadBack {
                conversation: room.conversation,
                message,
                node: self.at,
                found,
            });
        }
        self.at = here;
    }

    async fn stop(&mut self, room: &SpaceConversation) {
        let asked_at = now();
        let path = format!("/api/conversations/{}/stop", room.conversation);
        let body = json!({"keep_partial": self.dice.random_range(0..2) == 0});
        let (status, _) = self.request(Method::POST, &path, Some(&body)).await;
        if status == 202 {
            self.actions.lock().stops.push(Stop {
                conversation: room.conversation,
                asked_at,
                at: now(),
            });
        }
    }

    /// Edits its last message, if that is still allowed.
    async fn edit(&mut self, content: String) {
        if let Some((message, version)) = self.last {
            let path = format!("/api/messages/{message}");
            let change = json!({"content": content, "expected_version": version});
            let (_, answer) = self.request(Method::PATCH, &path, Some(&change)).await;
            // An edit whose answer was lost shows up as a conflict with the next one.
            let present = answer["version"].as_i64();
            let present = present.or(answer["error"]["current"]["version"].as_i64());
            self.last = Some((message, present.unwrap_or(version)));
        }
    }

    /// Hides its last message, if that is still allowed.
    async fn hide(&mut self) {
        if let Some((message, _)) = self.last {
            let path = format!("/api/messages/{message}");
            let change = json!({"visibility": "hidden"});
            self.request(Method::PATCH, &path, Some(&change)).await;
        }
    }

    async fn press_button(&mut self, room: &SpaceConversation, button: &str) {
        let path = format!("/api/conversations/{}/{button}", room.conversation);
        self.request(Method::POST, &path, Some(&json!({}))).await;
    }

    /// 0: no answer, or half of one.
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
            Some((status, serde_json::from_str(&text).ok()?))
        };
        match timeout(REPLY_TIMEOUT, asked).await {
            Ok(Some(answer)) => answer,
            _ => (0, Value::Null),
        }
    }

    /// Another node may be better, and later may be.
    pub async fn move_on(&mut self, n_tries: usize) {
        self.at = self.dice.random_range(0..self.nodes.len());
        let most = 250 * n_tries.min(8) as u64;
        sleep(Duration::from_millis(self.dice.random_range(50..=most))).await;
    }
}

/// The dice of one of many, from the seed of all.
pub fn rng_for(seed: u64, index: usize) -> ChaCha8Rng {
    ChaCha8Rng::seed_from_u64(seed.wrapping_mul(1_000_003).wrapping_add(index as u64))
}
