//! Tests posts that no one answers: a narrator's text, a text in the name of a character, and dice.

use serde_json::json;
use troupe::conversations::audience::viewer::Viewer;
use troupe::conversations::message::MessageRole;
use troupe::runs::engine::PostResult;
use troupe::runs::error::EngineError;
use troupe::runs::scheduling::command::{CommandError, VersionRequest};
use troupe::runs::scheduling::messages::new_post::{NewPost, PostKind, RequestedAudience};
use troupe::runs::store::run::RunStatus;
use troupe::spaces::space::ReplyOrder;

use crate::support::backends::{on_both, on_sqlite};
use crate::support::engine_test::{EngineTest, TestUser, edit_of};
use crate::support::fake_provider::script::ResponseScript;

const DELAY_MS: i64 = 5_000;

impl TestUser {
    async fn post_as(
        &self,
        kind: PostKind,
        text: &str,
        client_id: Option<&str>,
    ) -> Result<PostResult, EngineError> {
        let post = NewPost {
            kind,
            client_id: client_id.map(str::to_owned),
            ..NewPost::new(self.membership, text.to_owned())
        };
        self.send(post).await
    }
}

fn dice(text: &str) -> PostKind {
    PostKind::Roll(text.parse().expect("dice"))
}

fn refused<T: std::fmt::Debug>(outcome: Result<T, EngineError>) -> CommandError {
    match outcome {
        Err(EngineError::Rejected(refusal)) => refusal,
        other => panic!("expected a rejection, got {other:?}"),
    }
}

on_both! {
    async fn a_narrators_text_is_stored_and_no_one_replies(backend) {
        let app = EngineTest::builder(backend).cast(&["Ada"]).open().await;

        let posted = app.user.post_as(PostKind::Narrator, "The rain stops.", None).await.expect("accepted");

        assert_eq!((posted.message.role, posted.run.is_none()), (MessageRole::System, true));
        app.settle().await;
        assert_eq!(app.upstream.n_requests(), 0);
        let row = app.row().await;
        assert_eq!((row.last_user_seq, row.last_assistant_seq, row.last_seq), (None, None, 1));
        app.close().await;
    }

    async fn the_queued_turn_reads_the_narrators_text(backend) {
        let app = EngineTest::builder(backend)
            .cast(&["Ada", "Bob"])
            .rules(|it| {
                it.auto_mode_enabled = true;
                it.auto_mode_delay_ms = DELAY_MS;
                it.auto_mode_max_turns = 1;
            })
            .open()
            .await;
        app.user.post("Hello.").await;
        app.settle().await;

        app.user.post_as(PostKind::Narrator, "A plover cries.", None).await.expect("accepted");
        app.clock.advance_ms(DELAY_MS);
        app.settle().await;

        let statuses: Vec<_> = app.runs().await.iter().map(|it| it.status).collect();
        assert_eq!(statuses, [RunStatus::Succeeded, RunStatus::Succeeded]);
        let prompt = app.upstream.seen(1).body.to_string();
        assert!(prompt.contains("A plover cries."), "{prompt}");
        app.close().await;
    }

    async fn a_text_in_the_name_of_a_character_counts_as_its_speech(backend) {
        let app = EngineTest::builder(backend)
            .cast(&["Ada", "Bob"])
            .rules(|it| it.reply_order = ReplyOrder::List)
            .open()
            .await;
        let ada = app.membership("Ada").await.id;

        let posted = app.user.post_as(PostKind::Character(ada), "I am here.", None).await.expect("accepted");
        assert_eq!((posted.message.role, posted.message.space_membership_id), (MessageRole::Assistant, ada));
        assert_eq!(posted.message.metadata, json!({"posted_by": "Eve"}));
        assert_eq!(app.upstream.n_requests(), 0);
        app.user.post("Who is next?").await;
        app.settle().await;

        let bob = app.membership("Bob").await.id;
        assert_eq!(app.messages().await[2].space_membership_id, bob);
        app.close().await;
    }

    async fn the_server_rolls_once_for_a_repeated_post(backend) {
        let app = EngineTest::builder(backend).open().await;

        let first = app.user.post_as(dice("2d6+3"), "2d6+3", Some("a")).await.expect("accepted").message;
        let again = app.user.post_as(dice("2d6+3"), "2d6+3", Some("a")).await.expect("accepted");
        let other = refused(app.user.post_as(dice("2d6"), "2d6", Some("a")).await);
        let own = refused(app.user.post_with_client_id("2d6+3", Some("a")).await);

        assert_eq!((again.is_repeated, again.message.content.as_str()), (true, first.content.as_str()));
        assert_eq!((other, own), (CommandError::ClientIdReused, CommandError::ClientIdReused));
        let roll = &first.metadata["roll"];
        let rolled: Vec<i64> = roll["dice"].as_array().unwrap().iter().map(|it| it.as_i64().unwrap()).collect();
        assert_eq!(roll["total"], rolled.iter().sum::<i64>() + 3);
        assert_eq!(
            first.content,
            format!("Eve rolls 2d6+3: {} + {} + 3 = {}", rolled[0], rolled[1], roll["total"])
        );
        app.close().await;
    }

    async fn a_repeated_text_in_the_name_of_a_character_is_stored_once(backend) {
        let app = EngineTest::builder(backend).cast(&["Ada"]).open().await;
        let ada = PostKind::Character(app.membership("Ada").await.id);

        app.user.post_as(ada, "Hello.", Some("a")).await.expect("accepted");
        let again = app.user.post_as(ada, "Hello.", Some("a")).await.expect("accepted");
        let other = refused(app.user.post_as(ada, "Good evening.", Some("a")).await);

        assert!(again.is_repeated);
        assert_eq!(other, CommandError::ClientIdReused);
        assert_eq!(app.messages().await.len(), 1);
        app.close().await;
    }

    async fn a_roll_is_not_edited(backend) {
        let app = EngineTest::builder(backend).open().await;
        app.user.post_as(dice("d20"), "d20", None).await.expect("accepted");
        let posted = app.messages().await.remove(0);

        let edited = app.engine.edit_message(app.scope(), edit_of(&posted, "Eve rolls 1d20: 20")).await;

        assert_eq!(refused(edited), CommandError::RollNotEditable);
        app.close().await;
    }

    async fn a_whispered_text_of_a_character_is_seen_by_it_and_by_the_one_who_wrote_it(backend) {
        let app = EngineTest::builder(backend).cast(&["Ada"]).open().await;
        let fay = app.another_user("Fay").await;
        let ada = app.membership("Ada").await.id;
        let mut post = NewPost {
            kind: PostKind::Character(ada),
            ..NewPost::new(app.user.membership, "Come closer.".to_owned())
        };
        post.requested.audience = RequestedAudience::Only(vec![fay.membership]);

        let posted = app.user.send(post).await.expect("accepted").message;

        let audience = posted.audience.expect("a whisper");
        for member in [ada, fay.membership, app.user.membership] {
            assert!(audience.contains(member), "{member:?}");
        }
        app.close_without_events().await;
    }
}

on_sqlite! {
    async fn a_narrator_speaks_under_no_name_and_with_role_system(backend) {
        let app = EngineTest::builder(backend).cast(&["Ada"]).open().await;
        app.user.post_as(PostKind::Narrator, "The rain stops.", None).await.expect("accepted");

        app.user.post("Hello.").await;
        app.settle().await;

        let request = app.upstream.seen(0).body;
        let sent = request["messages"].as_array().expect("messages").clone();
        let narrated = sent.iter().find(|it| it["content"].as_str().is_some_and(|it| it.contains("The rain stops.")));
        let narrated = narrated.expect("the prompt contains it");
        assert_eq!((&narrated["role"], narrated.get("name")), (&json!("system"), None));
        app.close().await;
    }

    async fn an_instruction_of_a_continue_is_in_its_prompt_only(backend) {
        let app = EngineTest::builder(backend).cast(&["Ada"]).open().await;
        app.user.post("Hello.").await;
        app.settle().await;
        app.upstream.next(ResponseScript::say(" And a song."));

        let request = VersionRequest {
            message: None,
            instruction: Some("Sing of a plover.".to_owned()),
            by: "Eve".to_owned(),
            viewer: Viewer::Server,
        };
        app.engine.continue_message(app.conversation, request).await.expect("planned");
        app.settle().await;
        app.user.post("Thanks.").await;
        app.settle().await;

        let asks = "[Eve asks for this: Sing of a plover.]";
        let contains = |n: usize| app.upstream.seen(n).body.to_string().contains(asks);
        assert_eq!([contains(0), contains(1), contains(2)], [false, true, false]);
        app.close().await;
    }
}
