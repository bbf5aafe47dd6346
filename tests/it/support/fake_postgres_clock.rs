//! Replaces the clock of PostgreSQL: a `clock_timestamp()` in the search path before the system's,
//! with an offset that the test sets.

use crate::support::backends::TestDatabase;
use crate::support::database_facts::DatabaseFacts;

/// Replaces the clock of a database for all later connections.
pub async fn install(database: &TestDatabase) {
    let name = database.url().rsplit('/').next().unwrap_or_default();
    let mut facts = DatabaseFacts::open(database).await;
    facts
        .execute(&format!(
            "CREATE SCHEMA hand;
             CREATE TABLE hand.clock (ahead interval NOT NULL);
             INSERT INTO hand.clock VALUES ('0');
             CREATE FUNCTION hand.clock_timestamp() RETURNS timestamptz LANGUAGE sql VOLATILE AS
               'SELECT pg_catalog.clock_timestamp() + ahead FROM hand.clock';
             ALTER DATABASE {name} SET search_path = public, hand, pg_catalog"
        ))
        .await;
}

/// Delays every call of the clock by this many seconds.
pub async fn delay(facts: &mut DatabaseFacts, seconds: f64) {
    let slow = format!(
        "CREATE OR REPLACE FUNCTION hand.clock_timestamp() RETURNS timestamptz LANGUAGE plpgsql VOLATILE AS
           'BEGIN PERFORM pg_sleep({seconds}); RETURN pg_catalog.clock_timestamp(); END'"
    );
    facts.execute(&slow).await;
}

/// Sets the clock this many hours ahead of the real time, or behind it if negative.
pub async fn set(facts: &mut DatabaseFacts, hours: i64) {
    let set = format!("UPDATE hand.clock SET ahead = '{hours} hours'");
    facts.execute(&set).await;
}
