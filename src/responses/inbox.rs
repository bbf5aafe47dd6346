//! What a model has said and nobody has shown yet.
//!
//! **Invariant:** putting something in only takes memory, so a model is never kept waiting. How much
//! that can be is bounded by the longest text that a turn may have.

use crate::responses::happening::Happening;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

/// The inbox of one turn.
#[derive(Default)]
pub struct Inbox {
    waiting: Mutex<Waiting>,
    bell: Notify,
    /// Rings when all that was put in was shown.
    calm: Notify,
    /// Rings when somebody waits for that.
    hurry: Notify,
    closed: CancellationToken,
}

#[derive(Default)]
struct Waiting {
    happenings: Vec<Happening>,
    /// Some were taken out, and are being shown.
    is_being_shown: bool,
}

impl Inbox {
    /// Puts one more happening in.
    pub fn put(&self, happening: Happening) {
        self.waiting.lock().happenings.push(happening);
        self.bell.notify_one();
    }

    /// Nothing more will come.
    pub fn close(&self) {
        self.closed.cancel();
        self.bell.notify_one();
    }

    /// Returns when nothing more will come, or somebody waits for what is there to be shown.
    pub async fn in_a_hurry(&self) {
        tokio::select! {
            () = self.closed.cancelled() => {}
            () = self.hurry.notified() => {}
        }
    }

    /// All that waits, and at least one; `None`: it is closed and empty.
    pub async fn take(&self) -> Option<Vec<Happening>> {
        loop {
            // Asked first: what was put in before it was closed is then seen below.
            let is_closed = self.closed.is_cancelled();
            {
                let mut waiting = self.waiting.lock();
                if !waiting.happenings.is_empty() {
                    waiting.is_being_shown = true;
                    return Some(std::mem::take(&mut waiting.happenings));
                }
            }
            if is_closed {
                return None;
            }
            self.bell.notified().await;
        }
    }

    /// What was taken last is shown, and written where it must be.
    pub fn shown(&self) {
        self.waiting.lock().is_being_shown = false;
        self.calm.notify_one();
    }

    /// Returns when all that was put in so far is shown. For the one who puts things in.
    pub async fn settled(&self) {
        loop {
            {
                let waiting = self.waiting.lock();
                if waiting.happenings.is_empty() && !waiting.is_being_shown {
                    return;
                }
            }
            self.hurry.notify_one();
            self.calm.notified().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Inbox;
    use crate::responses::happening::Happening;
    use futures::FutureExt;

    #[tokio::test]
    async fn it_is_settled_when_what_was_taken_is_shown() {
        let inbox = Inbox::default();
        assert!(inbox.settled().now_or_never().is_some());

        inbox.put(Happening::Began);
        assert!(inbox.settled().now_or_never().is_none());
        inbox.take().await;
        assert!(inbox.settled().now_or_never().is_none());
        inbox.shown();

        assert!(inbox.settled().now_or_never().is_some());
    }
}
