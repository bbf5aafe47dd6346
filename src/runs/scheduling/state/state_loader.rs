//! Locks conversations and loads the state that the planner needs for a command: conversation,
//! space, members, round, runs, and facts that only this command needs.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use base::ids::{ConversationId, MembershipId, MessageId, ProviderId, SpaceId};
use sea_orm::{ConnectionTrait, DbErr};

use crate::characters::character;
use crate::conversations::annotations::quoted_message;
use crate::conversations::{conversation, message, swipe, timeline, token_usage};
use crate::db::id_list::padded;
use crate::providers::usable_providers::UsableProviders;
use crate::rounds::round;
use crate::runs::scheduling::command::Command;
use crate::runs::scheduling::state::claim_facts::{
    claim_facts, load_shown_targets, queued_speaker,
};
use crate::runs::scheduling::state::command_facts::{CommandFacts, TargetMessage};
use crate::runs::scheduling::state::schedule_state::ScheduleState;
#[cfg(feature = "failpoints")]
use crate::runs::scheduling::state::state_cache;
use crate::runs::scheduling::state::state_cache::{CachedState, StateCache};
use crate::runs::scheduling::state::{newest_seen, regenerate_facts};
use crate::runs::store::run;
use crate::runs::store::run::RunStatus;
use crate::spaces::space::{RepliesPerTurn, ReplyOrder};
use crate::spaces::{membership, space};

/// Locks the conversation and loads what `command` needs. Returns `None` if it does not exist.
pub async fn load(
    tx: &impl ConnectionTrait,
    cache: &StateCache,
    id: ConversationId,
    command: &Command,
) -> Result<Option<ScheduleState>, DbErr> {
    let Some((conversation, space)) = conversation::lock_with_space(tx, id).await? else {
        return Ok(None);
    };
    // An import or a background job is filling the conversation or deleting it: only the command
    // that ends its runs may change it.
    if (conversation.is_hidden || space.is_hidden) && !matches!(command, Command::SpaceClosed(_)) {
        return Ok(None);
    }
    // Announcements show the heartbeat and the wait of a run that keeps running.
    let ends_run = matches!(command, Command::RunEnded { .. });
    let mut states = load_states(tx, cache, vec![(conversation, space)], ends_run).await?;
    let Some(mut state) = states.pop() else {
        return Ok(None);
    };
    load_speaker_facts(tx, command, &mut state).await?;
    state.facts = load_command_facts(tx, command, &mut state).await?;
    add_removed_members(tx, &mut state, command.referenced_members()).await?;
    Ok(Some(state))
}

/// Loads what [`Command::Claim`] needs for these conversations, which this transaction has locked,
/// with one query for each table, and one for each conversation that refers to removed members.
pub async fn load_claims(
    tx: &impl ConnectionTrait,
    cache: &StateCache,
    locked: Vec<(conversation::Model, space::Model)>,
) -> Result<Vec<ScheduleState>, DbErr> {
    // Nothing is claimed or announced in a conversation with a running run.
    let mut states = load_states(tx, cache, locked, true).await?;
    let speakers = states.iter().filter_map(queued_speaker);
    let own: BTreeSet<ProviderId> = speakers.filter_map(|it| it.llm_provider_id).collect();
    let usable = UsableProviders::load(tx, padded(own)).await?;
    let at_limit =
        token_usage::list_spaces_at_limit(tx, states.iter().map(|it| &it.space), 0).await?;
    let shown = load_shown_targets(tx, states.iter()).await?;
    for state in &mut states {
        let has_reached_limit = at_limit.contains(&state.space.id);
        state.facts = claim_facts(state, &usable, has_reached_limit, &shown);
        add_removed_members(tx, state, []).await?;
    }
    Ok(states)
}

/// Loads members, runs, round and newest message of locked conversations, with one query for each
/// table. What the cache knows is not loaded. If it knows a running run, the runs are loaded all the
/// same, unless `accepts_old_heartbeat`.
async fn load_states(
    tx: &impl ConnectionTrait,
    cache: &StateCache,
    locked: Vec<(conversation::Model, space::Model)>,
    accepts_old_heartbeat: bool,
) -> Result<Vec<ScheduleState>, DbErr> {
    let rosters = load_rosters(tx, cache, locked.iter().map(|(_, space)| space)).await?;
    let rows = || locked.iter().map(|(row, _)| row);
    let known: HashMap<ConversationId, Arc<CachedState>> = rows()
        .filter_map(|row| Some((row.id, cache.find(row)?)))
        .collect();
    let unknown = || rows().filter(|row| !known.contains_key(&row.id));
    let has_runs = |it: &CachedState| accepts_old_heartbeat || it.running.is_none();
    let without_runs = rows().filter(|row| known.get(&row.id).is_none_or(|it| !has_runs(it)));
    let ids = padded(without_runs.map(|row| row.id));
    let mut runs = run::list_active(tx, &ids).await?;
    let mut tails = timeline::list_tails(tx, unknown()).await?;
    let mut rounds = round::list_active(tx, &padded(unknown().map(|row| row.id))).await?;
    let with_runs = known.values().filter(|it| has_runs(it));
    runs.extend(with_runs.flat_map(|it| it.queued.iter().chain(&it.running).cloned()));
    tails.extend(known.values().filter_map(|it| it.tail.clone()));
    rounds.extend(known.values().filter_map(|it| it.round.clone()));
    let with_facts = |(conversation, space): (conversation::Model, space::Model)| {
        let id = conversation.id;
        let mut run_in = |status| {
            remove_first(&mut runs, |it| {
                it.conversation_id == id && it.status == status
            })
        };
        ScheduleState {
            queued: run_in(RunStatus::Queued),
            running: run_in(RunStatus::Running),
            round: remove_first(&mut rounds, |it| it.conversation_id == id),
            tail: remove_first(&mut tails, |it| it.conversation_id == id),
            last_speaker: conversation.last_speaker_membership_id,
            members: rosters[&space.id].to_vec(),
            conversation,
            space,
            spoken_in_epoch: HashSet::new(),
            talkativeness: HashMap::new(),
            facts: CommandFacts::None,
        }
    };
    let states: Vec<ScheduleState> = locked.into_iter().map(with_facts).collect();
    #[cfg(feature = "failpoints")]
    assert_current(tx, &states).await?;
    Ok(states)
}

/// Returns the active members of these spaces. Loads those that the cache does not know.
async fn load_rosters<'a>(
    tx: &impl ConnectionTrait,
    cache: &StateCache,
    spaces: impl Iterator<Item = &'a space::Model>,
) -> Result<HashMap<SpaceId, Arc<[membership::Model]>>, DbErr> {
    let spaces: BTreeMap<SpaceId, &space::Model> = spaces.map(|it| (it.id, it)).collect();
    let mut rosters: HashMap<SpaceId, Arc<[membership::Model]>> = spaces
        .values()
        .filter_map(|it| Some((it.id, cache.find_roster(it)?)))
        .collect();
    let unknown: Vec<&space::Model> = (spaces.into_values())
        .filter(|it| !rosters.contains_key(&it.id))
        .collect();
    if unknown.is_empty() {
        return Ok(rosters);
    }
    let ids = padded(unknown.iter().map(|it| it.id));
    let loaded = membership::list_active_in(tx, ids).await?;
    for space in unknown {
        let members = loaded.iter().filter(|it| it.space_id == space.id);
        let members: Arc<[membership::Model]> = members.cloned().collect();
        cache.store_roster(space, &members);
        rosters.insert(space.id, members);
    }
    Ok(rosters)
}

/// Compares the states with the database, so that the chaos run checks each use of the cache.
#[cfg(feature = "failpoints")]
async fn assert_current(tx: &impl ConnectionTrait, states: &[ScheduleState]) -> Result<(), DbErr> {
    for state in states {
        let row = &state.conversation;
        let runs = run::list_active(tx, &[row.id]).await?;
        let queued = runs.iter().find(|it| it.status == RunStatus::Queued);
        assert_eq!(
            state.queued.as_ref(),
            queued,
            "the queued run is not current"
        );
        let running = runs.iter().find(|it| it.status == RunStatus::Running);
        // Heartbeat and wait are updated at any time.
        let compared = |it: Option<&run::Model>| {
            let mut run = it.cloned()?;
            (run.heartbeat_at, run.waiting_for) = (None, None);
            Some(run)
        };
        assert_eq!(
            compared(state.running.as_ref()),
            compared(running),
            "the running run is not current"
        );
        let round = round::find_active(tx, row.id).await?;
        assert_eq!(state.round, round, "the round is not current");
        let tail = timeline::list_tails(tx, [row]).await?.pop();
        assert_eq!(state.tail, tail, "the newest message is not current");
        let members = membership::list_active(tx, row.space_id).await?;
        let space = space::find_visible(tx, row.space_id).await?;
        // A member may have been changed after the space was read, and changes of a copilot do not
        // increment `roster_rev`.
        let has_copilot =
            state_cache::has_copilot(&members) || state_cache::has_copilot(&state.members);
        if !has_copilot && space.is_some_and(|it| it.roster_rev == state.space.roster_rev) {
            assert_eq!(state.members, members, "the roster is not current");
        }
    }
    Ok(())
}

/// Removes and returns the first item that fits.
fn remove_first<T>(all: &mut Vec<T>, fits: impl Fn(&T) -> bool) -> Option<T> {
    let index = all.iter().position(fits)?;
    Some(all.swap_remove(index))
}

/// Adds the removed memberships that the loaded data or `named` refer to.
async fn add_removed_members(
    tx: &impl ConnectionTrait,
    state: &mut ScheduleState,
    named: impl IntoIterator<Item = MembershipId>,
) -> Result<(), DbErr> {
    let named = state.referenced_members().chain(named);
    let removed = membership::load_missing(tx, state.space.id, &state.members, named).await?;
    state.members.extend(removed);
    Ok(())
}

/// Loads what the choice of speakers needs, for the commands that choose them.
async fn load_speaker_facts(
    tx: &impl ConnectionTrait,
    command: &Command,
    state: &mut ScheduleState,
) -> Result<(), DbErr> {
    match command {
        Command::ForceTalk(turn) if turn.speaker.is_none() => load_spoken_in_epoch(tx, state).await,
        Command::MessagePosted(_) | Command::ReplyToTail | Command::SpeakerChosen { .. } => {
            load_talkativeness(tx, state).await
        }
        Command::RunEnded { .. } => {
            load_talkativeness(tx, state).await?;
            let space = &state.space;
            if space.auto_mode_enabled && space.reply_order == ReplyOrder::Pooled {
                load_spoken_in_epoch(tx, state).await?;
            }
            Ok(())
        }
        _ => Ok(()),
    }
}

async fn load_spoken_in_epoch(
    tx: &impl ConnectionTrait,
    state: &mut ScheduleState,
) -> Result<(), DbErr> {
    state.spoken_in_epoch =
        timeline::speakers_since_last_user_message(tx, &state.conversation).await?;
    Ok(())
}

/// Loads talkativeness if the reply order uses it: natural order with several replies per turn, which is
/// also the rule when the director has no usable answer.
async fn load_talkativeness(
    tx: &impl ConnectionTrait,
    state: &mut ScheduleState,
) -> Result<(), DbErr> {
    let space = &state.space;
    let several = space.replies_per_turn == RepliesPerTurn::Activated;
    if several
        && matches!(
            space.reply_order,
            ReplyOrder::Natural | ReplyOrder::Director
        )
    {
        let cards = state.members.iter().filter_map(|it| it.character_id);
        state.talkativeness = character::load_talkativeness(tx, cards).await?;
    }
    Ok(())
}

/// Loads the facts that `command` needs.
async fn load_command_facts(
    tx: &impl ConnectionTrait,
    command: &Command,
    state: &mut ScheduleState,
) -> Result<CommandFacts, DbErr> {
    let id = state.conversation.id;
    Ok(match command {
        Command::Claim { .. } => {
            let own = queued_speaker(state).and_then(|it| it.llm_provider_id);
            let usable = UsableProviders::load(tx, own).await?;
            let has_reached_limit = token_usage::has_reached_limit(tx, &state.space, 0).await?;
            let shown = load_shown_targets(tx, std::iter::once(&*state)).await?;
            claim_facts(state, &usable, has_reached_limit, &shown)
        }
        Command::Retry { .. }
        | Command::Resume
        | Command::Skip { .. }
        | Command::CancelRun { .. } => CommandFacts::Continuation {
            newest_run: run::find_newest(tx, id).await?,
            newest_seen: newest_seen::find_before_tail(tx, state, None).await?,
        },
        Command::CopilotStarted { .. } => CommandFacts::RequestedTurn {
            newest_seen: newest_seen::find_before_tail(tx, state, None).await?,
        },
        Command::ForceTalk(turn) => CommandFacts::RequestedTurn {
            newest_seen: newest_seen::find_for_turn(tx, state, turn).await?,
        },
        Command::RunEnded { .. } => {
            // A regenerate run adds its text to its target message.
            let running = state.running.as_ref();
            match running.and_then(|it| it.debug.target_message_id) {
                Some(target) => CommandFacts::Message(find_target(tx, id, target).await?),
                None => CommandFacts::None,
            }
        }
        Command::SetVisibility { message, .. } | Command::SetRemembered { message, .. } => {
            CommandFacts::Message(find_target(tx, id, *message).await?)
        }
        Command::SetOutOfCharacter { message, .. } => {
            let target = find_target(tx, id, *message).await?;
            let before = match &target {
                Some(it) => timeline::scheduled_before(tx, id, it.row.seq).await?,
                None => None,
            };
            CommandFacts::OutOfCharacter { target, before }
        }
        Command::EditMessage(edit) => {
            CommandFacts::Message(find_target(tx, id, edit.message).await?)
        }
        Command::SelectSwipe {
            message, position, ..
        } => CommandFacts::Swipe {
            target: find_target(tx, id, *message).await?,
            swipe: swipe::find_at(tx, *message, *position).await?,
        },
        Command::Regenerate(request)
        | Command::RegenerateInPlace(request)
        | Command::Continue(request) => {
            let may_replace_turn = matches!(command, Command::Regenerate(_));
            let named = match request.message {
                None => newest_seen::find_for_viewer(tx, state, request.viewer).await?,
                named => named,
            };
            let target = match named {
                Some(message) => find_target(tx, id, message).await?,
                None => None,
            };
            let Some(target) = target else {
                return Ok(CommandFacts::Regenerate(None));
            };
            let facts = regenerate_facts::load(tx, target, state, may_replace_turn).await?;
            if !facts.last_turn.is_empty() {
                load_talkativeness(tx, state).await?;
            }
            CommandFacts::Regenerate(Some(facts))
        }
        Command::InsertGreetings(_) => CommandFacts::Greetings {
            greeted: match timeline::has_only_greetings(tx, &state.conversation).await? {
                true => Some(timeline::list_authors(tx, id).await?),
                false => None,
            },
        },
        Command::MessagePosted(post) => CommandFacts::Post {
            answered: match post.reply_to {
                Some(target) => quoted_message::find_quotable(tx, id, target, post.author).await?,
                None => None,
            },
        },
        Command::ReplyToTail
        | Command::LeaseExpired { .. }
        | Command::RunReleased { .. }
        | Command::SpeakerChosen { .. }
        | Command::RoundStalled
        | Command::TurnTimedOut { .. }
        | Command::Stop { .. }
        | Command::Pause
        | Command::EditQueue(_)
        | Command::ApplyChanges
        | Command::SpaceClosed(_) => CommandFacts::None,
    })
}

async fn find_target(
    tx: &impl ConnectionTrait,
    conversation: ConversationId,
    id: MessageId,
) -> Result<Option<TargetMessage>, DbErr> {
    let Some(row) = message::find_in_conversation(tx, conversation, id).await? else {
        return Ok(None);
    };
    let is_fork_point = timeline::has_fork_point(tx, [id]).await?;
    let counts = swipe::count_by_message(tx, &[id]).await?;
    Ok(Some(TargetMessage {
        row,
        is_fork_point,
        n_swipes: counts.get(&id).copied().unwrap_or_default(),
    }))
}
