//! Tests that the prompts of a conversation of thousands of messages still contain a fact from its
//! first messages, and that their beginning does not change.

use base::clock::Timestamp;
use base::ids::{ConversationId, MembershipId};
use sea_orm::ActiveValue::{Set, Unchanged};
use sea_orm::{ActiveModelTrait, ConnectionTrait, DbErr};
use serde_json::json;
use troupe::conversations::message::MessageRole;
use troupe::conversations::{conversation, timeline};
use troupe::memories::summaries::summary_edit;

use crate::support::backends::on_both;
use crate::support::engine_test::EngineTest;
use crate::support::summary_fixture::{has_word, open_summaries};

/// The message with the fact.
const FACT_SEQ: i64 = 50;
/// The turns whose prompts are compared.
const TURNS: usize = 12;

/// Writes this many messages without the engine. Only one of them begins with a `W`, which is what the
/// scripted model keeps of a message.
async fn write_messages(app: &EngineTest, n_messages: i64) {
    let (id, author, now) = (app.conversation, app.user.membership, app.clock.now());
    let written: Result<(), DbErr> = app
        .db
        .write(move |tx| Box::pin(async move { insert(tx, (id, author), n_messages, now).await }))
        .await;
    written.expect("the database answers");
}

async fn insert(
    tx: &impl ConnectionTrait,
    (id, author): (ConversationId, MembershipId),
    n_messages: i64,
    now: Timestamp,
) -> Result<(), DbErr> {
    for seq in 1..=n_messages {
        let text = match seq {
            FACT_SEQ => "Wreckage lies below the lighthouse.".to_owned(),
            _ => format!("They sailed on, day {seq}."),
        };
        let mut row = timeline::new_model(id, author, MessageRole::User, text, now);
        (row.seq, row.rev, row.token_count) = (seq, seq, 20);
        timeline::append(tx, row).await?;
    }
    let row = conversation::ActiveModel {
        id: Unchanged(id),
        last_seq: Set(n_messages),
        rev: Set(n_messages),
        last_user_seq: Set(Some(n_messages)),
        ..Default::default()
    };
    row.update(tx).await.map(drop)
}

on_both! {
    async fn a_fact_of_the_first_messages_is_in_each_prompt_and_the_beginnings_are_equal(backend) {
        let is_slow_run = std::env::var("TROUPE_SLOW_TESTS").is_ok_and(|it| it == "1");
        let n_messages = if is_slow_run { 20_000 } else { 1_200 };
        let app = open_summaries(backend).await;
        app.change_rules(|it| it.settings["preset"]["context_tokens"] = json!(8_192)).await;
        write_messages(&app, n_messages).await;

        let (now, id) = (app.clock.now(), app.conversation);
        assert!(summary_edit::request_now(&app.db, id, now).await.unwrap());
        app.summarize().await;

        let mut prompts: Vec<Vec<String>> = Vec::new();
        for _ in 0..TURNS {
            prompts.push(app.prompt_texts().await);
            app.summarize().await;
        }
        assert!(prompts.iter().all(|it| has_word(&it.join("\n"), "Wreckage")), "{:?}", prompts[0][0]);
        let n_equal = prompts.windows(2).filter(|it| it[1].starts_with(&it[0])).count();
        assert!(n_equal >= 10, "only {n_equal} of {TURNS} prompts continue the one before");
        assert_eq!(app.in_use().await.from_seq, 1);
        app.close_without_events().await;
    }
}
