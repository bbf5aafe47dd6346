//! Creates the tables of the `/v1` API: `responses` with `response_items` and `response_events`,
//! and `api_conversations` with `api_conversation_items`. A conversation has at most one response
//! that is queued or in progress.

use crate::columns::*;
use sea_orm_migration::prelude::*;
use sea_orm_migration::schema::*;

const RESPONSES: &str = "responses";
const ITEMS: &str = "response_items";
const EVENTS: &str = "response_events";
const CONVERSATIONS: &str = "api_conversations";
const CONVERSATION_ITEMS: &str = "api_conversation_items";

#[derive(DeriveMigrationName)]
pub struct Migration;

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    fn use_transaction(&self) -> Option<bool> {
        Some(true) // SQLite too: a step is whole or not at all
    }

    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        for table in [
            conversations(),
            conversation_items(),
            responses(),
            items(),
            events(),
        ] {
            manager.create_table(table).await?;
        }
        for index in indexes() {
            manager.create_index(index).await?;
        }
        Ok(())
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let all = [EVENTS, ITEMS, RESPONSES, CONVERSATION_ITEMS, CONVERSATIONS];
        drop_all(manager, &all).await
    }
}

/// An id of this surface: a prefix, `_`, 32 hexadecimal digits.
fn own_id(name: &'static str) -> ColumnDef {
    string_len(name, 64)
}

fn conversations() -> TableCreateStatement {
    Table::create()
        .table(CONVERSATIONS)
        .col(own_id("id").primary_key())
        .col(big_integer("user_id"))
        .col(document("metadata"))
        .col(big_integer("next_position").default(0))
        .col(instant("created_at"))
        .col(instant_null("deleted_at"))
        .foreign_key(&mut refers(
            CONVERSATIONS,
            "user_id",
            "users",
            ForeignKeyAction::Cascade,
        ))
        .take()
}

fn conversation_items() -> TableCreateStatement {
    Table::create()
        .table(CONVERSATION_ITEMS)
        .col(own_id("api_conversation_id"))
        .col(big_integer("position"))
        .col(own_id("item_id"))
        .col(json_binary("payload"))
        .primary_key(Index::create().col("api_conversation_id").col("position"))
        .foreign_key(&mut refers(
            CONVERSATION_ITEMS,
            "api_conversation_id",
            CONVERSATIONS,
            ForeignKeyAction::Cascade,
        ))
        .take()
}

fn responses() -> TableCreateStatement {
    let statuses = [
        "queued",
        "in_progress",
        "completed",
        "incomplete",
        "failed",
        "cancelled",
    ];
    Table::create()
        .table(RESPONSES)
        .col(own_id("id").primary_key())
        .col(big_integer("user_id"))
        .col(string_len_null("previous_response_id", 64))
        .col(string_len_null("api_conversation_id", 64))
        .col(word("status", "queued", &statuses))
        .col(boolean("background").default(false))
        .col(text("model"))
        .col(json_binary("request"))
        .col(json_binary_null("error"))
        .col(string_len_null("incomplete_reason", 64))
        .col(json_binary_null("usage"))
        .col(string_len_null("worker_id", 64))
        .col(big_integer("lease").default(0))
        .col(big_integer("attempt").default(0))
        .col(instant_null("heartbeat_at"))
        .col(instant_null("cancel_requested_at"))
        .col(text_null("sealed_secrets"))
        .col(instant("created_at"))
        .col(instant_null("started_at"))
        // When it ended, however.
        .col(instant_null("completed_at"))
        .col(instant_null("deleted_at"))
        .check((
            "a_response_in_progress_has_an_owner",
            Expr::col("status")
                .ne("in_progress")
                .or(Expr::col("worker_id")
                    .is_not_null()
                    .and(Expr::col("heartbeat_at").is_not_null())
                    .and(Expr::col("started_at").is_not_null())
                    .and(Expr::col("lease").gte(1))),
        ))
        .foreign_key(&mut refers(
            RESPONSES,
            "user_id",
            "users",
            ForeignKeyAction::Cascade,
        ))
        // What others go on from is kept for them.
        .foreign_key(&mut refers(
            RESPONSES,
            "previous_response_id",
            RESPONSES,
            ForeignKeyAction::NoAction,
        ))
        .foreign_key(&mut refers(
            RESPONSES,
            "api_conversation_id",
            CONVERSATIONS,
            ForeignKeyAction::NoAction,
        ))
        .take()
}

fn items() -> TableCreateStatement {
    Table::create()
        .table(ITEMS)
        .col(own_id("response_id"))
        .col(word("side", "input", &["input", "output"]))
        .col(big_integer("position"))
        .col(own_id("item_id"))
        .col(string_len("type", 64))
        .col(string_len("status", 32))
        .col(string_len_null("call_id", 128))
        .col(big_integer("round").default(0))
        .col(json_binary("payload"))
        .col(big_integer("token_count").default(0))
        .primary_key(
            Index::create()
                .col("response_id")
                .col("side")
                .col("position"),
        )
        .foreign_key(&mut refers(
            ITEMS,
            "response_id",
            RESPONSES,
            ForeignKeyAction::Cascade,
        ))
        .take()
}

fn events() -> TableCreateStatement {
    Table::create()
        .table(EVENTS)
        .col(own_id("response_id"))
        .col(big_integer("seq"))
        // As it was sent, letter by letter.
        .col(text("payload"))
        .primary_key(Index::create().col("response_id").col("seq"))
        .foreign_key(&mut refers(
            EVENTS,
            "response_id",
            RESPONSES,
            ForeignKeyAction::Cascade,
        ))
        .take()
}

fn indexes() -> Vec<IndexCreateStatement> {
    let status = |word: &'static str| Expr::col("status").eq(word);
    let when = |index: IndexCreateStatement, word: &'static str| {
        index.clone().and_where(status(word)).take()
    };
    vec![
        unique(
            "one_open_response_per_api_conversation",
            RESPONSES,
            &["api_conversation_id"],
        )
        .and_where(status("queued").or(status("in_progress")))
        .take(),
        when(
            index("queued_responses_by_age", RESPONSES, &["created_at"]),
            "queued",
        ),
        when(
            index("open_responses_by_heartbeat", RESPONSES, &["heartbeat_at"]),
            "in_progress",
        ),
        index("responses_of_a_user", RESPONSES, &["user_id"]),
        index(
            "responses_that_follow",
            RESPONSES,
            &["previous_response_id"],
        ),
        index(
            "responses_of_an_api_conversation",
            RESPONSES,
            &["api_conversation_id"],
        ),
        index("responses_by_their_end", RESPONSES, &["completed_at"]),
        index("response_items_by_name", ITEMS, &["item_id"]),
        index("api_conversations_of_a_user", CONVERSATIONS, &["user_id"]),
        index(
            "api_conversation_items_by_name",
            CONVERSATION_ITEMS,
            &["item_id"],
        ),
    ]
}
