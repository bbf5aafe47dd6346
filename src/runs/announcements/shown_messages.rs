//! The regex scripts that change how the messages of a step are shown.

use sea_orm::{ConnectionTrait, DbErr};

use crate::conversations::display::display_scripts::{DisplayScripts, ShownText};
use crate::conversations::message;
use crate::regex_scripts::script_cache::ScriptCache;
use crate::runs::scheduling::state::schedule_state::ScheduleState;
use crate::runs::services::RunServices;
use crate::runs::store::plan_writer::WrittenPlan;

/// Returns the scripts for the messages of a conversation.
///
/// # Errors
/// Returns an error when the database fails.
pub async fn load_scripts(
    tx: &impl ConnectionTrait,
    cache: &ScriptCache,
    state: &ScheduleState,
) -> Result<DisplayScripts, DbErr> {
    let (space, last_seq) = (&state.space, state.conversation.last_seq);
    let scripts = cache.load(tx, space.id, space.into()).await?;
    Ok(scripts.map_or_else(DisplayScripts::default, |it| {
        DisplayScripts::new(it, last_seq)
    }))
}

/// Runs the scripts for the messages that are announced next, on a blocking thread. Their result is
/// cached, so that the announcement does not run them again.
pub async fn run_scripts(context: &RunServices, state: &ScheduleState, written: &WrittenPlan) {
    if written.scripts.is_empty() || written.messages.is_empty() {
        return;
    }
    let names = written.messages.iter().map(|it| {
        let author = state.member(it.row.space_membership_id);
        author.map_or_else(String::new, |it| it.cached_display_name.clone())
    });
    let names: Vec<String> = names.collect();
    let rows: Vec<message::Model> = written.messages.iter().map(|it| it.row.clone()).collect();
    let (scripts, markdown) = (written.scripts.clone(), context.markdown.clone());
    let rendering = context.shutdown.main().spawn_blocking(move || {
        for (row, name) in rows.iter().zip(&names) {
            scripts.render(&markdown, ShownText::of_message(row, name));
        }
    });
    if let Err(error) = rendering.await {
        tracing::warn!(%error, "failed to run scripts for display: {error}");
    }
}
