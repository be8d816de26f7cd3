//! What must never be, and what must be possible.

use identity_core::{claim::Reason, gate::Outcome};
use stateright::Property;

use super::{
    Action, State, World,
    state::{Recovered, Violation, Worker},
};

type Condition = fn(&World, &State) -> bool;

/// What must hold in every state.
///
/// Three things end a record that our own attempts do not, and each is an exception of its own: another program's flip
/// to `done` may come over anything (and then nothing of ours comes over it), a `done` row is deleted after its
/// `expires_at` and the job begins anew, and an operator's release takes an end back.
pub const NEVER: [(&str, Condition); 9] = [
    ("of a job's attempts one end is recorded", |_, state| {
        state.violation != Some(Violation::TwoEnds)
    }),
    ("an end never changes", |_, state| {
        state.violation != Some(Violation::EndChanged)
    }),
    ("acknowledged means recorded", |_, state| {
        state.violation != Some(Violation::AcknowledgedUnrecorded)
    }),
    ("a failure that is told is recorded", |_, state| {
        state.violation != Some(Violation::FailureUnrecorded)
    }),
    ("attempts only grow", |_, state| {
        state.violation != Some(Violation::AttemptRepeated)
    }),
    ("a zombie records nothing", |_, state| {
        state.violation != Some(Violation::ZombieWrote)
    }),
    ("a claim wins only what it wrote", |_, state| {
        state.violation != Some(Violation::WonAnothers)
    }),
    (
        "a release gives a job back, attempts and all",
        |_, state| state.violation != Some(Violation::ReleaseEnded),
    ),
    ("in the end every job has ended", every_job_has_ended),
];

/// What must be possible in some configuration.
pub const SOMETIMES: [(&str, Condition); 7] = [
    ("a dead holder's job is taken over", |_, state| {
        won(state, |attempt, failed, _| attempt > 1 && !failed)
    }),
    ("a failed job is tried again", |_, state| {
        won(state, |attempt, failed, _| attempt > 1 && failed)
    }),
    ("a claim whose reply was lost is won", |_, state| {
        won(state, |_, _, recovered| recovered)
    }),
    ("a zombie is refused", |_, state| {
        state
            .workers
            .iter()
            .any(|worker| matches!(&**worker, Worker::Answering { refused: true, .. }))
    }),
    ("a duplicate is skipped", |_, state| {
        told(state, |outcome| *outcome == Outcome::Duplicate)
    }),
    ("a held duplicate is delivered again", |_, state| {
        told(state, |outcome| matches!(outcome, Outcome::Held { .. }))
    }),
    (
        "a job whose attempts are used up is rejected",
        |_, state| {
            told(state, |outcome| {
                matches!(
                    outcome,
                    Outcome::Rejected {
                        reason: Reason::Exhausted,
                        ..
                    }
                )
            })
        },
    ),
];

pub(super) fn all() -> Vec<Property<World>> {
    let never = NEVER
        .iter()
        .map(|(name, condition)| Property::always(name, *condition));
    never
        .chain(
            SOMETIMES
                .iter()
                .map(|(name, condition)| Property::sometimes(name, *condition)),
        )
        .collect()
}

/// `stateright`'s own `eventually` does not see cycles and joins; the world has an end, so it is looked at there. It is
/// there when nothing is bound to happen any more: nobody may count on a second delivery, or on another program.
fn every_job_has_ended(world: &World, state: &State) -> bool {
    let ended = state.jobs.iter().all(|job| match &job.row {
        Some(row) => row.record.status.is_end(),
        None => job.forgotten,
    });
    ended || state.violation.is_some() || {
        let mut next = Vec::new();
        world.possible(state, &mut next);
        next.into_iter().any(Action::is_bound_to_happen)
    }
}

/// Whether a worker holds a claim of this attempt, after a failure or not, won by looking or not.
fn won(state: &State, wanted: fn(u32, bool, bool) -> bool) -> bool {
    state.workers.iter().any(|worker| match &**worker {
        Worker::Working(hold, Recovered(recovered)) => wanted(
            hold.stored.record.attempt,
            hold.stored.record.error.is_some(),
            *recovered,
        ),
        _ => false,
    })
}

fn told(state: &State, wanted: fn(&Outcome) -> bool) -> bool {
    state.workers.iter().any(|worker| match &**worker {
        Worker::Answering { outcome, .. } => wanted(outcome),
        _ => false,
    })
}
