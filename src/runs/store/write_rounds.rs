//! Applies the changes of a plan to its rounds, and writes each changed row once.

use sea_orm::DbErr;

use crate::rounds::round;
use crate::runs::scheduling::plan::NewRound;
use crate::runs::scheduling::state::schedule_state::ScheduleState;
use crate::runs::store::plan_writer::{PlanWriter, RoundWrite, WrittenPlan, resolve_message};

impl PlanWriter<'_> {
    pub(super) fn start_round(
        &self,
        schedule: &mut ScheduleState,
        written: &mut WrittenPlan,
        new: &NewRound,
    ) {
        let trigger = resolve_message(new.trigger, schedule);
        schedule.round = Some(new.to_row(schedule.conversation.id, trigger, self.now));
        written.pending_round_write = Some(RoundWrite::Insert);
    }

    /// Applies a change to the active round in memory; `write_round` stores it later.
    pub(super) fn change_round(
        &self,
        schedule: &mut ScheduleState,
        written: &mut WrittenPlan,
        change: impl FnOnce(&mut round::Model),
    ) {
        if let Some(round) = schedule.round.as_mut() {
            change(round);
            written
                .pending_round_write
                .get_or_insert(RoundWrite::Update);
        }
    }

    /// Ends the active round and writes its row, because another round may follow in the same plan.
    pub(super) async fn end_round(
        &self,
        schedule: &mut ScheduleState,
        written: &mut WrittenPlan,
        (status, reason): (round::RoundStatus, &str),
    ) -> Result<(), DbErr> {
        self.change_round(schedule, written, |round| {
            round.status = status;
            round.ended_reason = Some(reason.to_owned());
        });
        self.write_round(schedule, written).await?;
        schedule.round = None;
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
