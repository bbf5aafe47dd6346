//! Returns which of several cards a user who is not an admin may not read completely. The owner
//! may, and, if `share_whole_card` is set, everyone who shares a space with the character.

use std::collections::HashSet;

use base::ids::{CharacterId, UserId};
use sea_orm::{ColumnTrait, ConnectionTrait, DbErr, EntityTrait, QueryFilter, QuerySelect};

use crate::characters::character;
use crate::spaces::shared_spaces;

/// Returns those of these characters whose whole card the user may not read unless they are an
/// admin.
///
/// # Errors
/// Returns the database error if a query fails.
pub async fn list_hidden_cards(
    db: &impl ConnectionTrait,
    user: UserId,
    ids: impl IntoIterator<Item = CharacterId>,
) -> Result<HashSet<CharacterId>, DbErr> {
    let foreign: Vec<(CharacterId, Option<UserId>, bool)> = character::Entity::find()
        .select_only()
        .columns([
            character::Column::Id,
            character::Column::OwnerId,
            character::Column::ShareWholeCard,
        ])
        .filter(character::Column::Id.is_in(ids))
        .into_tuple()
        .all(db)
        .await?;
    let foreign = foreign.into_iter().filter(|it| it.1 != Some(user));
    let (shared, mut hidden): (Vec<_>, Vec<_>) = foreign.partition(|it| it.2);
    if !shared.is_empty() {
        let met =
            shared_spaces::list_shared_characters(db, user, shared.iter().map(|it| it.0)).await?;
        hidden.extend(shared.into_iter().filter(|it| !met.contains(&it.0)));
    }
    Ok(hidden.into_iter().map(|it| it.0).collect())
}
