//! What a prompt takes out of the database.

use sea_orm::ActiveModelTrait;
use sea_orm::ActiveValue::Set;
use sea_orm::ActiveValue::Unchanged;
use sea_orm::DbErr;
use troupe::conversations::conversation;
use troupe::conversations::message::Role;
use troupe::conversations::timeline;
use troupe::prompt::sections::Kind;
use troupe::runs::preparation;

use crate::support::backends::on_both;
use crate::support::engine_room::EngineRoom;

/// Writes so many short messages, past the engine.
async fn write_history(room: &EngineRoom, n_messages: i64) {
    let (id, seat, now) = (room.conversation, room.human.seat, room.clock.now());
    let written: Result<(), DbErr> = room
        .db
        .write(move |tx| {
            Box::pin(async move {
                for seq in 1..=n_messages {
                    let mut row = timeline::blank(id, seat, Role::User, seq.to_string(), now);
                    (row.seq, row.rev, row.token_count) = (seq, seq, 1);
                    timeline::append(tx, row).await?;
                }
                let mut row = conversation::ActiveModel {
                    id: Unchanged(id),
                    ..Default::default()
                };
                (row.last_seq, row.rev) = (Set(n_messages), Set(n_messages));
                row.update(tx).await.map(|_| ())
            })
        })
        .await;
    written.unwrap();
}

on_both! {
    async fn the_history_reaches_back_as_far_as_the_window_and_no_further(backend) {
        let room = EngineRoom::on(backend).open().await;
        let ada = room.seat("Ada").await.id;
        write_history(&room, 1_800).await;

        let preview = preparation::preview(room.engine.context(), room.conversation, ada, None);
        let (_, built) = preview.await.unwrap().unwrap();

        let built = built.unwrap();
        let history: Vec<_> = built.blocks.iter().filter(|it| it.kind == Kind::History).collect();
        let sent = history.iter().filter(|it| !it.dropped).count();
        assert!(built.limit_tokens - built.total_tokens < 20, "the window is full");
        assert!(sent > 400, "{sent} messages are sent");
        assert!(history.len() < 1_800, "what cannot fit is not read");
        room.close().await;
    }
}
