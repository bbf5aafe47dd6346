//! Keeps the scripts of spaces in memory, so that neither pages of messages nor prompts read cards for
//! them.
//!
//! **Invariant:** they are used only if the row of the space has the revisions at which they were
//! loaded; triggers increment `scripts_rev` when a card or preset changes. A space that never had
//! scripts costs no query.

use std::sync::Arc;

use base::ids::SpaceId;
use moka::sync::Cache;
use sea_orm::{ConnectionTrait, DbErr};

use crate::memory_limited_cache::memory_limited_cache;
use crate::regex_scripts::space_scripts::SpaceScripts;
use crate::spaces::space;

/// The approximate memory of all scripts.
const MAX_BYTES: u64 = 16 * 1024 * 1024;

/// The cache. Cheap to clone; clones share state.
#[derive(Clone)]
pub struct ScriptCache {
    spaces: Cache<SpaceId, CachedScripts>,
}

#[derive(Clone)]
struct CachedScripts {
    revisions: ScriptRevisions,
    scripts: Arc<SpaceScripts>,
}

/// What the scripts of a space depend on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScriptRevisions {
    pub scripts_rev: i64,
    pub roster_rev: i64,
    pub settings_version: i64,
}

impl From<&space::Model> for ScriptRevisions {
    fn from(space: &space::Model) -> Self {
        Self {
            scripts_rev: space.scripts_rev,
            roster_rev: space.roster_rev,
            settings_version: space.settings_version,
        }
    }
}

impl Default for ScriptCache {
    /// Creates an empty cache.
    fn default() -> Self {
        let n_bytes = |_: &SpaceId, it: &CachedScripts| it.scripts.n_bytes();
        Self {
            spaces: memory_limited_cache(MAX_BYTES, n_bytes),
        }
    }
}

impl ScriptCache {
    /// Returns the scripts of a space with these revisions; `None` if it never had any.
    ///
    /// # Errors
    /// Returns an error when the database fails.
    pub async fn load(
        &self,
        db: &impl ConnectionTrait,
        id: SpaceId,
        revisions: ScriptRevisions,
    ) -> Result<Option<Arc<SpaceScripts>>, DbErr> {
        if revisions.scripts_rev == 0 {
            return Ok(None);
        }
        let known = self.spaces.get(&id);
        if let Some(known) = known.filter(|it| it.revisions == revisions) {
            return Ok(Some(known.scripts));
        }
        let scripts = Arc::new(SpaceScripts::load(db, id).await?);
        let cached = CachedScripts {
            revisions,
            scripts: scripts.clone(),
        };
        self.spaces.insert(id, cached);
        Ok(Some(scripts))
    }
}
