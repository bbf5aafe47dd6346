//! Adds indexes on memberships (by position, active ones, removed guests), on guest accounts, on
//! the creator of invites and on the owner of spaces, for rosters and for the deletion of guests.

use crate::columns::index;
use sea_orm_migration::prelude::*;

const MEMBERSHIPS: &str = "space_memberships";

/// Name, table and columns of the indexes without a condition.
const WHOLE: [(&str, &str, &[&str]); 3] = [
    (
        "memberships_by_position",
        MEMBERSHIPS,
        &["space_id", "position", "id"],
    ),
    // Guest accounts are deleted, so what refers to an account must be found.
    ("invites_by_creator", "invites", &["created_by"]),
    ("spaces_by_owner", "spaces", &["owner_id"]),
];

#[derive(DeriveMigrationName)]
pub struct Migration;

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    fn use_transaction(&self) -> Option<bool> {
        Some(true) // SQLite too: a step is whole or not at all
    }

    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        for (name, table, columns) in WHOLE {
            manager.create_index(index(name, table, columns)).await?;
        }
        for (partial, _, _) in partial() {
            manager.create_index(partial).await?;
        }
        Ok(())
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let whole = WHOLE.into_iter().map(|(name, table, _)| (name, table));
        let partial = partial().into_iter().map(|(_, name, table)| (name, table));
        for (name, table) in whole.chain(partial) {
            let drop = Index::drop().name(name).table(table).to_owned();
            manager.drop_index(drop).await?;
        }
        Ok(())
    }
}

/// Each partial index with its name and its table.
fn partial() -> [(IndexCreateStatement, &'static str, &'static str); 3] {
    let active = "active_memberships";
    let removed = "removed_guests";
    let guests = "guest_accounts";
    [
        (
            index(active, MEMBERSHIPS, &["space_id", "position", "id"])
                .and_where(Expr::col("status").eq("active"))
                .take(),
            active,
            MEMBERSHIPS,
        ),
        (
            index(removed, MEMBERSHIPS, &["id"])
                .and_where(Expr::col("status").eq("removed"))
                .and_where(Expr::col("role").eq("guest"))
                .take(),
            removed,
            MEMBERSHIPS,
        ),
        (
            index(guests, "users", &["id"])
                .and_where(Expr::col("password_hash").is_null())
                .take(),
            guests,
            "users",
        ),
    ]
}
