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
    /// Returns the space of the test, with Ada as the speaker.
    pub async fn load_fixture(&self) -> ManyConversations {
        ManyConversations {
            space: self.space,
            speaker: self.membership("Ada").await.id,
        }
    }

    /// Inserts a copy of the test's space, with Ada as the speaker.
    pub async fn another_load_fixture(&self) -> ManyConversations {
        let db = self.db.heartbeat_connection();
        let row = space::Entity::find_by_id(self.space).one(db).await;
        let row = row.expect("the database answers").expect("a space");
        let mut row = row.into_active_model();
        row.id = NotSet;
        let space = space::Entity::insert(row).exec_with_returning(db).await;
        let space = space.expect("the space is inserted").id;
        let mut member = self.membership("Ada").await.into_active_model();
        (member.id, member.space_id) = (NotSet, sea_orm::ActiveValue::Set(space));
        let member = membership::Entity::insert(member).exec_with_returning(db);
        let speaker = member.await.expect("the membership is inserted").id;
        ManyConversations { space, speaker }
    }

    /// Inserts `n` conversations into a database, each with a run that has been due since `at`, one
    /// millisecond after the other.
    pub async fn insert_due_runs(
        &self,
        target: ManyConversations,
        n: usize,
        at: Timestamp,
    ) -> Vec<RunId> {
        let db = self.db.heartbeat_connection();
        let row = self.row().await;
        let rows = (0..n).map(|_| {
            let mut row = row.clone().into_active_model();
            (row.id, row.space_id) = (NotSet, sea_orm::ActiveValue::Set(target.space));
            row
        });
        let rows: Vec<_> = rows.collect();
        for some in rows.chunks(200) {
            let insert = conversation::Entity::insert_many(some.to_vec());
            let inserted = insert.exec_without_returning(db).await;
            inserted.expect("the conversations are inserted");
        }
        let mut newest: Vec<ConversationId> = conversation::Entity::find()
            .filter(conversation::Column::SpaceId.eq(target.space))
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
            let place = (target.space, id);
            let due = at.plus_ms(ms);
            runs.push(run::Model {
                run_seq: 1,
                ..new_run::new_model(RunId::new(), place, Some(target.speaker), kind, reason, due)
            });
        }
        for some in runs.chunks(200) {
            let rows = some.iter().cloned().map(IntoActiveModel::into_active_model);
            let insert = run::Entity::insert_many(rows);
            let inserted = insert.exec_without_returning(db).await;
            inserted.expect("the runs are inserted");
        }
        runs.iter().map(|it| it.id).collect()
    }

    /// Returns the runs in the order of their claims, as recorded by the database trigger.
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
