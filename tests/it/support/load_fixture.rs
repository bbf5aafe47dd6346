//! Inserts many conversations with a due run into the database, without the API.

use base::clock::Timestamp;
use base::ids::{ConversationId, MembershipId, RunId, SpaceId};
use sea_orm::ActiveValue::NotSet;
use sea_orm::{ColumnTrait, EntityTrait, IntoActiveModel, QueryFilter, QueryOrder, QuerySelect};
use troupe::conversations::conversation;
use troupe::runs::store::{new_run, run};
use troupe::spaces::{membership, space};

use crate::support::engine_test::EngineTest;

/// A space with one character.
#[derive(Clone, Copy, Debug)]
pub struct ManyConversations {
    pub space: SpaceId,
    pub speaker: MembershipId,
}

impl EngineTest {
    /// The space of the room, where Ada speaks.
    pub async fn load_fixture(&self) -> ManyConversations {
        ManyConversations {
            space: self.space,
            speaker: self.membership("Ada").await.id,
        }
    }

    /// Another space like that of the room, where Ada speaks too.
    pub async fn another_load_fixture(&self) -> ManyConversations {
        let db = self.db.heartbeat_connection();
        let row = space::Entity::find_by_id(self.space).one(db).await;
        let row = row.expect("the database answers").expect("a space");
        let mut row = row.into_active_model();
        row.id = NotSet;
        let space = space::Entity::insert(row).exec_with_returning(db).await;
        let space = space.expect("a space can be made").id;
        let mut seat = self.membership("Ada").await.into_active_model();
        (seat.id, seat.space_id) = (NotSet, sea_orm::ActiveValue::Set(space));
        let seat = membership::Entity::insert(seat).exec_with_returning(db);
        let speaker = seat.await.expect("a seat can be taken").id;
        ManyConversations { space, speaker }
    }

    /// Inserts `n` conversations into a database, each with a run that has been due since `at`, one
    /// millisecond after the other.
    pub async fn insert_due_runs(
        &self,
        house: ManyConversations,
        n: usize,
        at: Timestamp,
    ) -> Vec<RunId> {
        let db = self.db.heartbeat_connection();
        let row = self.row().await;
        let rows = (0..n).map(|_| {
            let mut row = row.clone().into_active_model();
            (row.id, row.space_id) = (NotSet, sea_orm::ActiveValue::Set(house.space));
            row
        });
        let rows: Vec<_> = rows.collect();
        for some in rows.chunks(200) {
            let insert = conversation::Entity::insert_many(some.to_vec());
            let inserted = insert.exec_without_returning(db).await;
            inserted.expect("conversations can be made");
        }
        let mut newest: Vec<ConversationId> = conversation::Entity::find()
            .filter(conversation::Column::SpaceId.eq(house.space))
            .select_only()
            .column(conversation::Column::Id)
            .order_by_desc(conversation::Column::Id)
            .limit(n as u64)
            .into_tuple()
            .all(db)
            .await
            .expect("the database answers");
        newest.reverse();
        let mut runs = Vec::new();
        for (ms, id) in (0..).zip(newest) {
            let (kind, reason) = (run::RunKind::ForceTalk, run::RunReason::ForceTalk);
            let place = (house.space, id);
            let due = at.plus_ms(ms);
            runs.push(run::Model {
                run_seq: 1,
                ..new_run::new_model(RunId::new(), place, house.speaker, kind, reason, due)
            });
        }
        for some in runs.chunks(200) {
            let rows = some.iter().cloned().map(IntoActiveModel::into_active_model);
            let insert = run::Entity::insert_many(rows);
            let inserted = insert.exec_without_returning(db).await;
            inserted.expect("rows that break no rule");
        }
        runs.iter().map(|it| it.id).collect()
    }

    /// The runs in the order in which they were claimed, as the database wrote it down.
    pub async fn claimed_runs(&self) -> Vec<RunId> {
        let mut facts = self.facts().await;
        let sql = format!(
            "SELECT {} FROM run_moves WHERE became = 'running' ORDER BY n",
            facts.hex("run_id")
        );
        let rows = facts.rows(&sql).await;
        let ids = rows.iter().map(|row| row[0].as_deref().unwrap_or_default());
        ids.map(|it| RunId(it.parse().expect("32 digits")))
            .collect()
    }
}
