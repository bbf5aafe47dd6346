//! Who may read the whole card of a character: its owner and admins, and with `parse_share_whole_card`
//! everyone who shares a space with it.

use std::collections::HashSet;

use sea_orm::{ColumnTrait, ConnectionTrait, DbErr, EntityTrait, QueryFilter, QuerySelect};

use crate::characters::character;
use crate::ids::{CharacterId, UserId};
use crate::spaces::shared_spaces;

/// Those of these characters of which a person without the rights of an admin may not read the whole
/// card.
///
/// # Errors
/// When the database fails.
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
