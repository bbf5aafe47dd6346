//! A clock that is set, forward or back, ends no run and forgets none.

use troupe::runs::reaper::Report;
use troupe::runs::run::Status;

use crate::support::backends::on_both;
use crate::support::engine_room::EngineRoom;

const HOURS: i64 = 2 * 3_600_000;

on_both! {
    /// Z4. On SQLite the heartbeats of this very process are told by that clock.
    async fn a_clock_that_jumps_ahead_ends_none_of_our_runs(backend) {
        let room = EngineRoom::on(backend).open().await;
        let gate = room.upstream.gate();
        room.human.says("Count.").await;
        room.upstream.requested(1).await;

        room.clock.advance_ms(HOURS);
        let report = room.engine.reap().await.unwrap();
        gate.open();
        room.settle().await;

        assert_eq!(report, Report::default());
        let run = room.only_run().await;
        assert_eq!((run.status, run.attempt), (Status::Succeeded, 1));
        room.close().await;
    }

    /// Z5. What was planned before is due at a time that is hours away now.
    async fn a_clock_that_is_set_back_holds_up_nobody(backend) {
        let room = EngineRoom::on(backend)
            .rules(|it| it.user_turn_debounce_ms = 500)
            .open()
            .await;
        room.human.says("Hi.").await;

        room.clock.advance_ms(-HOURS);
        room.engine.context().bell.ring();
        room.until("it is answered", async |it| it.answers().await == ["Hello."]).await;

        room.human.says("And now?").await;
        room.clock.advance_ms(500);
        room.until("as ever", async |it| it.answers().await.len() == 2).await;
        room.is_idle().await;
        room.close().await;
    }
}
