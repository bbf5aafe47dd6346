//! Audits deletions: the text of a memory that was deleted and purged is in no column of any table, in no
//! export, no stored prompt, no search and no later prompt.
//!
//! Each memory contains a word that no message contains, so the word identifies the memory.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::support::backends::{TestBackend, on_both};
use crate::support::database_facts::DatabaseFacts;
use crate::support::embedding_fixture::EmbeddingFixture;
use crate::support::fake_provider::script::ResponseScript;
use crate::support::fake_provider::server::FakeProvider;
use crate::support::file_uploads::{bring, fetch};
use crate::support::http_client::{expect, id, root_of};
use crate::support::poll;

/// Learned from a message of the owner; about no one.
const LEARNED: &str = "quillfeather";
/// Learned; about the owner.
const LEARNED_ABOUT: &str = "marblehook";
/// Written by the owner, about the owner; its first text contains [`REPLACED`].
const WRITTEN: &str = "cobaltine";
const REPLACED: &str = "oldtimber";
/// Imported from a file; about no one.
const IMPORTED: &str = "umbrafield";
/// Remembered by Ada with her tool; about no one.
const REMEMBERED: &str = "saffrondale";
/// In the running summary of the conversation.
const SUMMARIZED: &str = "vellumstone";

const WORDS: [&str; 5] = [LEARNED, LEARNED_ABOUT, WRITTEN, IMPORTED, REMEMBERED];
/// Messages of the owner: enough for a summary of ten of them.
const N_MESSAGES: usize = 40;
/// More than the time after which a deleted memory is purged.
const EIGHT_DAYS_MS: i64 = 8 * 24 * 60 * 60 * 1_000;

/// Returns the answer of the scripted model.
fn answer(body: &Value, has_remembered: &mut bool) -> ResponseScript {
    let messages = body["messages"].as_array().expect("a list");
    let system = messages[0]["content"].as_str().unwrap_or_default();
    if system.starts_with("You maintain the long-term memory") {
        let memory = |content: String, about: Value| {
            json!({
                "kind": "event", "content": content, "importance": 0.5, "about": about, "owner": null,
                "replaces": null, "sources": [1],
            })
        };
        let memories = [
            memory(format!("A dog is called {LEARNED}."), Value::Null),
            memory(format!("They rowed to {LEARNED_ABOUT}."), json!("admin")),
        ];
        return ResponseScript::say(&json!({ "memories": memories }).to_string());
    }
    if system.starts_with("You summarize") || system.starts_with("You maintain") {
        let summary = json!({"summary": format!("They met at {SUMMARIZED}.")});
        return ResponseScript::say(&summary.to_string());
    }
    if body.get("tools").is_some() && !std::mem::replace(has_remembered, true) {
        let call = json!({"action": "remember", "content": format!("The inn is called {REMEMBERED}."), "kind": "event"});
        return ResponseScript::calls(&[("c1", "troupe_memory", &call.to_string())]);
    }
    ResponseScript::say("Indeed.")
}

/// A space with a memory of each origin, all of them embedded and in the prompt of a run, and with a
/// summary of the conversation in which two of them were learned.
struct Audit {
    it: EmbeddingFixture,
    upstream: FakeProvider,
    ada: i64,
    /// The conversation in which memories were learned and remembered, and which was summarized.
    said_in: i64,
    /// The conversation in which all of them were recalled.
    asked_in: i64,
    /// The run that recalled them.
    run: String,
}

impl Audit {
    async fn open(backend: TestBackend) -> Audit {
        let it = EmbeddingFixture::open(backend).await;
        let upstream = FakeProvider::start().await;
        let mut has_remembered = false;
        upstream.answer_with(move |body| answer(body, &mut has_remembered));
        let chat = json!({"name": "Chat", "base_url": upstream.base_url(), "model": "m", "is_default": true});
        expect(201, it.owner.post("/api/providers", chat).await);
        let path = format!("/api/spaces/{}", id(&it.space));
        let embedding = json!({"provider_id": id(&it.provider), "model": "narrow"});
        let memory = json!({"embedding": embedding, "threshold": 0, "top_k": 20, "summaries": {"chunk_messages": 10}});
        let settings = json!({"tools": {"memory": "allowed"}, "memory": memory});
        let rules = json!({"reply_order": "manual", "settings": settings});
        expect(200, it.owner.patch(&path, rules).await);
        let path = format!("{path}/conversations");
        let said_in = id(&expect(
            201,
            it.owner.post(&path, json!({"title": "The inn"})).await,
        ));
        let card = it.owner.create_character("Ada", None).await;
        let ada = id(&it.owner.add_character(&it.space, &card).await);
        let asked_in = root_of(&it.space);
        let mut audit = Audit {
            it,
            upstream,
            ada,
            said_in,
            asked_in,
            run: String::new(),
        };
        audit.remember_all().await;
        audit.summarize().await;
        audit.run = audit.ask().await;
        audit
    }

    /// Makes a memory of each origin, and waits until all are embedded.
    async fn remember_all(&self) {
        let (owner, path) = (&self.it.owner, self.it.path());
        for n in 0..N_MESSAGES {
            let text = format!("Line {n} is about the tide and the long way home.");
            expect(201, owner.post_message(self.said_in, &text, None).await);
        }
        self.reply_in(self.said_in).await;
        let written = json!({"content": format!("The cat sleeps in {REPLACED}."), "kind": "event", "about_membership_id": self.me().await});
        let written = expect(201, owner.post(&path, written).await);
        let edit =
            json!({"content": format!("The cat sleeps in {WRITTEN}."), "expected_version": 1});
        expect(
            200,
            owner.patch(&format!("{path}/{}", id(&written)), edit).await,
        );
        let line = json!({"content": format!("The mill is called {IMPORTED}.")}).to_string();
        let report = expect(
            200,
            bring(
                owner,
                &format!("{path}/import"),
                "memories.jsonl",
                line.as_bytes(),
            )
            .await,
        );
        assert_eq!(report["n_imported"], 1);
        self.it.app.app.clock.advance_ms(30_000);
        let state = self.run_tasks().await;
        assert_eq!(self.memories().await.len(), WORDS.len());
        assert_eq!(state["embedding"]["embedded"], WORDS.len(), "{state}");
    }

    /// Executes all tasks, so that none of them stores anything later.
    async fn run_tasks(&self) -> Value {
        poll::until("no task is left", async || {
            let learned = self.it.app.app.learning.run_due().await;
            learned.expect("the database answers");
            self.it.run_due().await;
            let n = "SELECT CAST(count(*) AS TEXT) FROM memory_tasks";
            (self.it.number(n).await == 0).then_some(())
        })
        .await;
        self.it.state().await
    }

    async fn summarize(&self) {
        let path = format!("/api/conversations/{}/summaries", self.said_in);
        expect(202, self.it.owner.post(&path, json!({})).await);
        self.run_tasks().await;
        let list = expect(200, self.it.owner.get(&path).await);
        assert_eq!(list["data"][0]["level"], 1, "{list}");
    }

    /// Ada replies in the other conversation. Returns the run, whose prompt contains what is recalled.
    async fn ask(&self) -> String {
        expect(
            201,
            self.it
                .owner
                .post_message(self.asked_in, "Good morning.", None)
                .await,
        );
        self.reply_in(self.asked_in).await
    }

    /// Ada replies. Returns the run.
    async fn reply_in(&self, conversation: i64) -> String {
        let known = self.it.owner.runs(conversation).await;
        let trigger = self.it.owner.generate(conversation, Some(self.ada)).await;
        expect(202, trigger);
        poll::until("the reply is complete", async || {
            let mut runs = self.it.owner.runs(conversation).await.into_iter();
            let is_new = |it: &Value| known.iter().all(|known| known["id"] != it["id"]);
            let run = runs.find(is_new)?;
            assert_ne!(run["status"], "failed", "{run}");
            let id = run["id"].as_str()?.to_owned();
            (run["status"] == "succeeded").then_some(id)
        })
        .await
    }

    async fn me(&self) -> i64 {
        let path = format!("/api/spaces/{}/memberships", id(&self.it.space));
        let roster = expect(200, self.it.owner.get(&path).await);
        let mut all = roster["data"].as_array().expect("a list").iter();
        id(all.find(|it| it["kind"] == "human").expect("the owner"))
    }

    async fn memories(&self) -> Vec<Value> {
        let list = expect(200, self.it.owner.get(&self.it.path()).await);
        list["data"].as_array().expect("a list").clone()
    }

    /// Deletes the memory with this word.
    async fn delete(&self, word: &str) {
        let all = self.memories().await;
        let of_word = |it: &&Value| it["content"].as_str().is_some_and(|it| it.contains(word));
        let memory = all.iter().find(of_word).expect(word);
        let path = format!("{}/{}", self.it.path(), id(memory));
        assert_eq!(self.it.owner.delete(&path).await.0, 204);
    }

    async fn forget(&self, scope: Value, n: usize) {
        let path = format!("{}/forget", self.it.path());
        let mut dry = scope.clone();
        dry["dry_run"] = json!(true);
        assert_eq!(
            expect(200, self.it.owner.post(&path, dry).await)["deleted"],
            n
        );
        assert_eq!(
            expect(200, self.it.owner.post(&path, scope).await)["deleted"],
            n
        );
    }

    /// Returns which words an endpoint returns, or the next prompt contains.
    async fn shown(&self) -> BTreeSet<&'static str> {
        let (owner, path) = (&self.it.owner, self.it.path());
        let mut shown = Vec::new();
        let mut paths: Vec<String> = WORDS.iter().map(|it| format!("{path}?q={it}")).collect();
        paths.extend([
            path.clone(),
            format!("/api/runs/{}/memories", self.run),
            format!("/api/runs/{}/prompt", self.run),
            format!("/api/conversations/{}/messages?limit=200", self.asked_in),
        ]);
        for path in paths {
            shown.push(expect(200, owner.get(&path).await).to_string());
        }
        for path in ["messages?limit=200", "summaries"] {
            // 404 once the conversation is deleted.
            let path = format!("/api/conversations/{}/{path}", self.said_in);
            shown.push(owner.get(&path).await.1.to_string());
        }
        let export = fetch(owner, &format!("{path}/export")).await;
        shown.push(String::from_utf8(export).expect("an export is UTF-8"));
        self.ask().await;
        let last = self.upstream.n_requests() - 1;
        shown.push(self.upstream.body(last).to_string());
        found_in(&shown)
    }

    /// Purges, and returns which words are in any column of any table.
    async fn stored_after_the_purge(&self) -> BTreeSet<&'static str> {
        // The newest messages are learned from now.
        self.upstream.reply_with("Indeed.");
        self.it.app.app.clock.advance_ms(EIGHT_DAYS_MS);
        self.it
            .app
            .app
            .learning
            .purge()
            .await
            .expect("the database answers");
        self.stored().await
    }

    async fn stored(&self) -> BTreeSet<&'static str> {
        let mut facts = DatabaseFacts::open(&self.it.app.database).await;
        found_in(&facts.everything().await)
    }

    async fn close(self) {
        self.it.app.close().await;
    }
}

/// Returns the words that texts contain, as text or as hexadecimal bytes.
fn found_in(texts: &[String]) -> BTreeSet<&'static str> {
    let texts: Vec<String> = texts.iter().map(|it| it.to_lowercase()).collect();
    let is_in = |word: &&str| {
        let bytes = hex::encode(word);
        texts
            .iter()
            .any(|it| it.contains(*word) || it.contains(&bytes))
    };
    let all = WORDS.into_iter().chain([REPLACED, SUMMARIZED]);
    all.filter(is_in).collect()
}

fn words(all: &[&'static str]) -> BTreeSet<&'static str> {
    all.iter().copied().collect()
}

on_both! {
    async fn the_memories_of_a_message_are_those_that_were_made_from_it(backend) {
        let audit = Audit::open(backend).await;
        let path = format!("/api/conversations/{}/messages?after=0&limit=2", audit.said_in);
        let said = expect(200, audit.it.owner.get(&path).await);
        let path = |at: usize| format!("{}?source_message_id={}", audit.it.path(), said["data"][at]["id"]);

        let first = expect(200, audit.it.owner.get(&path(0)).await);
        let second = expect(200, audit.it.owner.get(&path(1)).await);

        assert_eq!(found_in(&[first.to_string()]), words(&[LEARNED, LEARNED_ABOUT]));
        assert_eq!(second["data"], json!([]));
        audit.close().await;
    }

    async fn deleted_memories_are_shown_nowhere_and_stored_nowhere_after_the_purge(backend) {
        let audit = Audit::open(backend).await;
        let all = words(&[LEARNED, LEARNED_ABOUT, WRITTEN, IMPORTED, REMEMBERED, SUMMARIZED]);
        assert_eq!(audit.shown().await, all);
        assert_eq!(audit.stored().await, all);

        audit.delete(LEARNED).await;
        audit.delete(REMEMBERED).await;
        let kept = words(&[LEARNED_ABOUT, WRITTEN, IMPORTED, SUMMARIZED]);
        assert_eq!(audit.shown().await, kept);
        for word in [LEARNED_ABOUT, WRITTEN, IMPORTED] {
            audit.delete(word).await;
        }

        // The summary was made from messages, which exist.
        assert_eq!(audit.shown().await, words(&[SUMMARIZED]));
        assert_eq!(audit.stored_after_the_purge().await, words(&[SUMMARIZED]));
        for table in ["memories", "memory_sources", "memory_vectors"] {
            assert_eq!(audit.it.number(&format!("SELECT CAST(count(*) AS TEXT) FROM {table}")).await, 0, "{table}");
        }
        audit.close().await;
    }

    async fn what_is_about_a_forgotten_member_or_was_said_by_it_is_nowhere(backend) {
        let audit = Audit::open(backend).await;

        audit.forget(json!({"about_membership_id": audit.me().await}), 3).await;

        let kept = words(&[IMPORTED, REMEMBERED]);
        assert_eq!(audit.shown().await, kept);
        assert_eq!(audit.stored().await, kept);
        audit.close().await;
    }

    async fn nothing_of_a_forgotten_conversation_is_stored(backend) {
        let audit = Audit::open(backend).await;

        audit.forget(json!({"conversation_id": audit.said_in}), 3).await;

        let kept = words(&[WRITTEN, IMPORTED]);
        assert_eq!(audit.shown().await, kept);
        assert_eq!(audit.stored().await, kept);
        audit.close().await;
    }

    async fn after_everything_is_forgotten_no_memory_or_summary_is_stored(backend) {
        let audit = Audit::open(backend).await;

        audit.forget(json!({"all": true}), WORDS.len()).await;

        assert_eq!(audit.shown().await, words(&[]));
        assert_eq!(audit.stored().await, words(&[]));
        audit.close().await;
    }

    async fn nothing_that_was_learned_in_a_deleted_conversation_is_stored(backend) {
        let audit = Audit::open(backend).await;

        let path = format!("/api/conversations/{}", audit.said_in);
        assert_eq!(audit.it.owner.delete(&path).await.0, 204);

        let kept = words(&[WRITTEN, IMPORTED]);
        assert_eq!(audit.shown().await, kept);
        assert_eq!(audit.stored().await, kept);
        audit.close().await;
    }
}
