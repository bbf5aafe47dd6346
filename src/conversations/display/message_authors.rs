//! Loads who wrote the messages of a page, and with the same query what the scripts of their space depend
//! on.

use std::collections::HashMap;

use base::ids::{MembershipId, SpaceId};
use sea_orm::{
    ColumnTrait, ConnectionTrait, DbErr, EntityTrait, FromQueryResult, JoinType, QueryFilter,
    QuerySelect, RelationTrait,
};

use crate::regex_scripts::script_cache::ScriptRevisions;
use crate::spaces::{membership, space};

/// The authors of messages of one space.
#[derive(Debug, Default)]
pub struct MessageAuthors {
    /// Their display names; those of removed members, too.
    pub names: HashMap<MembershipId, String>,
    /// Their space; `None`: there are no authors.
    pub space: Option<(SpaceId, ScriptRevisions)>,
}

#[derive(FromQueryResult)]
struct AuthorRow {
    id: MembershipId,
    cached_display_name: String,
    space_id: SpaceId,
    scripts_rev: i64,
    roster_rev: i64,
    settings_version: i64,
}

/// Loads these authors, who are members of one space.
///
/// # Errors
/// Returns an error when the database fails.
pub async fn load(
    db: &impl ConnectionTrait,
    ids: impl IntoIterator<Item = MembershipId>,
) -> Result<MessageAuthors, DbErr> {
    let rows: Vec<AuthorRow> = membership::Entity::find()
        .select_only()
        .columns([
            membership::Column::Id,
            membership::Column::CachedDisplayName,
            membership::Column::SpaceId,
        ])
        .column_as(space::Column::ScriptsRev, "scripts_rev")
        .column_as(space::Column::RosterRev, "roster_rev")
        .column_as(space::Column::SettingsVersion, "settings_version")
        .join(JoinType::InnerJoin, membership::Relation::Space.def())
        .filter(membership::Column::Id.is_in(ids))
        .into_model()
        .all(db)
        .await?;
    let mut authors = MessageAuthors::default();
    for row in rows {
        let revisions = ScriptRevisions {
            scripts_rev: row.scripts_rev,
            roster_rev: row.roster_rev,
            settings_version: row.settings_version,
        };
        authors.space = Some((row.space_id, revisions));
        authors.names.insert(row.id, row.cached_display_name);
    }
    Ok(authors)
}
