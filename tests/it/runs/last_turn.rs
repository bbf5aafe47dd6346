//! Tests the group setting in which a regenerate replaces the whole turn: the replies to the newest
//! user message are removed and generated again.

use base::ids::{ConversationId, MessageId};
use sea_orm::{ColumnTrait, EntityTrait, QueryFilter, QueryOrder};
use troupe::conversations::message;
use troupe::conversations::message::Visibility;
use troupe::runs::message_versions::RegenerateResult;
use troupe::runs::store::run::{RunKind, RunReason};
use troupe::spaces::space::GroupRegenerateMode;

use crate::support::backends::{TestBackend, on_sqlite};
use crate::support::engine_test::EngineTest;
use crate::support::fake_provider::script::ResponseScript;

/// Eve posted "Hi."; Ada answered, and Bob was triggered.
async fn turn(backend: TestBackend) -> EngineTest {
    let room = EngineTest::builder(backend)
        .cast(&["Ada", "Bob", "Cid"])
        .rules(|it| it.group_regenerate_mode = GroupRegenerateMode::LastTurn)
        .open()
        .await;
    room.upstream.next(ResponseScript::say("From Ada."));
    room.user.post("Hi.").await;
    room.settle().await;
    room.upstream.next(ResponseScript::say("From Bob."));
    let bob = room.membership("Bob").await;
    let forced = room
        .engine
        .force_talk(room.conversation, Some(bob.id), "Eve".to_owned());
    forced.await.unwrap();
    room.settle().await;
    room
}

async fn regenerate(room: &EngineTest, at: Option<MessageId>) -> RegenerateResult {
    let planned = room
        .engine
        .regenerate(room.conversation, at, "Eve".to_owned());
    planned.await.expect("it is planned")
}

/// The visible lines of a conversation.
async fn shown(room: &EngineTest, id: ConversationId) -> Vec<String> {
    let all = message::Entity::find()
        .filter(message::Column::ConversationId.eq(id))
        .filter(message::Column::Visibility.ne(Visibility::Hidden))
        .order_by_asc(message::Column::Seq)
        .all(room.db.reader());
    let all = all.await.expect("the database answers").into_iter();
    all.map(|it| it.content).collect()
}

on_sqlite! {
    async fn the_whole_turn_is_hidden_and_the_human_is_answered_again(backend) {
        let room = turn(backend).await;
        let n_frames = room.events.log().len();
        room.upstream.next(ResponseScript::say("Anew."));

        let planned = regenerate(&room, None).await;
        room.settle().await;

        assert_eq!(shown(&room, room.conversation).await, ["Hi.", "Anew."]);
        assert_eq!((planned.run.kind, planned.run.reason), (RunKind::UserTurn, RunReason::LastTurn));
        assert_eq!(planned.run.trigger_message_id, Some(room.messages().await[0].id));
        assert!(planned.branch.is_none() && planned.run.round_id.is_some());
        let expected = [
            "message_hidden", "message_hidden", "run_queued", "queue_updated",
            "queue_updated", "typing_start", "stream_chunk",
            "message_created", "stream_complete(succeeded)", "queue_updated", "typing_stop",
        ];
        assert_eq!(room.events.event_names_since(n_frames), expected);
        let told = room.upstream.body(2)["messages"].to_string();
        assert!(told.contains("Hi.") && !told.contains("From"), "{told}");
        room.close().await;
    }

    async fn the_next_speaker_is_chosen_as_if_the_turn_had_not_happened(backend) {
        let room = turn(backend).await;

        let planned = regenerate(&room, None).await;
        room.settle().await;

        let ada = room.membership("Ada").await;
        assert_eq!(planned.run.speaker_space_membership_id, ada.id);
        room.close().await;
    }

    async fn a_turn_on_which_a_branch_hangs_stays_and_is_answered_in_another_branch(backend) {
        let room = turn(backend).await;
        let ada = room.messages().await[1].id;
        room.engine.branch(room.conversation, ada, String::new()).await.unwrap();

        let planned = regenerate(&room, None).await;
        room.until("it is answered", async |it| shown(it, planned.conversation).await.len() == 2).await;
        room.wait_until_idle().await;

        assert_eq!(shown(&room, room.conversation).await, ["Hi.", "From Ada.", "From Bob."]);
        assert_eq!(shown(&room, planned.conversation).await, ["Hi.", "Hello."]);
        assert_eq!(planned.run.reason, RunReason::LastTurn);
        room.close().await;
    }

    async fn an_earlier_turn_stays_and_is_answered_in_a_branch(backend) {
        let room = turn(backend).await;
        room.user.post("And?").await;
        room.settle().await;
        let ada = room.messages().await[1].id;

        let planned = regenerate(&room, Some(ada)).await;
        room.until("it is answered", async |it| shown(it, planned.conversation).await.len() == 2).await;
        room.wait_until_idle().await;

        assert_eq!(shown(&room, room.conversation).await.len(), 5);
        assert_eq!(shown(&room, planned.conversation).await, ["Hi.", "Hello."]);
        room.close().await;
    }

    async fn without_a_human_it_is_the_one_message(backend) {
        let room = EngineTest::builder(backend)
            .cast(&["Ada", "Bob"])
            .rules(|it| it.group_regenerate_mode = GroupRegenerateMode::LastTurn)
            .open()
            .await;
        room.set_greeting("Ada", "Welcome.").await;
        room.engine.insert_greetings(room.membership("Ada").await.id).await.unwrap();

        let planned = regenerate(&room, None).await;
        room.settle().await;

        assert_eq!(planned.run.kind, RunKind::Regenerate);
        assert_eq!(shown(&room, room.conversation).await, ["Hello."]);
        room.close().await;
    }
}
