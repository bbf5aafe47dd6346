//! The possible next steps of the model: those of the nodes, actions of users, and faults, as often
//! as the bounds allow.

use crate::nodes::{Held, Life, Node, Stage};
use crate::rows::Status;
use crate::steps::{Flaw, Schedule, Step, SystemState};

impl Schedule {
    /// Whether the nodes that are awake have a possible step.
    pub fn can_move(&self, state: &SystemState) -> bool {
        let mut steps = Vec::new();
        self.steps_of_nodes(state, &mut steps);
        steps.into_iter().any(|it| self.after(state, it).is_some())
    }

    pub fn steps_of_nodes(&self, state: &SystemState, steps: &mut Vec<Step>) {
        let rows = &state.rows;
        let running = rows.in_status(Status::Running);
        let is_due = rows.in_status(Status::Queued).is_some() && running.is_none();
        let reads_first = matches!(self.flaw, Flaw::CutoffFirst | Flaw::ClaimById);
        let stale = running.filter(|it| rows.run(*it).is_stale);
        if let Some(run) = running
            && stale.is_none()
            && !self.is_alive(state, run)
        {
            steps.push(Step::BecomeStale(run));
        }
        for (n, node) in awake(state) {
            if !node.is_closing {
                match node.seen {
                    Some(_) => steps.push(Step::Claim(n)),
                    None if is_due && reads_first => steps.push(Step::ReadQueued(n)),
                    None if is_due => steps.push(Step::Claim(n)),
                    None => {}
                }
                match node.stale {
                    Some(_) => steps.push(Step::ExpireLease(n)),
                    None if stale.is_some() => steps.push(Step::ReadStale(n)),
                    None => {}
                }
                match node.passed_turn {
                    Some(_) => steps.push(Step::TimeOut(n)),
                    None if rows.awaited_turn().is_some() => steps.push(Step::ReadDeadline(n)),
                    None => {}
                }
                if rows.is_generating() && running.is_none() && !is_due {
                    steps.push(Step::CloseStalledRound(n));
                }
            }
            if node.unplanned.is_some() {
                steps.push(Step::Plan(n));
            }
            for held in &node.held {
                self.steps_of_turn(n, node, *held, steps);
            }
            steps.push(Step::Heartbeat(n));
        }
    }

    fn steps_of_turn(&self, n: usize, node: &Node, held: Held, steps: &mut Vec<Step>) {
        match held.stage {
            Stage::Generating if self.flaw == Flaw::LeaseReadBefore => {
                steps.push(Step::Check(n, held));
            }
            Stage::Generating | Stage::Checked => steps.push(Step::Commit(n, held)),
            Stage::Committed => steps.push(Step::PlanNext(n, held)),
            Stage::Releasing => {}
        }
        let releases = matches!(held.stage, Stage::Generating | Stage::Releasing);
        if node.is_closing && releases {
            steps.push(Step::Release(n, held));
        }
    }

    /// Actions of users, and faults.
    pub fn outside_steps(&self, state: &SystemState, steps: &mut Vec<Step>) {
        let (rows, remaining) = (&state.rows, &state.remaining);
        let is_active = [Status::Queued, Status::Running]
            .iter()
            .any(|it| rows.in_status(*it).is_some());
        let waits = rows.awaited_turn().is_some();
        if remaining.stops > 0 && (is_active || waits) {
            steps.push(Step::Stop);
            steps.push(Step::StopKeeping);
        }
        let has_stopped = rows.round.is_some() && !rows.is_generating() && !waits;
        if remaining.resumes > 0 && !is_active && has_stopped {
            steps.push(Step::Resume);
        }
        if remaining.turns > 0 && waits {
            steps.push(Step::TakeTurn);
        }
        let is_running = rows.in_status(Status::Running).is_some();
        if remaining.continues > 0 && !is_running && rows.has_ai_tail() {
            steps.push(Step::Continue);
        }
        for (n, node) in state.nodes.iter().enumerate() {
            if node.life == Life::Asleep {
                steps.push(Step::Wake(n));
            }
        }
        for (n, node) in awake(state) {
            if remaining.posts > 0 && node.unplanned.is_none() {
                steps.push(Step::Post(n));
            }
            if remaining.sleeps > 0 {
                steps.push(Step::Sleep(n));
            }
            let stays =
                |(other, it): (usize, &Node)| other != n && it.life != Life::Dead && !it.is_closing;
            let another_stays = state.nodes.iter().enumerate().any(stays);
            if remaining.crashes > 0 && another_stays {
                steps.push(Step::Crash(n));
            }
            if remaining.closes > 0 && another_stays && !node.is_closing {
                steps.push(Step::Close(n));
            }
            let is_due = rows.in_status(Status::Queued).is_some()
                && rows.in_status(Status::Running).is_none();
            if remaining.unconfirmed > 0 && is_due && !node.is_closing {
                steps.push(Step::ClaimUnconfirmed(n));
            }
            for held in node.held.iter().copied() {
                if remaining.failures > 0 && held.stage == Stage::Generating {
                    steps.push(Step::Fail(n, held));
                }
                if remaining.unconfirmed > 0 && held.stage == Stage::Generating {
                    steps.push(Step::CommitUnconfirmed(n, held));
                }
                if remaining.unconfirmed > 0 && node.is_closing && held.stage != Stage::Committed {
                    steps.push(Step::ReleaseUnconfirmed(n, held));
                }
            }
        }
    }

    /// A node that is awake sends a heartbeat for this run.
    fn is_alive(&self, state: &SystemState, run: u8) -> bool {
        let lease = state.rows.run(run).lease;
        awake(state).any(|(_, node)| node.holds(run, lease) || node.recorded == Some((run, lease)))
    }
}

fn awake(state: &SystemState) -> impl Iterator<Item = (usize, &Node)> {
    let all = state.nodes.iter().enumerate();
    all.filter(|(_, it)| it.is_awake())
}
