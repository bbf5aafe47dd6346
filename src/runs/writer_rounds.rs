//! Writes what a plan changes of rounds and their slots.

use crate::rounds::round;
use crate::rounds::slot;
use crate::runs::plan;
use crate::runs::plan::Change;
use crate::runs::situation::Round;
use crate::runs::situation::Situation;
use crate::runs::writer::Writer;
use crate::runs::writer::resolve;
use sea_orm::DbErr;
use sea_orm::EntityTrait;
use sea_orm::IntoActiveModel;

impl Writer<'_> {
    /// Carries out a change of the active round, or of one of its slots.
    pub(super) async fn change_round(
        &self,
        s: &mut Situation,
        change: Change,
    ) -> Result<(), DbErr> {
        match change {
            Change::NewRound {
                id,
                kind,
                trigger,
                seed,
                slots,
            } => {
                let mut row = round::blank(id, s.conversation.id, kind, seed, self.now);
                row.trigger_message_id = resolve(trigger, s);
                round::Entity::insert(row.clone().into_active_model())
                    .exec_without_returning(self.tx)
                    .await?;
                let slots = plan::slots(id, 0, slots);
                slot::insert(self.tx, &slots).await?;
                s.round = Some(Round { row, slots });
            }
            Change::EndRound { id, status, reason } => {
                round::end(self.tx, id, status, reason).await?;
                s.round = None;
            }
            Change::MoveRound { id, state, cursor } => {
                round::set(self.tx, id, state, cursor).await?;
                if let Some(round) = s.round.as_mut() {
                    round.row.state = state;
                    round.row.cursor = cursor;
                }
            }
            Change::ReplaceSlots { round, from, slots } => {
                let slots = plan::slots(round, from, slots);
                slot::replace(self.tx, round, from, &slots).await?;
                if let Some(round) = s.round.as_mut() {
                    round.slots.retain(|it| it.position < from);
                    round.slots.extend(slots);
                }
            }
            Change::MarkSlot {
                round,
                position,
                status,
                skip_reason,
            } => {
                slot::mark(self.tx, round, position, status, skip_reason).await?;
                let slots = s.round.iter_mut().flat_map(|it| it.slots.iter_mut());
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
