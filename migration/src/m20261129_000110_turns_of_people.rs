//! Adds turns of people: to spaces whether people take turns and how long one lasts, to memberships
//! whether a person is away, and to rounds the state `waiting` with the start and the end of the turn for
//! which they wait.

use crate::columns::{WordColumn, between, index, instant_null};
use sea_orm_migration::prelude::*;
use sea_orm_migration::schema::boolean;

const SPACES: &str = "spaces";
const TAKE_TURNS: &str = "humans_take_turns";
const TIMEOUT: &str = "human_turn_timeout_s";
/// One day.
const MAX_TIMEOUT_S: i64 = 86_400;
const MEMBERSHIPS: &str = "space_memberships";
const AWAY: &str = "is_away";
const ROUNDS: &str = "conversation_rounds";
const STARTED: &str = "turn_started_at";
const DEADLINE: &str = "deadline_at";
const BY_DEADLINE: &str = "turns_by_deadline";
const STATES: WordColumn = WordColumn {
    table: ROUNDS,
    name: "state",
    new_name: "new_state",
    default: "generating",
};
const BEFORE: &[&str] = &["generating", "paused", "failed"];
const AFTER: &[&str] = &["generating", "waiting", "paused", "failed"];

#[derive(DeriveMigrationName)]
pub struct Migration;

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    fn use_transaction(&self) -> Option<bool> {
        Some(true) // SQLite too: a step is whole or not at all
    }

    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        for (table, column) in [
            (SPACES, boolean(TAKE_TURNS).default(false).take()),
            (SPACES, between(TIMEOUT, 0, 0, MAX_TIMEOUT_S)),
            (MEMBERSHIPS, boolean(AWAY).default(false).take()),
            (ROUNDS, instant_null(STARTED)),
            (ROUNDS, instant_null(DEADLINE)),
        ] {
            let add = Table::alter().table(table).add_column(column).to_owned();
            manager.alter_table(add).await?;
        }
        STATES.set_words(manager, AFTER).await?;
        let by_deadline = index(BY_DEADLINE, ROUNDS, &[DEADLINE])
            .and_where(Expr::cust("status = 'active' AND deadline_at IS NOT NULL"))
            .take();
        manager.create_index(by_deadline).await
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let drop = Index::drop().name(BY_DEADLINE).table(ROUNDS).to_owned();
        manager.drop_index(drop).await?;
        // A waiting round becomes paused. Resuming it skips the turn for which it waited.
        let pause = "UPDATE conversation_rounds SET state = 'paused' WHERE state = 'waiting'";
        manager.get_connection().execute_unprepared(pause).await?;
        STATES.set_words(manager, BEFORE).await?;
        for (table, column) in [
            (ROUNDS, DEADLINE),
            (ROUNDS, STARTED),
            (MEMBERSHIPS, AWAY),
            (SPACES, TIMEOUT),
            (SPACES, TAKE_TURNS),
        ] {
            let drop = Table::alter().table(table).drop_column(column).to_owned();
            manager.alter_table(drop).await?;
        }
        Ok(())
    }
}
