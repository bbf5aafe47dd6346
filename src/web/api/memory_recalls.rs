//! Adds to the memories of a list the run whose prompt contained each of them last.

use std::collections::{HashMap, HashSet};

use base::ids::{RunId, SpaceId};

use crate::app::App;
use crate::conversations::audience::viewer::Viewer;
use crate::memories::memory;
use crate::runs::reading::prompt_runs;
use crate::web::api::memory_bodies::{LastRecallView, ListedMemory};
use crate::web::error::ApiResult;

/// The last recalls of memories, by run.
pub struct LastRecalls(HashMap<RunId, LastRecallView>);

impl LastRecalls {
    /// Loads the last recalls of memories of a space that the viewer may see. Runs that the viewer does not
    /// see, and runs whose prompt is no longer stored, are left out.
    ///
    /// # Errors
    /// Returns 500 when the database fails.
    pub async fn load(
        app: &App,
        space: SpaceId,
        rows: &[memory::Model],
        viewer: Viewer,
    ) -> ApiResult<Self> {
        let runs: HashSet<RunId> = rows.iter().filter_map(|it| it.last_recall_run_id).collect();
        if runs.is_empty() {
            return Ok(Self(HashMap::new()));
        }
        let (db, runs) = (app.db.reader(), runs.into_iter().collect());
        let found = prompt_runs::list_in_space(db, space, runs, viewer).await?;
        let recalls = found.into_iter().map(|it| {
            let recall = LastRecallView {
                run_id: it.id,
                conversation_id: it.conversation,
                membership_id: it.speaker,
            };
            (it.id, recall)
        });
        Ok(Self(recalls.collect()))
    }

    /// Returns a memory for a list; `found` is its score in a search and why it was found.
    pub fn listed(&self, row: &memory::Model, found: Option<(f32, String)>) -> ListedMemory {
        let (score, because) = found.unzip();
        let run = row.last_recall_run_id;
        ListedMemory {
            memory: row.view(),
            score,
            because,
            last_recall: run.and_then(|it| self.0.get(&it).cloned()),
        }
    }
}
