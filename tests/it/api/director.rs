//! Tests of the reply order `director` over HTTP: its settings, a queue with an undecided slot, the
//! preview, and space files.

use serde_json::{Value, json};

use crate::support::app::TestApp;
use crate::support::backends::{TestBackend, on_both, on_sqlite};
use crate::support::file_uploads::{fetch, import};
use crate::support::http_client::{HttpClient, expect, id, root_of};
use crate::support::http_response::refusal;
use crate::support::poll;

/// No workers: queued runs stay queued.
const IDLE: &[(&str, &str)] = &[("TROUPE_WORKERS", "0")];

/// Ada and Bob, in a space with a director.
struct Fixture {
    app: TestApp,
    ann: HttpClient,
    space: Value,
    conversation: i64,
    memberships: Vec<i64>,
}

impl Fixture {
    async fn create(backend: TestBackend, settings: &[(&str, &str)]) -> Self {
        let app = TestApp::start_with(backend, settings).await;
        let ann = app.admin().await;
        let rules = json!({"reply_order": "director"});
        let space = ann.create_space("Room", rules).await;
        let mut memberships = Vec::new();
        for name in ["Ada", "Bob"] {
            let character = ann.create_character(name, None).await;
            memberships.push(id(&ann.add_character(&space, &character).await));
        }
        Self {
            conversation: root_of(&space),
            app,
            ann,
            space,
            memberships,
        }
    }

    async fn post(&self) -> Value {
        expect(
            201,
            self.ann.post_message(self.conversation, "Hi.", None).await,
        );
        self.ann.conversation(self.conversation).await
    }

    async fn arrange(&self, round: &Value, slots: Value) -> (u16, Value) {
        let path = format!("/api/conversations/{}/round", self.conversation);
        let body = json!({"round_id": round["id"], "slots": slots});
        self.ann.patch(&path, body).await
    }

    fn space_path(&self) -> String {
        format!("/api/spaces/{}", id(&self.space))
    }
}

on_sqlite! {
    async fn a_space_names_the_provider_of_its_director(backend) {
        let it = Fixture::create(backend, IDLE).await;
        let providers = expect(200, it.ann.get("/api/providers").await);
        let provider = &providers["data"][0]["id"];

        let unknown = it.ann.patch(&it.space_path(), json!({"director_provider_id": 999_999})).await;
        let chosen = expect(200, it.ann.patch(&it.space_path(), json!({"director_provider_id": provider})).await);
        expect(204, it.ann.delete(&format!("/api/providers/{provider}")).await);
        let kept = expect(200, it.ann.patch(&it.space_path(), json!({"director_provider_id": provider, "name": "Other"})).await);
        let none = expect(200, it.ann.patch(&it.space_path(), json!({"director_provider_id": null})).await);

        assert_eq!((unknown.0, &unknown.1["error"]["param"]), (422, &json!("director_provider_id")));
        assert_eq!((&chosen["director_provider_id"], &kept["director_provider_id"]), (provider, provider));
        assert_eq!((&none["director_provider_id"], &none["reply_order"]), (&Value::Null, &json!("director")));
        it.app.close().await;
    }

    async fn a_slot_of_the_director_has_no_member_and_can_be_arranged(backend) {
        let it = Fixture::create(backend, IDLE).await;
        let [ada, bob] = it.memberships[..] else { panic!("expected two memberships") };

        let before = it.post().await;
        let moved = expect(200, it.arrange(&before["round"], json!([bob, null])).await);
        let added = it.arrange(&before["round"], json!([null, null])).await;
        let replaced = expect(200, it.arrange(&before["round"], json!([ada])).await);

        assert_eq!(before["state"], "queued");
        assert_eq!(before["queued_run"]["speaker_space_membership_id"], Value::Null);
        assert_eq!(before["round"]["slots"][0]["membership_id"], Value::Null);
        assert_eq!(moved["queued_run"]["speaker_space_membership_id"], bob);
        assert_eq!(moved["round"]["slots"][1]["membership_id"], Value::Null);
        assert_eq!(refusal(&added), (422, "invalid_value".to_owned()));
        assert_eq!(replaced["queued_run"]["speaker_space_membership_id"], ada);
        it.app.close().await;
    }

    async fn the_probabilities_of_the_directors_choice_are_unknown(backend) {
        let it = Fixture::create(backend, IDLE).await;
        let path = format!("/api/conversations/{}/next_speaker", it.conversation);
        let idle = expect(200, it.ann.get(&path).await);
        let round = it.post().await["round"].clone();

        let undecided = expect(200, it.ann.get(&path).await);
        expect(200, it.ann.patch(&it.space_path(), json!({"reply_order": "list"})).await);
        let reordered = expect(200, it.ann.get(&path).await);
        expect(200, it.arrange(&round, json!([it.memberships[1]])).await);
        let decided = expect(200, it.ann.get(&path).await);

        for preview in [&idle, &undecided, &reordered] {
            assert_eq!(preview["decided"], json!([]));
            let odds = preview["odds"].as_array().expect("a list").iter();
            let odds: Vec<_> = odds.map(|it| (it["membership_id"].as_i64().unwrap(), it["probability"].clone())).collect();
            let expected: Vec<_> = it.memberships.iter().map(|it| (*it, Value::Null)).collect();
            assert_eq!(odds, expected);
        }
        assert_eq!(decided["decided"][0]["membership_id"], it.memberships[1]);
        assert_eq!(decided["odds"][0]["probability"], 1.0);
        it.app.close().await;
    }
}

on_both! {
    async fn the_demo_model_directs(backend) {
        let it = Fixture::create(backend, &[]).await;

        it.post().await;
        let run = poll::until("the run has ended", async || {
            let runs = it.ann.runs(it.conversation).await;
            runs.into_iter().find(|it| it["finished_at"] != Value::Null)
        })
        .await;

        assert_eq!(run["status"], "succeeded");
        assert_eq!(run["chosen_because"], "director: The demo model drew this name.");
        it.app.close().await;
    }

    async fn a_space_file_keeps_the_order_and_runs_without_a_speaker(backend) {
        let it = Fixture::create(backend, IDLE).await;
        it.post().await;
        expect(202, it.ann.stop(it.conversation).await);
        expect(200, it.ann.skip(it.conversation).await);

        let file = fetch(&it.ann, &format!("{}/export", it.space_path())).await;
        let done = import(&it.ann, "/api/spaces/import", "room.troupe.zip", &file).await;
        let copy = expect(200, it.ann.get(&format!("/api/spaces/{}", done["space_id"])).await);

        assert_eq!((&copy["reply_order"], &copy["director_provider_id"]), (&json!("director"), &Value::Null));
        let runs = it.ann.runs(root_of(&copy)).await;
        assert_eq!(runs[0]["speaker_space_membership_id"], Value::Null);
        assert_eq!((&runs[0]["status"], &runs[0]["canceled_because"]), (&json!("canceled"), &json!("stopped")));
        it.app.close().await;
    }
}
