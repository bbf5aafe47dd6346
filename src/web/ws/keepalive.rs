//! Decides when a socket peer is pinged and when it counts as dead, and limits the frame rate of
//! clients. No I/O.

use std::collections::VecDeque;
use std::time::Duration;

use realtime::socket_timeouts::SocketTimeouts;
use tokio::time::Instant;

/// Tracks whether the peer is alive.
#[derive(Debug)]
pub struct Keepalive {
    timeouts: SocketTimeouts,
    last_frame_at: Instant,
    next_ping_at: Instant,
}

/// What to do when the timer fires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeepaliveAction {
    Ping,
    Silent,
    /// The timer fired too early.
    Nothing,
}

impl Keepalive {
    /// Starts with a peer that has just connected.
    pub fn new(timeouts: SocketTimeouts, now: Instant) -> Self {
        Self {
            timeouts,
            last_frame_at: now,
            next_ping_at: now + timeouts.ping_interval,
        }
    }

    /// Records that the peer sent a frame.
    pub fn on_frame(&mut self, now: Instant) {
        self.last_frame_at = now;
    }

    /// Returns when the timer should fire next.
    pub fn next_timeout(&self) -> Instant {
        self.next_ping_at
            .min(self.last_frame_at + self.timeouts.silence_timeout)
    }

    /// Handles the timer.
    pub fn on_timeout(&mut self, now: Instant) -> KeepaliveAction {
        if now >= self.last_frame_at + self.timeouts.silence_timeout {
            return KeepaliveAction::Silent;
        }
        if now >= self.next_ping_at {
            self.next_ping_at = now + self.timeouts.ping_interval;
            return KeepaliveAction::Ping;
        }
        KeepaliveAction::Nothing
    }
}

/// Frames that a client may send in a window.
pub const MAX_FRAMES: usize = 60;

/// Counts the accepted frames in a sliding window; refused ones do not count.
#[derive(Debug)]
pub struct FrameRateLimit {
    window: Duration,
    accepted: VecDeque<Instant>,
}

impl FrameRateLimit {
    /// Starts with no frames.
    pub fn new(timeouts: SocketTimeouts) -> Self {
        Self {
            window: timeouts.frame_rate_window,
            accepted: VecDeque::new(),
        }
    }

    /// Counts one more frame if it is allowed now.
    ///
    /// # Errors
    /// Returns the time until a frame is allowed.
    pub fn acquire(&mut self, now: Instant) -> Result<(), Duration> {
        while self
            .accepted
            .front()
            .is_some_and(|it| now >= *it + self.window)
        {
            self.accepted.pop_front();
        }
        match self.accepted.front() {
            Some(first) if self.accepted.len() >= MAX_FRAMES => Err(*first + self.window - now),
            _ => {
                self.accepted.push_back(now);
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use realtime::socket_timeouts::SocketTimeouts;
    use tokio::time::Instant;

    use super::{FrameRateLimit, Keepalive, KeepaliveAction};

    fn after(begin: Instant, seconds: u64) -> Instant {
        begin + Duration::from_secs(seconds)
    }

    /// Returns what happens until the second `until`, if the peer answers at `answers`.
    fn simulate(answers: &[u64], until: u64) -> Vec<(u64, KeepaliveAction)> {
        let begin = Instant::now();
        let mut keepalive = Keepalive::new(SocketTimeouts::default(), begin);
        let mut actions = Vec::new();
        for second in 0..=until {
            let now = after(begin, second);
            if answers.contains(&second) {
                keepalive.on_frame(now);
            }
            while now >= keepalive.next_timeout() {
                let alarm = keepalive.on_timeout(now);
                actions.push((second, alarm));
                if alarm == KeepaliveAction::Silent {
                    return actions;
                }
            }
        }
        actions
    }

    #[test]
    fn a_silent_peer_is_pinged_and_dropped_after_a_minute() {
        let expected = [
            (20, KeepaliveAction::Ping),
            (40, KeepaliveAction::Ping),
            (60, KeepaliveAction::Silent),
        ];
        assert_eq!(simulate(&[], 100), expected);
    }

    #[test]
    fn the_minute_counts_from_the_last_frame() {
        let actions = simulate(&[25], 100);

        assert_eq!(actions.last(), Some(&(85, KeepaliveAction::Silent)));
    }

    #[test]
    fn a_peer_that_answers_is_pinged_forever() {
        let actions = simulate(&[20, 40, 60, 80, 100], 100);

        assert_eq!(actions.len(), 5);
        assert!(actions.iter().all(|(_, it)| *it == KeepaliveAction::Ping));
    }

    #[test]
    fn sixty_frames_in_ten_seconds_are_accepted_and_no_more() {
        let begin = Instant::now();
        let mut rate = FrameRateLimit::new(SocketTimeouts::default());

        for n in 0..60 {
            assert_eq!(rate.acquire(after(begin, n / 10)), Ok(()));
        }

        assert_eq!(rate.acquire(after(begin, 8)), Err(Duration::from_secs(2)));
        assert_eq!(rate.acquire(after(begin, 10)), Ok(()));
        for _ in 0..9 {
            assert_eq!(rate.acquire(after(begin, 10)), Ok(()));
        }
        assert_eq!(rate.acquire(after(begin, 10)), Err(Duration::from_secs(1)));
    }
}
