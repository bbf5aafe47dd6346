//! Tests of what people outside the audience of a whisper read: previews, branches, and files of a
//! conversation and of a space. `rights/whisper_grid.rs` checks every endpoint for every role.

use serde_json::{Value, json};

use crate::support::app::TestApp;
use crate::support::backends::{TestBackend, on_both, on_sqlite};
use crate::support::fake_provider::script::ResponseScript;
use crate::support::fake_provider::server::FakeProvider;
use crate::support::file_uploads::{fetch, import};
use crate::support::http_client::{HttpClient, expect, id, root_of};
use crate::support::poll;
use crate::support::space_content::{unpacked, with_file};

const OPEN: &[(&str, &str)] = &[("TROUPE_OPEN_REGISTRATION", "true")];

/// Ann, the owner, with Ben and Cid, and the characters Ada and Bob.
struct Fixture {
    app: TestApp,
    ann: HttpClient,
    ben: HttpClient,
    cid: HttpClient,
    space: Value,
    root: i64,
    /// The membership of Ben.
    of_ben: i64,
    ada: i64,
    bob: i64,
    upstream: FakeProvider,
}

impl Fixture {
    async fn create(backend: TestBackend) -> Fixture {
        let app = TestApp::start_with(backend, OPEN).await;
        let upstream = FakeProvider::start().await;
        let ann = app.admin().await;
        let provider = json!({"name": "Main", "base_url": upstream.base_url(), "model": "m", "is_default": true});
        expect(201, ann.post("/api/providers", provider).await);
        let rules =
            json!({"reply_order": "list", "replies_per_turn": "one", "user_turn_debounce_ms": 0});
        let space = ann.create_space("The inn", rules).await;
        let (ben, cid) = (app.register("ben").await, app.register("cid").await);
        let of_ben = id(&ann.add_member(id(&space), &ben, "member").await);
        ann.add_member(id(&space), &cid, "member").await;
        let mut characters = Vec::new();
        for name in ["Ada", "Bob"] {
            let character = ann.create_character(name, None).await;
            characters.push(id(&ann.add_character(&space, &character).await));
        }
        let root = root_of(&space);
        let (ada, bob) = (characters[0], characters[1]);
        Fixture {
            app,
            ann,
            ben,
            cid,
            space,
            root,
            of_ben,
            ada,
            bob,
            upstream,
        }
    }

    /// Posts a message, with an audience or for everyone, and waits for the replies.
    async fn post(&self, person: &HttpClient, text: &str, audience: Option<&[i64]>) -> Value {
        let mut body = json!({"content": text});
        if let Some(audience) = audience {
            body["audience"] = json!(audience);
        }
        let path = format!("/api/conversations/{}/messages", self.root);
        let posted = expect(201, person.post(&path, body).await);
        poll::until("the replies", async || {
            let now = self.ann.conversation(self.root).await;
            (now["state"] == "idle").then_some(())
        })
        .await;
        posted["message"].clone()
    }

    /// Ada replies to everyone, then Bob to a whisper of Ben.
    async fn whisper_after_public_turn(&self) -> Value {
        self.upstream.next(ResponseScript::say("Ada, loud."));
        self.post(&self.ann, "Hello.", None).await;
        self.upstream.next(ResponseScript::say("Bob, quietly."));
        self.post(&self.ben, "Hush.", Some(&[self.bob])).await
    }
}

async fn texts(person: &HttpClient, conversation: i64) -> Vec<String> {
    let all = person.messages(conversation).await.into_iter();
    all.map(|it| it["content"].as_str().unwrap_or_default().to_owned())
        .collect()
}

on_both! {
    async fn a_preview_of_the_next_speaker_is_made_of_what_its_viewer_sees(backend) {
        let at = Fixture::create(backend).await;
        at.post(&at.ann, "Hello.", None).await;
        let aloud = at.cid.messages(at.root).await.pop().expect("a reply")["space_membership_id"].clone();
        let other = if aloud == json!(at.ada) { at.bob } else { at.ada };
        at.post(&at.ben, "Hush.", Some(&[other])).await;
        let preview = async |person: &HttpClient| {
            let path = format!("/api/conversations/{}/next_speaker", at.root);
            let odds = expect(200, person.get(&path).await)["odds"].clone();
            let mut odds = odds.as_array().expect("a list").iter();
            odds.find(|it| it["probability"] == json!(1.0)).expect("a certain choice")["membership_id"].clone()
        };

        // For people outside, the public reply is the last one; in fact the other character has spoken.
        assert_eq!((preview(&at.cid).await, preview(&at.ben).await), (json!(other), aloud));

        let gate = at.upstream.gate();
        let path = format!("/api/conversations/{}/messages", at.root);
        let body = json!({"content": "Hush again.", "audience": [at.ada]});
        expect(201, at.ben.post(&path, body).await);
        let shown = |person| {
            let path = format!("/api/conversations/{}/next_speaker", at.root);
            async move { expect(200, HttpClient::get(person, &path).await) }
        };
        poll::until("the private run", async || {
            let now = at.cid.conversation(at.root).await;
            (now["state"] == "generating").then_some(())
        })
        .await;
        assert_eq!(shown(&at.ben).await["decided"][0]["membership_id"], at.ada);
        assert_eq!(shown(&at.cid).await["decided"], json!([]));
        let now = at.cid.conversation(at.root).await;
        assert_eq!((&now["running_run"]["private"], now["running_run"].get("kind")), (&json!(true), None));
        gate.open();
        at.app.close().await;
    }

    async fn a_branch_has_the_whispers_for_their_audience(backend) {
        let at = Fixture::create(backend).await;
        let whisper = at.whisper_after_public_turn().await;
        let last = at.post(&at.ann, "Good night.", None).await;

        let path = format!("/api/conversations/{}/branch", at.root);
        let made = expect(201, at.ann.post(&path, json!({"message_id": last["id"]})).await);
        let hidden = at.ann.post(&path, json!({"message_id": whisper["id"]})).await;

        let branch = id(&made["conversation"]);
        assert_eq!(texts(&at.ben, branch).await, ["Hello.", "Ada, loud.", "Hush.", "Bob, quietly.", "Good night."]);
        assert_eq!(texts(&at.cid, branch).await, ["Hello.", "Ada, loud.", "Good night."]);
        let copied = &at.ben.messages(branch).await[2];
        assert_eq!((&copied["audience"], &copied["origin_message_id"]), (&whisper["audience"], &whisper["id"]));
        assert_eq!(hidden.0, 404, "{}", hidden.1);
        at.app.close().await;
    }

    async fn a_branch_names_the_whisper_at_which_it_begins_to_its_audience_alone(backend) {
        let at = Fixture::create(backend).await;
        let whisper = at.whisper_after_public_turn().await;
        let first = at.cid.messages(at.root).await.remove(0);
        let path = format!("/api/conversations/{}/branch", at.root);
        let mut branches = Vec::new();
        for message in [&first, &whisper] {
            let made = expect(201, at.ben.post(&path, json!({"message_id": message["id"]})).await);
            assert_eq!(made["conversation"]["forked_from_message_id"], message["id"]);
            branches.push(id(&made["conversation"]));
        }
        let list = format!("/api/spaces/{}/conversations", id(&at.space));

        for (person, of_whisper) in [(&at.ben, &whisper["id"]), (&at.cid, &Value::Null), (&at.ann, &Value::Null)] {
            let all = expect(200, person.get(&list).await);
            for (branch, fork) in branches.iter().zip([&first["id"], of_whisper]) {
                let all = all["data"].as_array().expect("a list");
                let listed = all.iter().find(|it| it["id"] == *branch).expect("the branch");
                assert_eq!(&listed["forked_from_message_id"], fork);
                assert_eq!(&person.conversation(*branch).await["forked_from_message_id"], fork);
            }
        }
        at.app.close().await;
    }

    async fn a_requested_reply_names_the_newest_message_that_its_readers_see(backend) {
        let at = Fixture::create(backend).await;
        let manual = json!({"reply_order": "manual"});
        expect(200, at.ann.patch(&format!("/api/spaces/{}", id(&at.space)), manual).await);
        let public = at.post(&at.ann, "Hello.", None).await;
        let to_some = at.post(&at.ann, "Between us.", Some(&[at.of_ben, at.ada])).await;
        at.post(&at.ann, "Hush.", Some(&[at.ada])).await;
        at.post(&at.ben, "Psst.", Some(&[at.bob])).await;
        let path = format!("/api/conversations/{}/generate", at.root);

        for (person, audience, expected) in [
            (&at.ann, json!({"audience": [at.of_ben, at.ada]}), &to_some),
            (&at.cid, json!({}), &public),
        ] {
            let mut body = audience;
            body["speaker_id"] = json!(at.ada);
            let run = expect(202, person.post(&path, body).await)["run"].clone();
            assert_eq!(run["trigger_message_id"], expected["id"], "{run}");
            poll::until("the reply", async || {
                let runs = at.ben.runs(at.root).await;
                let run = runs.iter().find(|it| it["id"] == run["id"])?;
                (run["status"] == "succeeded").then_some(())
            })
            .await;
        }
        at.app.close().await;
    }

    async fn a_space_file_has_the_whispers_of_its_exporter(backend) {
        let at = Fixture::create(backend).await;
        at.whisper_after_public_turn().await;
        at.upstream.next(ResponseScript::say("Ada, in confidence."));
        at.post(&at.ann, "Between us.", Some(&[at.of_ben, at.ada])).await;

        let file = fetch(&at.ann, &format!("/api/spaces/{}/export", id(&at.space))).await;
        let lines = |entry: String| {
            let bytes = &unpacked(&file)[&entry];
            let text = String::from_utf8(bytes.clone()).unwrap();
            text.lines().map(|it| serde_json::from_str::<Value>(it).unwrap()).collect::<Vec<_>>()
        };
        let messages = lines(format!("messages/{}.jsonl", at.root));
        let history = lines(format!("past/{}.jsonl", at.root));
        assert!(!format!("{messages:?}{history:?}").contains("uietly") && !format!("{messages:?}").contains("Hush"));
        assert_eq!(messages.len(), 4);
        let runs: Vec<_> = history.iter().filter_map(|it| it.get("run")).collect();
        let rounds: Vec<_> = history.iter().filter_map(|it| it.get("round")).collect();
        assert_eq!((runs.len(), rounds.len()), (2, 2), "those of the whisper to Bob are left out");
        assert_eq!(runs[1]["audience"], messages[2]["audience"]);

        let imported = import(&at.ann, "/api/spaces/import", "inn.troupe.zip", &file).await;
        let space = expect(200, at.ann.get(&format!("/api/spaces/{}", imported["space_id"])).await);
        let copy = at.ann.messages(root_of(&space)).await;
        let content: Vec<_> = copy.iter().map(|it| it["content"].as_str().unwrap()).collect();
        assert_eq!(content, ["Hello.", "Ada, loud.", "Between us.", "Ada, in confidence."]);
        assert_eq!(copy[2]["audience"].as_array().unwrap().len(), 3);
        assert_eq!(copy[2]["audience"], copy[3]["audience"]);
        let runs = at.ann.runs(root_of(&space)).await;
        assert_eq!((&runs[0]["audience"], &runs[1]["audience"]), (&copy[2]["audience"], &json!(null)));
        at.app.close().await;
    }
}

on_sqlite! {
    async fn an_audience_of_a_space_file_never_grows(backend) {
        let at = Fixture::create(backend).await;
        at.post(&at.ann, "Between us.", Some(&[at.of_ben])).await;
        let file = fetch(&at.ann, &format!("/api/spaces/{}/export", id(&at.space))).await;
        let name = format!("messages/{}.jsonl", at.root);
        let line: Value = serde_json::from_slice(&unpacked(&file)[&name]).unwrap();

        for (audience, n_seen, n_repaired) in [
            (json!([987_654, 987_655]), 1, 1),
            (json!([]), 1, 0),
            (json!([at.of_ben, 987_654]), 2, 1),
        ] {
            let mut line = line.clone();
            line["audience"] = audience.clone();
            let changed = with_file(&file, &name, format!("{line}\n").as_bytes());
            let imported = import(&at.ann, "/api/spaces/import", "inn.troupe.zip", &changed).await;
            assert_eq!(imported["report"]["n_repaired"], n_repaired, "{imported}");
            let code = &imported["report"]["lines"][0]["code"];
            assert_eq!(code == "audience_unknown", n_repaired == 1, "{imported}");
            let space = expect(200, at.ann.get(&format!("/api/spaces/{}", imported["space_id"])).await);
            let copy = at.ann.messages(root_of(&space)).await;
            assert_eq!(copy[0]["audience"].as_array().unwrap().len(), n_seen, "{audience}");
            let other = at.app.register(&format!("late{n_seen}{n_repaired}")).await;
            at.ann.add_member(id(&space), &other, "member").await;
            assert_eq!(other.messages(root_of(&space)).await, Vec::<Value>::new());
        }
        at.app.close().await;
    }

    async fn a_chat_file_names_the_audience_and_restores_it(backend) {
        let at = Fixture::create(backend).await;
        at.post(&at.ann, "Between us.", Some(&[at.of_ben])).await;
        let path = format!("/api/conversations/{}/export", at.root);
        let file = String::from_utf8(fetch(&at.ann, &path).await).unwrap();
        let line: Value = serde_json::from_str(file.lines().nth(1).unwrap()).unwrap();
        assert_eq!(line["extra"]["audience"], json!(["admin", "ben"]));
        let text = String::from_utf8(fetch(&at.ann, &format!("{path}?format=txt")).await).unwrap();
        assert!(text.contains("UTC, whisper to ben):\nBetween us."), "{text}");

        let unknown = file.replace("\"ben\"", "\"dora\"").replace("[\"admin\"", "[\"eve\"");
        let into = format!("/api/spaces/{}/import", id(&at.space));
        for (file, n_seen_by_ben) in [(file, 1), (unknown, 0)] {
            let imported = import(&at.ann, &into, "aside.jsonl", file.as_bytes()).await;
            let copy = imported["conversation_id"].as_i64().expect("a conversation");
            let shown = &at.ann.messages(copy).await[0];
            assert_eq!(shown["content"], "Between us.");
            assert_eq!(shown["metadata"], json!({}));
            let seen = [at.ben.messages(copy).await.len(), at.cid.messages(copy).await.len()];
            assert_eq!(seen, [n_seen_by_ben, 0]);
        }
        at.app.close().await;
    }

    async fn an_unseen_whisper_does_not_exist(backend) {
        let at = Fixture::create(backend).await;
        let whisper = id(&at.post(&at.ben, "Hush.", Some(&[at.bob])).await);
        let seen = format!("/api/messages/{whisper}");
        let reply = json!({"content": "What?", "reply_to_id": whisper});
        let posted = at.ann.post(&format!("/api/conversations/{}/messages", at.root), reply).await;
        assert_eq!(posted.0, 422, "{}", posted.1);

        let answers = [
            at.ann.put(&format!("{seen}/bookmark"), json!({})).await.0,
            at.ann.put(&format!("{seen}/reactions/%F0%9F%91%8D"), json!({})).await.0,
            at.ann.patch(&seen, json!({"content": "No.", "expected_version": 1})).await.0,
            at.ann.delete(&seen).await.0,
            at.ann.get(&format!("{seen}/swipes")).await.0,
            at.ann.get(&format!("{seen}/revisions")).await.0,
        ];

        assert_eq!(answers, [404; 6]);
        at.app.close().await;
    }
}
