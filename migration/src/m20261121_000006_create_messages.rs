//! Creates the tables `messages`, `message_swipes` (alternative versions of a message) and
//! `read_marks` (how far each user has read a conversation), with their unique indexes.

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
        manager.create_table(messages()).await?;
        manager.create_table(swipes()).await?;
        manager.create_table(read_marks()).await?;
        for index in indexes() {
            manager.create_index(index).await?;
        }
        Ok(())
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        drop_all(manager, &["read_marks", "message_swipes", "messages"]).await
    }
}

fn messages() -> TableCreateStatement {
    Table::create()
        .table("messages")
        .col(id())
        .col(big_integer("conversation_id"))
        .col(big_integer("seq"))
        .col(big_integer("space_membership_id"))
        .col(word("role", "user", &["user", "assistant", "system"]))
        .col(text("content"))
        .col(word(
            "visibility",
            "normal",
            &["normal", "excluded", "hidden"],
        ))
        .col(uuid_null("conversation_run_id"))
        .col(big_integer("active_swipe").default(0))
        .col(string_len_null("client_id", 100))
        // A message of the parent timeline; it may be deleted with that.
        .col(big_integer_null("origin_message_id"))
        .col(instant("created_at"))
        .col(instant_null("edited_at"))
        .col(big_integer("rev"))
        .col(big_integer("token_count").default(0))
        .col(document("metadata"))
        .foreign_key(&mut refers(
            "messages",
            "conversation_id",
            "conversations",
            ForeignKeyAction::Cascade,
        ))
        .foreign_key(&mut refers(
            "messages",
            "space_membership_id",
            "space_memberships",
            ForeignKeyAction::Cascade,
        ))
        .foreign_key(&mut refers(
            "messages",
            "conversation_run_id",
            "conversation_runs",
            ForeignKeyAction::SetNull,
        ))
        .take()
}

fn swipes() -> TableCreateStatement {
    Table::create()
        .table("message_swipes")
        .col(id())
        .col(big_integer("message_id"))
        .col(big_integer("position"))
        .col(text("content"))
        .col(uuid_null("conversation_run_id"))
        .col(document("metadata"))
        .foreign_key(&mut refers(
            "message_swipes",
            "message_id",
            "messages",
            ForeignKeyAction::Cascade,
        ))
        .foreign_key(&mut refers(
            "message_swipes",
            "conversation_run_id",
            "conversation_runs",
            ForeignKeyAction::SetNull,
        ))
        .take()
}

fn read_marks() -> TableCreateStatement {
    Table::create()
        .table("read_marks")
        .col(big_integer("user_id"))
        .col(big_integer("conversation_id"))
        .col(big_integer("last_read_seq").default(0))
        .primary_key(
            &mut Index::create()
                .name("one_mark_per_reader")
                .col("user_id")
                .col("conversation_id")
                .take(),
        )
        .foreign_key(&mut refers(
            "read_marks",
            "user_id",
            "users",
            ForeignKeyAction::Cascade,
        ))
        .foreign_key(&mut refers(
            "read_marks",
            "conversation_id",
            "conversations",
            ForeignKeyAction::Cascade,
        ))
        .take()
}

fn indexes() -> Vec<IndexCreateStatement> {
    let mut one_text_per_run = unique("one_message_per_run", "messages", &["conversation_run_id"]);
    // A branch's clones keep the run of their origin.
    one_text_per_run.and_where(
        Expr::col("conversation_run_id")
            .is_not_null()
            .and(Expr::col("origin_message_id").is_null()),
    );
    vec![
        unique(
            "one_message_per_seq",
            "messages",
            &["conversation_id", "seq"],
        ),
        unique(
            "one_message_per_client_id",
            "messages",
            &["conversation_id", "space_membership_id", "client_id"],
        ),
        index(
            "messages_of_a_conversation_by_rev",
            "messages",
            &["conversation_id", "rev"],
        ),
        one_text_per_run,
        unique(
            "one_swipe_per_position",
            "message_swipes",
            &["message_id", "position"],
        ),
    ]
}
