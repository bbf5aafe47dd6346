//! Whether a peer still lives, and how fast a client may talk.

use crate::realtime::pace::Pace;
use std::collections::VecDeque;
use std::time::Duration;
use tokio::time::Instant;

/// Whether the peer still lives.
#[derive(Debug)]
pub struct Pulse {
    pace: Pace,
    heard_at: Instant,
    ping_at: Instant,
}

/// What is to be done when the alarm rings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Alarm {
    Ping,
    Silent,
    /// It rang too early.
    Nothing,
}

impl Pulse {
    /// The peer has just connected.
    pub fn new(pace: Pace, now: Instant) -> Self {
        Self {
            pace,
            heard_at: now,
            ping_at: now + pace.ping_every,
        }
    }

    /// The peer said something.
    pub fn heard(&mut self, now: Instant) {
        self.heard_at = now;
    }

    /// When the alarm is to ring next.
    pub fn alarm_at(&self) -> Instant {
        self.ping_at.min(self.heard_at + self.pace.silent_after)
    }

    /// The alarm rings.
    pub fn ring(&mut self, now: Instant) -> Alarm {
        if now >= self.heard_at + self.pace.silent_after {
            return Alarm::Silent;
        }
        if now >= self.ping_at {
            self.ping_at = now + self.pace.ping_every;
            return Alarm::Ping;
        }
        Alarm::Nothing
    }
}

/// Frames that a client may send in a window.
pub const MOST_FRAMES: usize = 60;

/// Counts the frames of the last seconds; those refused do not count.
#[derive(Debug)]
pub struct Rate {
    window: Duration,
    taken: VecDeque<Instant>,
}

impl Rate {
    /// Nothing was taken yet.
    pub fn new(pace: Pace) -> Self {
        Self {
            window: pace.frames_within,
            taken: VecDeque::new(),
        }
    }

    /// Whether one more is taken now.
    ///
    /// # Errors
    /// The time until one would be.
    pub fn take(&mut self, now: Instant) -> Result<(), Duration> {
        while self
            .taken
            .front()
            .is_some_and(|it| now >= *it + self.window)
        {
            self.taken.pop_front();
        }
        match self.taken.front() {
            Some(first) if self.taken.len() >= MOST_FRAMES => Err(*first + self.window - now),
            _ => {
                self.taken.push_back(now);
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Alarm;
    use super::Pulse;
    use super::Rate;
    use crate::realtime::pace::Pace;
    use std::time::Duration;
    use tokio::time::Instant;

    fn after(begin: Instant, seconds: u64) -> Instant {
        begin + Duration::from_secs(seconds)
    }

    /// What happens until the second, when the peer answers at `answers`.
    fn life(answers: &[u64], until: u64) -> Vec<(u64, Alarm)> {
        let begin = Instant::now();
        let mut pulse = Pulse::new(Pace::default(), begin);
        let mut rung = Vec::new();
        for second in 0..=until {
            let now = after(begin, second);
            if answers.contains(&second) {
                pulse.heard(now);
            }
            while now >= pulse.alarm_at() {
                let alarm = pulse.ring(now);
                rung.push((second, alarm));
                if alarm == Alarm::Silent {
                    return rung;
                }
            }
        }
        rung
    }

    #[test]
    fn a_silent_peer_is_pinged_and_given_up_after_a_minute() {
        let expected = [(20, Alarm::Ping), (40, Alarm::Ping), (60, Alarm::Silent)];
        assert_eq!(life(&[], 100), expected);
    }

    #[test]
    fn the_minute_counts_from_the_last_word() {
        let rung = life(&[25], 100);

        assert_eq!(rung.last(), Some(&(85, Alarm::Silent)));
    }

    #[test]
    fn a_peer_that_answers_is_pinged_for_ever() {
        let rung = life(&[20, 40, 60, 80, 100], 100);

        assert_eq!(rung.len(), 5);
        assert!(rung.iter().all(|(_, it)| *it == Alarm::Ping));
    }

    #[test]
    fn sixty_frames_in_ten_seconds_are_taken_and_no_more() {
        let begin = Instant::now();
        let mut rate = Rate::new(Pace::default());

        for n in 0..60 {
            assert_eq!(rate.take(after(begin, n / 10)), Ok(()));
        }

        assert_eq!(rate.take(after(begin, 8)), Err(Duration::from_secs(2)));
        assert_eq!(rate.take(after(begin, 10)), Ok(()));
        for _ in 0..9 {
            assert_eq!(rate.take(after(begin, 10)), Ok(()));
        }
        assert_eq!(rate.take(after(begin, 10)), Err(Duration::from_secs(1)));
    }
}
