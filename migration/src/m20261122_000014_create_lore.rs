//! Creates the tables `lorebooks`, `lorebook_entries` and `lorebook_links`. A CHECK requires that
//! each link names exactly one space, conversation, character or membership.

use crate::columns::*;
use sea_orm_migration::prelude::*;
use sea_orm_migration::schema::*;

const BOOKS: &str = "lorebooks";
const ENTRIES: &str = "lorebook_entries";
const LINKS: &str = "lorebook_links";
/// Where a book may take part.
const PLACES: [(&str, &str, &str); 4] = [
    ("space_id", "spaces", "one_link_of_a_book_and_a_space"),
    (
        "conversation_id",
        "conversations",
        "one_link_of_a_book_and_a_conversation",
    ),
    (
        "character_id",
        "characters",
        "one_link_of_a_book_and_a_character",
    ),
    (
        "space_membership_id",
        "space_memberships",
        "one_link_of_a_book_and_a_seat",
    ),
];

#[derive(DeriveMigrationName)]
pub struct Migration;

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    fn use_transaction(&self) -> Option<bool> {
        Some(true) // SQLite too: a step is whole or not at all
    }

    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        manager.create_table(books()).await?;
        manager.create_table(entries()).await?;
        manager.create_table(links()).await?;
        manager
            .create_index(index("lorebooks_of_an_owner", BOOKS, &["owner_id", "name"]))
            .await?;
        manager
            .create_index(index(
                "entries_of_a_lorebook",
                ENTRIES,
                &["lorebook_id", "position"],
            ))
            .await?;
        for (column, _, name) in PLACES {
            manager
                .create_index(unique(name, LINKS, &[column, "lorebook_id"]))
                .await?;
        }
        manager
            .create_index(index("links_of_a_lorebook", LINKS, &["lorebook_id"]))
            .await
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        drop_all(manager, &[LINKS, ENTRIES, BOOKS]).await
    }
}

fn books() -> TableCreateStatement {
    Table::create()
        .table(BOOKS)
        .col(id())
        .col(big_integer_null("owner_id"))
        .col(text("name"))
        // What a book says beside its name and entries.
        .col(document("document"))
        .col(instant("created_at"))
        .col(instant("updated_at"))
        .foreign_key(&mut refers(
            BOOKS,
            "owner_id",
            "users",
            ForeignKeyAction::SetNull,
        ))
        .take()
}

fn entries() -> TableCreateStatement {
    Table::create()
        .table(ENTRIES)
        .col(id())
        .col(big_integer("lorebook_id"))
        .col(big_integer("position"))
        // As a `character_book` has it.
        .col(document("document"))
        .foreign_key(&mut refers(
            ENTRIES,
            "lorebook_id",
            BOOKS,
            ForeignKeyAction::Cascade,
        ))
        .take()
}

fn links() -> TableCreateStatement {
    let mut table = Table::create();
    table
        .table(LINKS)
        .col(id())
        .col(big_integer("lorebook_id"))
        .col(big_integer("priority").default(0))
        .foreign_key(&mut refers(
            LINKS,
            "lorebook_id",
            BOOKS,
            ForeignKeyAction::Cascade,
        ));
    for (column, to, _) in PLACES {
        table.col(big_integer_null(column)).foreign_key(&mut refers(
            LINKS,
            column,
            to,
            ForeignKeyAction::Cascade,
        ));
    }
    let is_stated =
        PLACES.map(|(column, _, _)| format!("CASE WHEN {column} IS NULL THEN 0 ELSE 1 END"));
    table.check(Expr::cust(format!("{} = 1", is_stated.join(" + "))));
    table.take()
}
