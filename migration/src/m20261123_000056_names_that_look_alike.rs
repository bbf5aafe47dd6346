//! Adds `own_display_name` to memberships (the user's name in one space), and two columns to users
//! for the visual form of the username, with unique indexes that reject usernames that look alike.
//! Fills them; of users that already look alike, only the oldest gets a value.

use crate::columns::*;
use sea_orm_migration::prelude::*;
use sea_orm_migration::schema::text_null;
use std::collections::HashSet;
use unicode_normalization::UnicodeNormalization;
use unicode_security::skeleton;

const USERS: &str = "users";
const SEATS: &str = "space_memberships";
const OWN_NAME: &str = "own_display_name";
const LOOKS: [(&str, &str); 2] = [
    (
        "username_look_as_written",
        "usernames_look_different_as_written",
    ),
    (
        "username_look_in_one_case",
        "usernames_look_different_in_one_case",
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
        let seats = Table::alter()
            .table(SEATS)
            .add_column(text_null(OWN_NAME))
            .to_owned();
        manager.alter_table(seats).await?;
        for (column, _) in LOOKS {
            let users = Table::alter()
                .table(USERS)
                .add_column(text_null(column))
                .to_owned();
            manager.alter_table(users).await?;
        }
        fill(manager).await?;
        for (column, rule) in LOOKS {
            manager.create_index(unique(rule, USERS, &[column])).await?;
        }
        Ok(())
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        for (column, rule) in LOOKS {
            let index = Index::drop().name(rule).table(USERS).to_owned();
            manager.drop_index(index).await?;
            let users = Table::alter().table(USERS).drop_column(column).to_owned();
            manager.alter_table(users).await?;
        }
        let seats = Table::alter().table(SEATS).drop_column(OWN_NAME).to_owned();
        manager.alter_table(seats).await
    }
}

/// Writes what each username looks like. Of accounts that look alike already the oldest holds the
/// look; the others keep their names and hold none.
async fn fill(manager: &SchemaManager<'_>) -> Result<(), DbErr> {
    let connection = manager.get_connection();
    let all = Query::select()
        .columns(["id", "username"])
        .from(USERS)
        .order_by("id", Order::Asc)
        .to_owned();
    let mut taken: [HashSet<String>; 2] = Default::default();
    for row in connection.query_all(&all).await? {
        let id: i64 = row.try_get("", "id")?;
        let username: String = row.try_get("", "username")?;
        let composed: String = username.nfkc().collect();
        let looks = [
            look(&composed),
            look(&caseless::default_case_fold_str(&composed)),
        ];
        let mut update = Query::update();
        update.table(USERS).and_where(Expr::col("id").eq(id));
        for (n, look) in looks.into_iter().enumerate() {
            if taken[n].insert(look.clone()) {
                update.value(LOOKS[n].0, look);
            } else {
                update.value(LOOKS[n].0, None::<String>);
            }
        }
        connection.execute(&update).await?;
    }
    Ok(())
}

fn look(text: &str) -> String {
    let plain: String = skeleton(text).collect();
    let folded = caseless::default_case_fold_str(&plain);
    let words: Vec<&str> = folded.split_whitespace().collect();
    words.join(" ")
}
