//! Functions that migrations share: they define columns (ids, instants, words, JSON documents,
//! numbers within limits), foreign keys and indexes, replace the words of a column, and drop tables.

use sea_orm_migration::prelude::*;
use sea_orm_migration::schema;
use sea_orm_migration::sea_orm::DbBackend;

/// `id`: 64 bits, given by the database.
pub fn id() -> ColumnDef {
    schema::big_pk_auto("id")
}

/// An instant: milliseconds since 1970, UTC, given by the program.
pub fn instant(name: &'static str) -> ColumnDef {
    schema::big_integer(name)
}

/// An instant that may be missing.
pub fn instant_null(name: &'static str) -> ColumnDef {
    schema::big_integer_null(name)
}

/// A word out of a list; the database holds the list. `CHECK` carries the constraint.
pub fn word(name: &'static str, default: &'static str, words: &[&'static str]) -> ColumnDef {
    schema::string_len(name, 32)
        .default(default)
        .check(Expr::col(name).is_in(words.iter().copied()))
        .take()
}

/// A JSON document, `{}` unless told.
pub fn document(name: &'static str) -> ColumnDef {
    schema::json_binary(name).default("{}").take()
}

/// A whole number between two limits.
pub fn between(name: &'static str, default: i64, least: i64, most: i64) -> ColumnDef {
    schema::big_integer(name)
        .default(default)
        .check(Expr::col(name).between(least, most))
        .take()
}

/// `column` refers to `table.id`.
pub fn refers(
    from: &'static str,
    column: &'static str,
    table: &'static str,
    on_delete: ForeignKeyAction,
) -> ForeignKeyCreateStatement {
    ForeignKey::create()
        .name(format!("{from}_{column}_refers_to_{table}"))
        .from(from, column)
        .to(table, "id")
        .on_delete(on_delete)
        .take()
}

/// A plain index, named after what it finds.
pub fn index(
    name: &'static str,
    table: &'static str,
    columns: &[&'static str],
) -> IndexCreateStatement {
    let mut index = Index::create();
    index.name(name).table(table);
    for column in columns {
        index.col(*column);
    }
    index
}

/// A unique index, named after the rule it holds.
pub fn unique(
    name: &'static str,
    table: &'static str,
    columns: &[&'static str],
) -> IndexCreateStatement {
    index(name, table, columns).unique().take()
}

/// Drops tables, children first.
pub async fn drop_all(manager: &SchemaManager<'_>, tables: &[&'static str]) -> Result<(), DbErr> {
    for table in tables {
        manager
            .drop_table(Table::drop().table(*table).take())
            .await?;
    }
    Ok(())
}

/// A column whose allowed words are listed in a CHECK.
pub struct WordColumn {
    pub table: &'static str,
    pub name: &'static str,
    /// The temporary name of the new column in SQLite, until it replaces the old one.
    pub new_name: &'static str,
    pub default: &'static str,
}

impl WordColumn {
    /// Replaces the list of the words.
    pub async fn set_words(
        &self,
        manager: &SchemaManager<'_>,
        words: &[&'static str],
    ) -> Result<(), DbErr> {
        let Self {
            table,
            name,
            new_name,
            default,
        } = *self;
        let connection = manager.get_connection();
        if manager.get_database_backend() == DbBackend::Postgres {
            let words: Vec<String> = words.iter().map(|it| format!("'{it}'")).collect();
            let replace = format!(
                "ALTER TABLE {table} DROP CONSTRAINT {table}_{name}_check, \
                ADD CONSTRAINT {table}_{name}_check CHECK ({name} IN ({}))",
                words.join(", ")
            );
            return connection.execute_unprepared(&replace).await.map(|_| ());
        }
        // SQLite cannot change a CHECK, but it drops that of a column together with the column.
        let column = word(new_name, default, words);
        let add = Table::alter().table(table).add_column(column).to_owned();
        manager.alter_table(add).await?;
        let copy = format!("UPDATE {table} SET {new_name} = {name}");
        connection.execute_unprepared(&copy).await?;
        let drop = Table::alter().table(table).drop_column(name).to_owned();
        manager.alter_table(drop).await?;
        let rename = Table::alter()
            .table(table)
            .rename_column(new_name, name)
            .to_owned();
        manager.alter_table(rename).await
    }
}
