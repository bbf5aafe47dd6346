//! Writes what a plan changes of rounds and their slots.

use crate::ids::SlotId;
use crate::rounds::round;
use crate::rounds::slot;
use crate::runs::plan::Change;
use crate::runs::situation::Round;
use crate::runs::situation::Situation;
use crate::runs::writer::Writer;
use crate::runs::writer::resolve;
use sea_orm::ActiveValue::NotSet;
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
                trigger,
                seed,
                slots,
            } => {
                let row = round::Model {
                    id,
                    conversation_id: s.conversation.id,
                    status: round::Status::Active,
                    state: round::State::Generating,
                    cursor: 0,
                    trigger_message_id: trigger.and_then(|it| resolve(it, s)),
                    seed,
                    ended_reason: None,
                    created_at: self.now,
                };
                round::Entity::insert(row.clone().into_active_model())
                    .exec_without_returning(self.tx)
                    .await?;
                let slots = (0..).zip(slots).map(|(position, choice)| slot::Model {
                    id: SlotId(0), // given by the database
                    round_id: id,
                    position,
                    space_membership_id: choice.id,
                    status: slot::Status::Pending,
                    skip_reason: None,
                    chosen_because: choice.because,
                });
                let slots: Vec<slot::Model> = slots.collect();
                let rows = slots.iter().cloned().map(|it| {
                    let mut row = it.into_active_model();
                    row.id = NotSet;
                    row
                });
                slot::Entity::insert_many(rows)
                    .exec_without_returning(self.tx)
                    .await?;
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
