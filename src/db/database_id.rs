//! Returns the id of this PostgreSQL database, to distinguish databases that use the same Redis
//! server.

use sea_orm::{ConnectionTrait, DbErr, Statement};
use sha2::{Digest, Sha256};

use crate::db::connect::Db;

impl Db {
    /// Returns an id that all nodes on this PostgreSQL database share; a database restored from a
    /// backup has another one.
    ///
    /// # Errors
    /// Returns `DbErr` when the database fails.
    pub async fn database_id(&self) -> Result<String, DbErr> {
        let sql = "select concat_ws('/', (select system_identifier from pg_control_system()), oid, datname) \
                   from pg_database where datname = current_database()";
        let statement = Statement::from_string(sea_orm::DbBackend::Postgres, sql);
        let found = self.reader().query_one_raw(statement).await?;
        let found = found.ok_or(DbErr::RecordNotFound("its own name".to_owned()))?;
        let name: String = found.try_get_by_index(0)?;
        Ok(hex::encode(&Sha256::digest(name)[..8]))
    }
}
