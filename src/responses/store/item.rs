//! Table `response_items`: the input and output items of a response, in order.

use std::collections::HashSet;

use responses_api::object_ids;
use sea_orm::ActiveValue::Set;
use sea_orm::QueryOrder;
use sea_orm::entity::prelude::*;
use sea_orm::sea_query::StringLen;
use serde_json::Value;

#[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
#[sea_orm(table_name = "response_items")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub response_id: String,
    #[sea_orm(primary_key, auto_increment = false)]
    pub side: ItemDirection,
    #[sea_orm(primary_key, auto_increment = false)]
    pub position: i64,
    pub item_id: String,
    #[sea_orm(column_name = "type")]
    pub kind: String,
    pub status: String,
    pub call_id: Option<String>,
    /// The iteration that produced it; currently always 0.
    pub round: i64,
    #[sea_orm(column_type = "JsonBinary")]
    pub payload: Json,
    pub token_count: i64,
}

#[derive(Clone, Copy, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}

/// Whether an item is input or output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, EnumIter, DeriveActiveEnum)]
#[sea_orm(
    rs_type = "String",
    db_type = "String(StringLen::N(32))",
    rename_all = "snake_case"
)]
pub enum ItemDirection {
    Input,
    Output,
}

/// Rows per INSERT statement; databases limit the parameters of one statement.
const BATCH: usize = 500;

/// Inserts items at the positions from `from` on.
pub async fn insert(
    tx: &impl ConnectionTrait,
    response: &str,
    side: ItemDirection,
    from: usize,
    items: &[Value],
) -> Result<(), DbErr> {
    let rows = items
        .iter()
        .zip(from..)
        .map(|(item, at)| row(response, side, at, item));
    let rows: Vec<ActiveModel> = rows.collect();
    for batch in rows.chunks(BATCH) {
        Entity::insert_many(batch.to_vec()).exec(tx).await?;
    }
    Ok(())
}

fn row(response: &str, side: ItemDirection, at: usize, item: &Value) -> ActiveModel {
    let word = |name: &str| item[name].as_str().map(str::to_owned);
    ActiveModel {
        response_id: Set(response.to_owned()),
        side: Set(side),
        position: Set(i64::try_from(at).unwrap_or(i64::MAX)),
        item_id: Set(word("id").unwrap_or_else(|| object_ids::generate(object_ids::MESSAGE))),
        kind: Set(word("type").unwrap_or_else(|| "message".to_owned())),
        status: Set(word("status").unwrap_or_else(|| "completed".to_owned())),
        call_id: Set(word("call_id")),
        round: Set(0),
        payload: Set(item.clone()),
        token_count: Set(0),
    }
}

/// Gives a new id to each item whose id is in `known` or occurs earlier in the list, because list
/// cursors are item ids.
pub fn make_ids_unique(items: &mut [Value], mut known: HashSet<String>) {
    for item in items {
        let id = item["id"].as_str().unwrap_or_default().to_owned();
        if !known.contains(&id) {
            known.insert(id);
            continue;
        }
        let prefix = id.split('_').next().unwrap_or_default();
        let is_ours = !prefix.is_empty() && prefix.bytes().all(|it| it.is_ascii_lowercase());
        let prefix = if is_ours { prefix } else { object_ids::MESSAGE };
        item["id"] = object_ids::generate(prefix).into();
    }
}

/// Returns the input or the output of a response, in order.
pub async fn list_for_response(
    db: &impl ConnectionTrait,
    response: &str,
    side: ItemDirection,
) -> Result<Vec<Model>, DbErr> {
    Entity::find()
        .filter(Column::ResponseId.eq(response))
        .filter(Column::Side.eq(side))
        .order_by_asc(Column::Position)
        .all(db)
        .await
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use serde_json::json;

    use super::make_ids_unique;

    #[test]
    fn a_duplicate_id_becomes_another_with_the_same_prefix() {
        let mut items = ["msg_1", "fc_2", "fc_2", "?", "?"].map(|id| json!({ "id": id }));

        make_ids_unique(&mut items, HashSet::from(["msg_1".to_owned()]));

        let ids: Vec<&str> = items.iter().filter_map(|it| it["id"].as_str()).collect();
        assert!(ids[0].starts_with("msg_") && ids[0] != "msg_1", "{ids:?}");
        assert_eq!(ids[1], "fc_2");
        assert!(ids[2].starts_with("fc_") && ids[2] != "fc_2", "{ids:?}");
        assert_eq!(ids[3], "?");
        assert!(ids[4].starts_with("msg_"), "{ids:?}");
    }
}
