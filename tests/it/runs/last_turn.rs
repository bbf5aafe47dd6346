//! Tests the group setting in which a regenerate replaces the whole turn: the replies to the newest
//! user message are removed and generated again.

use base::ids::{ConversationId, MessageId};
use sea_orm::{ColumnTrait, EntityTrait, QueryFilter, QueryOrder};
use troupe::conversations::audience::viewer::Viewer;
use troupe::conversations::message;
use troupe::conversations::message::Visibility;
use troupe::runs::regeneration::RegenerateResult;
use troupe::runs::scheduling::command::ForcedTurn;
use troupe::runs::store::run::{RunKind, RunReason};
use troupe::spaces::space::GroupRegenerateMode;

use crate::support::backends::{TestBackend, on_sqlite};
use crate::support::engine_test::EngineTest;
use crate::support::fake_provider::script::ResponseScript;

/// Eve posted "Hi."; Ada answered, and Bob was triggered.
async fn turn(backend: TestBackend) -> EngineTest {
    let app = EngineTest::builder(backend)
        .cast(&["Ada", "Bob", "Cid"])
        .rules(|it| it.group_regenerate_mode = GroupRegenerateMode::LastTurn)
        .open()
        .await;
    app.upstream.next(ResponseScript::say("From Ada."));
    app.user.post("Hi.").await;
    app.settle().await;
    app.upstream.next(ResponseScript::say("From Bob."));
    let bob = app.membership("Bob").await;
    let forced = app.engine.force_talk(
        app.conversation,
        ForcedTurn::new(Some(bob.id), "Eve", Viewer::Server),
    );
    forced.await.unwrap();
    app.settle().await;
    app
}

async fn regenerate(app: &EngineTest, at: Option<MessageId>) -> RegenerateResult {
    let planned = app
        .engine
        .regenerate(app.conversation, at, "Eve".to_owned());
    planned.await.expect("the regenerate was rejected")
}

/// The visible lines of a conversation.
async fn visible_texts(app: &EngineTest, id: ConversationId) -> Vec<String> {
    let all = message::Entity::find()
        .filter(message::Column::ConversationId.eq(id))
        .filter(message::Column::Visibility.ne(Visibility::Hidden))
        .order_by_asc(message::Column::Seq)
        .all(app.db.reader());
    let all = all.await.expect("the query failed").into_iter();
    all.map(|it| it.content).collect()
}

on_sqlite! {
    async fn the_whole_turn_is_hidden_and_the_user_is_answered_again(backend) {
        let app = turn(backend).await;
        let n_frames = app.events.log().len();
        app.upstream.next(ResponseScript::say("Anew."));

        let planned = regenerate(&app, None).await;
        app.settle().await;

        assert_eq!(visible_texts(&app, app.conversation).await, ["Hi.", "Anew."]);
        assert_eq!((planned.run.kind, planned.run.reason), (RunKind::UserTurn, RunReason::LastTurn));
        assert_eq!(planned.run.trigger_message_id, Some(app.messages().await[0].id));
        assert!(planned.branch.is_none() && planned.run.round_id.is_some());
        let expected = [
            "message_hidden", "message_hidden", "run_queued", "queue_updated",
            "queue_updated", "typing_start", "stream_chunk",
            "message_created", "stream_complete(succeeded)", "queue_updated", "typing_stop",
        ];
        assert_eq!(app.events.event_names_since(n_frames), expected);
        let prompt = app.upstream.body(2)["messages"].to_string();
        assert!(prompt.contains("Hi.") && !prompt.contains("From"), "{prompt}");
        app.close().await;
    }

    async fn the_next_speaker_is_chosen_as_if_the_turn_had_not_happened(backend) {
        let app = turn(backend).await;

        let planned = regenerate(&app, None).await;
        app.settle().await;

        let ada = app.membership("Ada").await;
        assert_eq!(planned.run.speaker_space_membership_id, Some(ada.id));
        app.close().await;
    }

    async fn a_turn_with_a_fork_point_is_kept_and_answered_again_in_another_branch(backend) {
        let app = turn(backend).await;
        let ada = app.messages().await[1].id;
        app.engine.branch(app.conversation, ada, String::new()).await.unwrap();

        let planned = regenerate(&app, None).await;
        app.until("it is answered", async |it| visible_texts(it, planned.conversation).await.len() == 2).await;
        app.wait_until_idle().await;

        assert_eq!(visible_texts(&app, app.conversation).await, ["Hi.", "From Ada.", "From Bob."]);
        assert_eq!(visible_texts(&app, planned.conversation).await, ["Hi.", "Hello."]);
        assert_eq!(planned.run.reason, RunReason::LastTurn);
        app.close().await;
    }

    async fn an_earlier_turn_is_kept_and_answered_again_in_a_branch(backend) {
        let app = turn(backend).await;
        app.user.post("And?").await;
        app.settle().await;
        let ada = app.messages().await[1].id;

        let planned = regenerate(&app, Some(ada)).await;
        app.until("it is answered", async |it| visible_texts(it, planned.conversation).await.len() == 2).await;
        app.wait_until_idle().await;

        assert_eq!(visible_texts(&app, app.conversation).await.len(), 5);
        assert_eq!(visible_texts(&app, planned.conversation).await, ["Hi.", "Hello."]);
        app.close().await;
    }

    async fn without_a_user_message_only_the_last_message_is_regenerated(backend) {
        let app = EngineTest::builder(backend)
            .cast(&["Ada", "Bob"])
            .rules(|it| it.group_regenerate_mode = GroupRegenerateMode::LastTurn)
            .open()
            .await;
        app.set_greeting("Ada", "Welcome.").await;
        app.engine.insert_greetings(app.membership("Ada").await.id).await.unwrap();

        let planned = regenerate(&app, None).await;
        app.settle().await;

        assert_eq!(planned.run.kind, RunKind::Regenerate);
        assert_eq!(visible_texts(&app, app.conversation).await, ["Hello."]);
        app.close().await;
    }
}
