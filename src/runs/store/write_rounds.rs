//! Applies the changes of a plan to its rounds, and writes each changed row once.

use sea_orm::DbErr;

use crate::rounds::round;
use crate::runs::scheduling::plan;
use crate::runs::scheduling::plan::PlanChange;
use crate::runs::scheduling::state::schedule_state::ScheduleState;
use crate::runs::store::plan_writer::{PlanWriter, RoundWrite, WrittenPlan, resolve_message};

impl PlanWriter<'_> {
    /// Applies a change to the loaded round. Writes its row if the change ends it, because another
    /// round may follow in the same plan.
    pub(super) async fn change_round(
        &self,
        schedule: &mut ScheduleState,
        written: &mut WrittenPlan,
        change: PlanChange,
    ) -> Result<(), DbErr> {
        if let PlanChange::NewRound {
            id,
            kind,
            trigger,
            seed,
            slots,
        } = change
        {
            let slots = plan::new_slots(0, slots);
            let conversation = schedule.conversation.id;
            let mut round = round::new_model(id, conversation, kind, seed, self.now, slots);
            round.trigger_message_id = resolve_message(trigger, schedule);
            schedule.round = Some(round);
            written.pending_round_write = Some(RoundWrite::Insert);
            return Ok(());
        }
        let Some(round) = schedule.round.as_mut() else {
            return Ok(());
        };
        written
            .pending_round_write
            .get_or_insert(RoundWrite::Update);
        match change {
            PlanChange::ChangeRound(change) => change.apply(round),
            PlanChange::EndRound { status, reason } => {
                round.status = status;
                round.ended_reason = Some(reason.to_owned());
                self.write_round(schedule, written).await?;
                schedule.round = None;
            }
            _ => {}
        }
        Ok(())
    }

    /// Writes the row of the active round if it has changed.
    pub(super) async fn write_round(
        &self,
        schedule: &ScheduleState,
        written: &mut WrittenPlan,
    ) -> Result<(), DbErr> {
        let Some(round) = schedule.round.clone() else {
            return Ok(());
        };
        match written.pending_round_write.take() {
            Some(RoundWrite::Insert) => round::insert(self.tx, round).await,
            Some(RoundWrite::Update) => round::update(self.tx, round).await,
            None => Ok(()),
        }
    }
}
