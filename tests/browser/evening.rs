//! Three people with two characters in one space, each with a browser: the host, a friend who accepts an
//! invitation, and a guest who joins by a link on a phone. Their timelines can be compared with the
//! database, each for the audience of its person.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;
use std::{env, fs};

use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::page::{FIELD, Page, Viewport};
use crate::several_users::page_of;
use crate::support::database_facts::DatabaseFacts;
use crate::support::fake_provider::script::ResponseScript;
use crate::support::fake_provider::server::FakeProvider;
use crate::support::http_client::{HttpClient, expect, id};
use crate::support::poll;
use crate::test_server::{SpaceFixture, TestServer};

/// The texts of the messages, in the order of the page.
const SHOWN: &str = "JSON.stringify([...document.querySelectorAll('.message')].map((it) =>
    it.dataset.state === 'final' ? it.querySelector('.message__body').innerText.trim() : it.dataset.state))";
/// The greetings of Mina; the first one is posted.
pub const GREETINGS: [&str; 2] = ["Welcome to the inn.", "Come in, the soup is hot."];

/// The replies to lines, each used once; all other replies are numbered.
type Script = Arc<Mutex<VecDeque<(&'static str, ResponseScript)>>>;

/// The people, their browsers, and what they have said.
pub struct Evening {
    pub test_server: TestServer,
    pub translator: FakeProvider,
    pub space: SpaceFixture,
    pub bob: HttpClient,
    /// Ann's, Bob's and Cleo's browsers.
    pub pages: [Page; 3],
    /// The number of messages that must be stored.
    pub n_messages: usize,
    facts: DatabaseFacts,
    script: Script,
    space_path: String,
    /// The memberships of Ann, Bob and Cleo.
    memberships: [i64; 3],
}

/// Returns whether a request has this line as a message of its own, with the name of its author or
/// without. The requests of the memory contain messages as parts of a longer text.
fn answers_line(request: &Value, line: &str) -> bool {
    let messages = request["messages"].as_array();
    let contents = messages.into_iter().flatten().map(|it| &it["content"]);
    let mut texts = contents.filter_map(Value::as_str);
    texts.any(|it| it.len() < line.len() + 20 && it.ends_with(line))
}

fn answer(script: &Script, request: &Value, n_replies: &mut usize) -> ResponseScript {
    if request.to_string().contains("speakers") {
        return ResponseScript::say(r#"{"speakers": ["Rook"], "reason": "He knows the way."}"#);
    }
    let mut script = script.lock();
    let found = script
        .iter()
        .position(|(line, _)| answers_line(request, line));
    if let Some((_, reply)) = found.and_then(|it| script.remove(it)) {
        return reply;
    }
    *n_replies += 1;
    ResponseScript::say(&format!(
        "Reply number {n_replies} is given, slowly and with care."
    ))
}

/// Adds a character with greetings; the first one is posted.
async fn add_character(space: &SpaceFixture, space_path: &str, name: &str, greetings: &[&str]) {
    let mut card = json!({"name": name});
    if let [first, others @ ..] = greetings {
        card["first_mes"] = json!(first);
        card["alternate_greetings"] = json!(others);
    }
    let character = expect(201, space.ann.post("/api/characters", card).await);
    let path = format!("{space_path}/memberships");
    let body = json!({"character_id": character["id"]});
    expect(201, space.ann.post(&path, body).await);
}

impl Evening {
    /// Bob accepts an invitation, and Cleo joins by a link on her phone.
    pub async fn begin() -> Evening {
        let upstream = FakeProvider::start().await;
        let script = Script::default();
        let (replies, mut n_replies) = (Arc::clone(&script), 0);
        upstream.answer_with(move |request| answer(&replies, request, &mut n_replies));
        let url = upstream.base_url();
        let env = [
            ("TROUPE_LLM_BASE_URL", url.as_str()),
            ("TROUPE_LLM_MODEL", "scripted"),
            ("TROUPE_OPEN_REGISTRATION", "true"),
        ];
        let test_server = TestServer::with(upstream, &env).await;
        let rules = json!({"reply_order": "list", "user_turn_debounce_ms": 0});
        let space = test_server.create_space(rules, &[]).await;
        let space_id = space.ann.conversation(space.conversation).await["space_id"].clone();
        let space_path = format!("/api/spaces/{space_id}");
        add_character(&space, &space_path, "Mina", &GREETINGS).await;
        add_character(&space, &space_path, "Rook", &[]).await;

        let ann = space.page().await;
        let bob = HttpClient::register(space.ann.base(), "bob").await;
        let of_bob = page_of(&bob, "/").await;
        let me = expect(200, bob.get("/api/session").await);
        let invitation = json!({"user_id": me["user"]["id"], "role": "member"});
        let path = format!("{space_path}/memberships");
        expect(202, space.ann.post(&path, invitation).await);
        of_bob.click("[data-invitation]").await;
        of_bob.see_text("dialog", "You will join as a member").await;
        of_bob.click("dialog [type=submit]").await;
        of_bob.see(FIELD).await;
        let invite = space.ann.invite(id_of(&space_id), json!({"role": "guest"}));
        let invite = invite.await;
        let url = invite["url"].as_str().expect("the response has a link");
        let path = url.strip_prefix(space.ann.base());
        let of_cleo = Page::open(space.ann.base(), Viewport::Phone).await;
        of_cleo
            .go(path.expect("the link belongs to this server"))
            .await;
        of_cleo.write("[name=display_name]", "Cleo").await;
        of_cleo.click("button[type=submit]").await;
        of_cleo.see(FIELD).await;

        let members = expect(
            200,
            space.ann.get(&format!("{space_path}/memberships")).await,
        );
        let members = members["data"]
            .as_array()
            .cloned()
            .expect("a list of members");
        let of = |name: &str| {
            id(members
                .iter()
                .find(|it| it["display_name"] == name)
                .expect(name))
        };
        Evening {
            facts: test_server.facts().await,
            translator: FakeProvider::start().await,
            memberships: [of("ann"), of("bob"), of("Cleo")],
            test_server,
            space,
            bob,
            pages: [ann, of_bob, of_cleo],
            n_messages: 1,
            script,
            space_path,
        }
    }

    /// The next reply to this line.
    pub fn reply_to(&self, line: &'static str, reply: ResponseScript) {
        self.script.lock().push_back((line, reply));
    }

    /// Ann changes the space.
    pub async fn configure(&self, change: Value) {
        expect(200, self.space.ann.patch(&self.space_path, change).await);
    }

    /// Waits until this many more messages are stored and no run is active, and then until each page
    /// shows exactly the stored messages that its person may see.
    pub async fn until_all_see(&mut self, n_more: usize) {
        self.n_messages += n_more;
        let conversation = self.space.conversation;
        let sql = format!(
            "SELECT content, COALESCE(audience, '') FROM messages WHERE conversation_id = {conversation}
             AND visibility = 'normal' ORDER BY seq"
        );
        let active = format!(
            "SELECT status FROM conversation_runs WHERE conversation_id = {conversation} AND status IN ('queued', 'running')"
        );
        let what = format!(
            "{} messages are stored, and no run is active",
            self.n_messages
        );
        let (n, facts) = (self.n_messages, &mut self.facts);
        let stored = poll::until(&what, async || {
            let stored = facts.rows(&sql).await;
            (stored.len() == n && facts.rows(&active).await.is_empty()).then_some(stored)
        });
        let stored: Vec<(String, String)> = stored
            .await
            .into_iter()
            .map(|row| row.into_iter().map(Option::unwrap_or_default))
            .map(|mut row| {
                (
                    row.next().unwrap_or_default(),
                    row.next().unwrap_or_default(),
                )
            })
            .collect();
        for (page, membership) in self.pages.iter().zip(self.memberships) {
            let in_audience = |it: &&(String, String)| {
                it.1.is_empty() || it.1.split(',').any(|it| it == membership.to_string())
            };
            let visible: Vec<&str> = stored
                .iter()
                .filter(in_audience)
                .map(|it| it.0.trim())
                .collect();
            let expected = json!(json!(visible).to_string());
            page.truth(
                &format!("membership {membership} sees {expected}"),
                &format!("{SHOWN} === {expected}"),
            )
            .await;
        }
    }

    /// Posts a line, as on a phone with the button; as many replies as expected must follow.
    pub async fn say(&mut self, person: usize, text: &str, n_replies: usize) {
        self.pages[person].write(FIELD, text).await;
        self.pages[person].click("[aria-label=Send]").await;
        self.until_all_see(1 + n_replies).await;
    }

    /// Chooses an action of the message with this text.
    pub async fn press_tool(&self, person: usize, text: &str, label: &str) {
        let page = &self.pages[person];
        page.click_text(".message__body", text).await;
        page.click(&format!(".message__tools [aria-label='{label}']"))
            .await;
    }

    /// Stores a screenshot of each page in both themes, if `TROUPE_PICTURES` names a folder.
    pub async fn keep_pictures(&self, scene: &str) {
        let Ok(folder) = env::var("TROUPE_PICTURES") else {
            return;
        };
        for (page, name) in self.pages.iter().zip(["ann", "bob", "cleo"]) {
            for theme in ["dark", "light"] {
                page.run(&format!(
                    "document.documentElement.dataset.theme = '{theme}'"
                ))
                .await;
                let file = Path::new(&folder).join(format!("{scene}-{name}-{theme}.png"));
                fs::write(file, page.picture().await).expect("write the screenshot");
            }
        }
    }
}

fn id_of(value: &Value) -> i64 {
    value.as_i64().expect("an id is a number")
}
