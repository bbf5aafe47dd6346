//! Creates the tables `conversation_rounds`, `round_slots` and `conversation_runs`, with partial
//! unique indexes that permit one running run, one queued run and one active round per
//! conversation.

use crate::columns::*;
use sea_orm_migration::prelude::*;
use sea_orm_migration::schema::*;

#[derive(DeriveMigrationName)]
pub struct Migration;

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    fn use_transaction(&self) -> Option<bool> {
        Some(true) // SQLite too: a step is whole or not at all
    }

    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        manager.create_table(rounds()).await?;
        manager.create_table(slots()).await?;
        manager.create_table(runs()).await?;
        for index in indexes() {
            manager.create_index(index).await?;
        }
        Ok(())
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        drop_all(
            manager,
            &["conversation_runs", "round_slots", "conversation_rounds"],
        )
        .await
    }
}

fn rounds() -> TableCreateStatement {
    Table::create()
        .table("conversation_rounds")
        .col(uuid("id").primary_key())
        .col(big_integer("conversation_id"))
        .col(word(
            "status",
            "active",
            &["active", "finished", "superseded", "canceled"],
        ))
        // Said only while the round is active; afterwards it keeps its last word.
        .col(word(
            "state",
            "generating",
            &["generating", "paused", "failed"],
        ))
        .col(big_integer("cursor").default(0))
        .col(big_integer_null("trigger_message_id"))
        .col(big_integer("seed"))
        .col(string_len_null("ended_reason", 64))
        .col(instant("created_at"))
        .foreign_key(&mut refers(
            "conversation_rounds",
            "conversation_id",
            "conversations",
            ForeignKeyAction::Cascade,
        ))
        .take()
}

fn slots() -> TableCreateStatement {
    Table::create()
        .table("round_slots")
        .col(id())
        .col(uuid("round_id"))
        .col(big_integer("position"))
        .col(big_integer("space_membership_id"))
        .col(word("status", "pending", &["pending", "spoken", "skipped"]))
        .col(string_len_null("skip_reason", 64))
        .col(text("chosen_because"))
        .foreign_key(&mut refers(
            "round_slots",
            "round_id",
            "conversation_rounds",
            ForeignKeyAction::Cascade,
        ))
        .foreign_key(&mut refers(
            "round_slots",
            "space_membership_id",
            "space_memberships",
            ForeignKeyAction::Cascade,
        ))
        .take()
}

fn runs() -> TableCreateStatement {
    let statuses = [
        "queued",
        "running",
        "succeeded",
        "failed",
        "canceled",
        "skipped",
    ];
    let kinds = ["user_turn", "auto_mode", "regenerate", "force_talk"];
    Table::create()
        .table("conversation_runs")
        .col(uuid("id").primary_key())
        .col(big_integer("conversation_id"))
        .col(uuid_null("round_id"))
        .col(big_integer_null("slot_position"))
        .col(word("kind", "user_turn", &kinds))
        .col(word("status", "queued", &statuses))
        .col(string_len("reason", 64))
        .col(big_integer("speaker_space_membership_id"))
        .col(instant_null("run_after"))
        .col(instant_null("burst_started_at"))
        .col(instant("created_at"))
        .col(instant_null("cancel_requested_at"))
        .col(boolean("keep_partial").default(false))
        .col(instant_null("started_at"))
        .col(instant_null("finished_at"))
        .col(instant_null("heartbeat_at"))
        .col(string_len_null("worker_id", 64))
        .col(big_integer("attempt").default(1))
        .col(big_integer("lease").default(0))
        .col(big_integer_null("cutoff_seq"))
        .col(json_binary_null("error"))
        .col(json_binary_null("usage"))
        .col(document("debug"))
        .check((
            "a_running_run_has_an_owner",
            Expr::col("status").ne("running").or(Expr::col("worker_id")
                .is_not_null()
                .and(Expr::col("heartbeat_at").is_not_null())
                .and(Expr::col("started_at").is_not_null())
                .and(Expr::col("lease").gte(1))),
        ))
        .foreign_key(&mut refers(
            "conversation_runs",
            "conversation_id",
            "conversations",
            ForeignKeyAction::Cascade,
        ))
        .foreign_key(&mut refers(
            "conversation_runs",
            "round_id",
            "conversation_rounds",
            ForeignKeyAction::Cascade,
        ))
        .foreign_key(&mut refers(
            "conversation_runs",
            "speaker_space_membership_id",
            "space_memberships",
            ForeignKeyAction::Cascade,
        ))
        .take()
}

fn indexes() -> Vec<IndexCreateStatement> {
    let only = |index: IndexCreateStatement, column: &'static str, word: &'static str| {
        index.clone().and_where(Expr::col(column).eq(word)).take()
    };
    let runs = "conversation_runs";
    vec![
        only(
            unique(
                "one_running_run_per_conversation",
                runs,
                &["conversation_id"],
            ),
            "status",
            "running",
        ),
        only(
            unique(
                "one_queued_run_per_conversation",
                runs,
                &["conversation_id"],
            ),
            "status",
            "queued",
        ),
        only(
            unique(
                "one_active_round_per_conversation",
                "conversation_rounds",
                &["conversation_id"],
            ),
            "status",
            "active",
        ),
        // These two find what is due and what is stale without reading finished rows.
        only(
            index("queued_runs_by_due_time", runs, &["run_after"]),
            "status",
            "queued",
        ),
        only(
            index("running_runs_by_heartbeat", runs, &["heartbeat_at"]),
            "status",
            "running",
        ),
        index("runs_of_a_conversation", runs, &["conversation_id", "id"]),
        index("runs_of_a_round", runs, &["round_id"]),
        unique(
            "one_slot_per_position",
            "round_slots",
            &["round_id", "position"],
        ),
    ]
}
