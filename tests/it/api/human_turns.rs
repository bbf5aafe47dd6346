//! Tests of the turns of people over HTTP: the settings, who may skip whose turn, and who is away.

use base::ids::{ConversationId, UserId};
use realtime::topic::Topic;
use serde_json::{Value, json};

use crate::support::app::TestApp;
use crate::support::backends::{TestBackend, on_sqlite};
use crate::support::event_recorder::EventRecorder;
use crate::support::file_uploads::{fetch, import};
use crate::support::http_client::{HttpClient, expect, id, root_of};
use crate::support::http_response::refusal;
use crate::support::role_fixture::user_id;

const OPEN: &[(&str, &str)] = &[("TROUPE_OPEN_REGISTRATION", "true")];

/// Ann, the owner, with the member Ben and the guest Cid, who take turns in this order.
struct Fixture {
    app: TestApp,
    ann: HttpClient,
    ben: HttpClient,
    cid: HttpClient,
    space: Value,
    of_ben: i64,
    of_cid: i64,
    root: i64,
}

impl Fixture {
    async fn create(backend: TestBackend) -> Fixture {
        let app = TestApp::start_with(backend, OPEN).await;
        let ann = app.admin().await;
        let rules = json!({"reply_order": "list", "replies_per_turn": "activated",
            "humans_take_turns": true, "human_turn_timeout_s": 60});
        let space = ann.create_space("The inn", rules).await;
        let (ben, cid) = (app.register("ben").await, app.register("cid").await);
        let of_ben = id(&ann.add_member(id(&space), &ben, "member").await);
        let of_cid = id(&ann.add_member(id(&space), &cid, "guest").await);
        let root = root_of(&space);
        Fixture {
            app,
            ann,
            ben,
            cid,
            space,
            of_ben,
            of_cid,
            root,
        }
    }

    /// Ann posts, and it is Ben's turn.
    async fn waiting(backend: TestBackend) -> Fixture {
        let at = Fixture::create(backend).await;
        let posted = expect(201, at.ann.post_message(at.root, "Hello.", None).await);
        assert_eq!(posted["run"], Value::Null, "no character replies");
        assert_eq!(at.turn().await, (json!("waiting"), json!(at.of_ben)));
        at
    }

    /// Returns the state of the conversation, and whose turn it is.
    async fn turn(&self) -> (Value, Value) {
        let now = self.ann.conversation(self.root).await;
        let round = &now["round"];
        let position = round["cursor"].as_u64().unwrap_or_default() as usize;
        (
            now["state"].clone(),
            round["slots"][position]["membership_id"].clone(),
        )
    }

    async fn change(&self, person: &HttpClient, membership: i64, body: Value) -> (u16, Value) {
        person
            .patch(&format!("/api/memberships/{membership}"), body)
            .await
    }
}

on_sqlite! {
    async fn people_speak_one_after_another_until_the_round_is_over(backend) {
        let at = Fixture::waiting(backend).await;

        let posted = expect(201, at.ben.post_message(at.root, "Good evening.", None).await);
        assert_eq!(at.turn().await, (json!("waiting"), json!(at.of_cid)));
        let slot = at.ann.conversation(at.root).await["round"]["slots"][0].clone();
        assert_eq!((&slot["status"], &slot["message_id"]), (&json!("spoken"), &posted["message"]["id"]));
        expect(201, at.cid.post_message(at.root, "Hi.", None).await);

        let now = at.ann.conversation(at.root).await;
        assert_eq!((&now["state"], &now["round"]), (&json!("idle"), &Value::Null));
        at.app.close().await;
    }

    async fn only_the_person_gets_the_cue(backend) {
        let at = Fixture::create(backend).await;
        let topic = |user| Topic::User(UserId(user));
        let hub = &at.app.app.hub;
        let of_ben = EventRecorder::subscribe(hub, topic(user_id(&at.ben).await));
        let of_cid = EventRecorder::subscribe(hub, topic(user_id(&at.cid).await));
        let of_all = EventRecorder::subscribe(hub, Topic::Conversation(ConversationId(at.root)));

        expect(201, at.ann.post_message(at.root, "Hello.", None).await);
        let cue = of_ben.wait_for("the cue", |it| it["type"] == "your_turn").await;

        assert_eq!((&cue["membership_id"], &cue["slot_position"]), (&json!(at.of_ben), &json!(0)));
        assert_eq!(cue["conversation_id"], at.root);
        assert_eq!(cue["deadline_at"], at.ann.conversation(at.root).await["round"]["deadline_at"]);
        let is_cue = |it: &String| it == "your_turn";
        assert!(!of_cid.event_names().iter().any(is_cue) && !of_all.event_names().iter().any(is_cue));
        at.app.close().await;
    }

    async fn a_guest_skips_only_their_own_turn(backend) {
        let at = Fixture::waiting(backend).await;

        assert_eq!(refusal(&at.cid.skip(at.root).await), (403, "forbidden".to_owned()));
        expect(200, at.ben.skip(at.root).await);
        assert_eq!(refusal(&at.ben.skip(at.root).await), (403, "forbidden".to_owned()));
        let after = expect(200, at.cid.skip(at.root).await);

        assert_eq!(after["state"], "idle");
        at.app.close().await;
    }

    async fn a_moderator_skips_the_turn_of_another_person(backend) {
        let at = Fixture::waiting(backend).await;

        let after = expect(200, at.ann.skip(at.root).await);

        assert_eq!(after["round"]["slots"][0]["skip_reason"], "skipped_by_a_person");
        assert_eq!(at.turn().await, (json!("waiting"), json!(at.of_cid)));
        at.app.close().await;
    }

    async fn a_person_who_goes_away_or_leaves_is_passed_over_at_once(backend) {
        let at = Fixture::waiting(backend).await;

        let away = expect(200, at.change(&at.ben, at.of_ben, json!({"is_away": true})).await);
        assert_eq!(away["is_away"], true);
        assert_eq!(at.turn().await, (json!("waiting"), json!(at.of_cid)));
        let path = format!("/api/memberships/{}", at.of_cid);
        expect(204, at.cid.delete(&path).await);

        assert_eq!(at.turn().await.0, "idle");
        at.app.close().await;
    }

    async fn only_the_person_and_moderators_set_who_is_away(backend) {
        let at = Fixture::create(backend).await;
        let character = at.ann.create_character("Ada", None).await;
        let ada = id(&at.ann.add_character(&at.space, &character).await);
        let body = || json!({"is_away": true});

        assert_eq!(refusal(&at.change(&at.ben, at.of_cid, body()).await), (403, "forbidden".to_owned()));
        expect(200, at.change(&at.ann, at.of_cid, body()).await);
        expect(200, at.change(&at.cid, at.of_cid, json!({"is_away": false})).await);
        let of_character = at.change(&at.ann, ada, body()).await;
        assert_eq!((of_character.0, &of_character.1["error"]["param"]), (422, &json!("is_away")));
        let wrong = at.change(&at.cid, at.of_cid, json!({"is_away": null})).await;
        assert_eq!(wrong.0, 400, "{}", wrong.1);
        at.app.close().await;
    }

    async fn the_settings_are_checked_and_kept_in_a_space_file(backend) {
        let at = Fixture::create(backend).await;
        let path = format!("/api/spaces/{}", id(&at.space));
        for wrong in [-1, 86_401] {
            let refused = at.ann.patch(&path, json!({"human_turn_timeout_s": wrong})).await;
            assert_eq!((refused.0, &refused.1["error"]["param"]), (422, &json!("human_turn_timeout_s")));
        }
        let wrong = at.ann.patch(&path, json!({"humans_take_turns": "yes"})).await;
        assert_eq!(wrong.0, 400, "{}", wrong.1);

        let file = fetch(&at.ann, &format!("{path}/export")).await;
        let imported = import(&at.ann, "/api/spaces/import", "inn.troupe.zip", &file).await;
        let space = expect(200, at.ann.get(&format!("/api/spaces/{}", imported["space_id"])).await);

        assert_eq!((&space["humans_take_turns"], &space["human_turn_timeout_s"]), (&json!(true), &json!(60)));
        at.app.close().await;
    }

    async fn the_preview_names_the_waiting_person_and_who_may_come_after_the_viewer(backend) {
        let at = Fixture::waiting(backend).await;
        let preview = async |person: &HttpClient| {
            let path = format!("/api/conversations/{}/next_speaker", at.root);
            expect(200, person.get(&path).await)
        };

        let of_ann = preview(&at.ann).await;
        let decided = of_ann["decided"].as_array().expect("a list").iter();
        assert!(decided.map(|it| it["membership_id"].clone()).eq([json!(at.of_ben), json!(at.of_cid)]));
        let certain = |preview: &Value| {
            let odds = preview["odds"].as_array().expect("a list").iter();
            odds.map(|it| it["membership_id"].clone()).collect::<Vec<_>>()
        };

        assert_eq!(certain(&of_ann), [at.of_ben, at.of_cid]);
        assert!(!certain(&preview(&at.ben).await).contains(&json!(at.of_ben)));
        at.app.close().await;
    }
}
