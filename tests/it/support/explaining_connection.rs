//! A database connection that runs EXPLAIN for each statement before it executes the statement.

use async_trait::async_trait;
use parking_lot::Mutex;
use sea_orm::{
    ConnectionTrait, DatabaseConnection, DbBackend, DbErr, ExecResult, QueryResult, Statement,
};

/// Records the plan of every statement that it executes.
pub struct ExplainingConnection<'a> {
    db: &'a DatabaseConnection,
    plans: Mutex<Vec<String>>,
}

impl<'a> ExplainingConnection<'a> {
    pub fn new(db: &'a DatabaseConnection) -> Self {
        Self {
            db,
            plans: Mutex::default(),
        }
    }

    /// Returns the plans since the last call.
    pub fn take_plans(&self) -> String {
        std::mem::take(&mut *self.plans.lock()).join("\n")
    }

    /// Fails unless the plans since the last call use one of these indexes and scan no whole table.
    #[track_caller]
    pub fn assert_uses_one_of(&self, indexes: &[&str]) {
        let plan = self.take_plans();
        self.assert_is_among(&plan, indexes);
    }

    /// Fails unless this plan uses one of these indexes and scans no whole table.
    #[track_caller]
    pub fn assert_is_among(&self, plan: &str, indexes: &[&str]) {
        let uses_one = indexes.iter().any(|index| plan.contains(index));
        assert!(uses_one, "none of {indexes:?} is used:\n{plan}");
        self.assert_reads_no_table(plan);
    }

    #[track_caller]
    fn assert_reads_no_table(&self, plan: &str) {
        let reads_whole = |line: &str| match self.db.get_database_backend() {
            DbBackend::Sqlite => {
                let scans = line.starts_with("SCAN ") && !line.contains(" USING ");
                scans && !line.starts_with("SCAN hops") && !line.contains("CONSTANT ROW")
            }
            _ => line.contains("Seq Scan on "),
        };
        let whole: Vec<&str> = plan.lines().filter(|line| reads_whole(line)).collect();
        assert!(whole.is_empty(), "full table scan: {whole:?} in\n{plan}");
    }

    async fn explain(&self, statement: &Statement) -> Result<(), DbErr> {
        let (word, column) = match statement.db_backend {
            DbBackend::Sqlite => ("EXPLAIN QUERY PLAN", "detail"),
            _ => ("EXPLAIN", "QUERY PLAN"),
        };
        let mut explain = statement.clone();
        explain.sql = format!("{word} {}", statement.sql);
        for row in self.db.query_all_raw(explain).await? {
            let line = row.try_get("", column)?;
            self.plans.lock().push(line);
        }
        Ok(())
    }
}

#[async_trait]
impl ConnectionTrait for ExplainingConnection<'_> {
    fn get_database_backend(&self) -> DbBackend {
        self.db.get_database_backend()
    }

    async fn execute_raw(&self, statement: Statement) -> Result<ExecResult, DbErr> {
        self.explain(&statement).await?;
        self.db.execute_raw(statement).await
    }

    async fn execute_unprepared(&self, sql: &str) -> Result<ExecResult, DbErr> {
        self.db.execute_unprepared(sql).await
    }

    async fn query_one_raw(&self, statement: Statement) -> Result<Option<QueryResult>, DbErr> {
        self.explain(&statement).await?;
        self.db.query_one_raw(statement).await
    }

    async fn query_all_raw(&self, statement: Statement) -> Result<Vec<QueryResult>, DbErr> {
        self.explain(&statement).await?;
        self.db.query_all_raw(statement).await
    }
}
