//! Tests of editing the queue of a round over HTTP.

use serde_json::{Value, json};

use crate::support::app::TestApp;
use crate::support::backends::{TestBackend, on_sqlite};
use crate::support::http_client::{HttpClient, expect, id, root_of};
use crate::support::http_response::refusal;

/// No workers: queued runs stay queued.
const IDLE: &[(&str, &str)] = &[("TROUPE_WORKERS", "0")];

/// A round with slots for Ada, Bob and Cid; Ada is next.
struct Fixture {
    app: TestApp,
    ann: HttpClient,
    conversation: i64,
    memberships: Vec<i64>,
}

impl Fixture {
    async fn create(backend: TestBackend) -> Fixture {
        let app = TestApp::start_with(backend, IDLE).await;
        let ann = app.admin().await;
        let rules = json!({"reply_order": "list", "replies_per_turn": "activated"});
        let space = ann.create_space("Room", rules).await;
        let mut memberships = Vec::new();
        for name in ["Ada", "Bob", "Cid"] {
            let character = ann.create_character(name, None).await;
            memberships.push(id(&ann.add_character(&space, &character).await));
        }
        let conversation = root_of(&space);
        expect(201, ann.post_message(conversation, "Hi.", None).await);
        Fixture {
            app,
            ann,
            conversation,
            memberships,
        }
    }

    async fn document(&self) -> Value {
        self.ann.conversation(self.conversation).await
    }

    async fn edit(&self, round: &Value, slots: Value) -> (u16, Value) {
        let path = format!("/api/conversations/{}/round", self.conversation);
        let body = json!({"round_id": round, "slots": slots});
        self.ann.patch(&path, body).await
    }
}

fn members(document: &Value) -> Vec<i64> {
    let slots = document["round"]["slots"]
        .as_array()
        .expect("the round has slots");
    let members = slots.iter().map(|it| it["membership_id"].as_i64());
    members
        .map(|it| it.expect("the slot has a membership"))
        .collect()
}

on_sqlite! {
    async fn the_queue_is_replaced_by_the_given_slots(backend) {
        let fixture = Fixture::create(backend).await;
        let [ada, _, cid] = fixture.memberships[..] else { panic!("expected three memberships") };
        let before = fixture.document().await;
        let round = &before["round"]["id"];

        let after = expect(200, fixture.edit(round, json!([cid, ada, cid])).await);

        assert_eq!(members(&after), [cid, ada, cid]);
        assert_eq!(after["round"]["id"], *round);
        let because: Vec<_> = after["round"]["slots"].as_array().unwrap().iter().map(|it| &it["chosen_because"]).collect();
        assert_eq!(because, ["next by position", "next by position", "put in the queue by admin"]);
        assert_eq!(after["queued_run"]["id"], before["queued_run"]["id"]);
        assert_eq!(after["queued_run"]["speaker_space_membership_id"], cid);
        assert_eq!(after, fixture.document().await);
        fixture.app.close().await;
    }

    async fn an_empty_queue_ends_the_round(backend) {
        let fixture = Fixture::create(backend).await;
        let round = fixture.document().await["round"]["id"].clone();

        let after = expect(200, fixture.edit(&round, json!([])).await);
        let again = fixture.edit(&round, json!([])).await;

        assert_eq!((&after["state"], &after["round"]), (&json!("idle"), &Value::Null));
        assert_eq!(refusal(&again), (409, "stale_round".to_owned()));
        fixture.app.close().await;
    }

    async fn an_edit_of_an_earlier_round_is_rejected(backend) {
        let fixture = Fixture::create(backend).await;
        let round = fixture.document().await["round"]["id"].clone();
        expect(201, fixture.ann.post_message(fixture.conversation, "And?", None).await);

        let stale = fixture.edit(&round, json!(fixture.memberships)).await;

        assert_eq!(refusal(&stale), (409, "stale_round".to_owned()));
        fixture.app.close().await;
    }

    async fn an_unschedulable_member_is_rejected(backend) {
        let fixture = Fixture::create(backend).await;
        let round = fixture.document().await["round"]["id"].clone();
        let [ada, bob, _] = fixture.memberships[..] else { panic!("expected three memberships") };
        let mute = json!({"participation": "muted"});
        expect(200, fixture.ann.patch(&format!("/api/memberships/{bob}"), mute).await);
        let too_many = vec![ada; 101];

        for slots in [json!([bob]), json!([999_999]), json!(too_many)] {
            let (status, body) = fixture.edit(&round, slots).await;

            assert_eq!((status, &body["error"]["code"]), (422, &json!("invalid_value")));
            assert_eq!(body["error"]["param"], "slots");
        }
        fixture.app.close().await;
    }
}
