//! Writes the changes of a plan to rounds and their slots.

use sea_orm::{DbErr, EntityTrait, IntoActiveModel};

use crate::rounds::active_round::ActiveRound;
use crate::rounds::{round, slot};
use crate::runs::scheduling::plan;
use crate::runs::scheduling::plan::PlanChange;
use crate::runs::scheduling::state::schedule_state::ScheduleState;
use crate::runs::store::plan_writer::{PlanWriter, resolve_message};

impl PlanWriter<'_> {
    /// Writes a change of the active round or of one of its slots.
    pub(super) async fn change_round(
        &self,
        schedule: &mut ScheduleState,
        change: PlanChange,
    ) -> Result<(), DbErr> {
        match change {
            PlanChange::NewRound {
                id,
                kind,
                trigger,
                seed,
                slots,
            } => {
                let mut row = round::new_model(id, schedule.conversation.id, kind, seed, self.now);
                row.trigger_message_id = resolve_message(trigger, schedule);
                round::Entity::insert(row.clone().into_active_model())
                    .exec_without_returning(self.tx)
                    .await?;
                let slots = slot::insert(self.tx, &plan::new_slots(id, 0, slots)).await?;
                schedule.round = Some(ActiveRound { row, slots });
            }
            PlanChange::EndRound { id, status, reason } => {
                round::end_round(self.tx, id, status, reason).await?;
                schedule.round = None;
            }
            PlanChange::MoveRound { id, state, cursor } => {
                round::update_progress(self.tx, id, state, cursor).await?;
                if let Some(round) = schedule.round.as_mut() {
                    round.row.state = state;
                    round.row.cursor = cursor;
                }
            }
            PlanChange::ReplaceSlots { round, from, slots } => {
                let slots = plan::new_slots(round, from, slots);
                let slots = slot::replace(self.tx, round, from, &slots).await?;
                if let Some(round) = schedule.round.as_mut() {
                    round.slots.retain(|it| it.position < from);
                    round.slots.extend(slots);
                }
            }
            PlanChange::MarkSlot {
                round,
                position,
                status,
                skip_reason,
            } => {
                slot::set_status(self.tx, round, position, status, skip_reason).await?;
                let slots = schedule.round.iter_mut().flat_map(|it| it.slots.iter_mut());
                for slot in slots.filter(|it| it.position == position) {
                    slot.status = status;
                    slot.skip_reason = skip_reason.map(str::to_owned);
                }
            }
            _ => {}
        }
        Ok(())
    }
}
