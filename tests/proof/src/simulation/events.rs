//! The course of one schedule: who delivers, what goes wrong meanwhile, and the quiet at its end.

use std::{sync::Arc, time::Duration};

use identity_core::claim::{Record, Status};
use tokio::time::Instant;

use super::{
    plan::{JobName, MAX_VERSIONS},
    process::Process,
    worker::{Slot, lives},
    world::{Place, State, World},
};

/// After this time without faults every job must have ended. Shorter than the hour for which a row without a lease is
/// honoured: such a row must not be ours.
const PATIENCE: Duration = Duration::from_secs(3_000);

/// Plays the schedule of `world` to its end.
pub(super) async fn play(world: &Arc<World>) {
    world.with(|state| {
        for object in 0..world.plan.objects {
            let delay = state.up_to(world.plan.lease);
            send(state, &[JobName { object, version: 0 }], delay);
        }
    });
    let slots: Vec<Slot> = (0..world.plan.workers).map(|_| Slot::default()).collect();
    for (number, slot) in slots.iter().enumerate() {
        tokio::task::spawn_local(lives(world.clone(), number, slot.clone()));
    }
    tokio::spawn(sweep(world.clone()));
    let incidents = tokio::spawn(incidents(world.clone(), slots));
    let mut calm_since = None;
    loop {
        tokio::time::sleep(world.plan.lease / 2).await;
        if calm_since.is_none() && incidents.is_finished() {
            calm_since = Some(Instant::now());
            world.with(|state| calm_down(world, state));
        }
        let over = world.with(|state| {
            let late = calm_since.is_some_and(|since| since.elapsed() > PATIENCE);
            if late && state.violation.is_none() {
                let unended = world.unended(state);
                let unended: Vec<String> = unended.iter().map(ToString::to_string).collect();
                state.violated(format!(
                    "not at rest after {PATIENCE:?}; not ended: {unended:?}"
                ));
            }
            let over = state.violation.is_some() || calm_since.is_some() && is_quiet(world, state);
            state.over |= over;
            state.ledger.lasted = world.elapsed();
            over
        });
        if over {
            return;
        }
    }
}

/// From now on nothing goes wrong. What left the queue before its job had a row is sent again, as a person would; of all
/// else that left it the sweeper alone takes care.
fn calm_down(world: &World, state: &mut State) {
    state.calm = true;
    state.tell(
        "-",
        "nothing goes wrong any more; the dead-letter queue is sent again",
    );
    for message in &mut state.messages {
        let rows = &state.rows;
        let swept =
            |(job, told): &(JobName, bool)| *told && rows.contains_key(world.catalogue.key(*job));
        if message.place == Place::Dead && !message.puts.iter().all(swept) {
            message.place = Place::Queued;
        }
    }
}

/// Nothing to deliver, nothing at work, and every job that an event named has ended.
fn is_quiet(world: &World, state: &State) -> bool {
    let queued = state
        .messages
        .iter()
        .any(|message| message.place == Place::Queued);
    !queued && state.ledger.is_idle() && world.unended(state).is_empty()
}

/// An event of these versions; now and then one that does not tell which version.
fn send(state: &mut State, jobs: &[JobName], delay: Duration) {
    let puts = jobs.iter().map(|job| (*job, !state.chance(10))).collect();
    state.send(puts, delay);
}

/// The sweeper: sends the event of every row again that has not ended and whose lease is over.
async fn sweep(world: Arc<World>) {
    loop {
        let pause = world.plan.lease * if world.plan.short_memory { 1 } else { 4 } / 2;
        tokio::time::sleep(pause).await;
        world.with(|state| {
            if world.plan.short_memory {
                expire(&world, state);
            }
            let now = world.now();
            let stuck = |record: &Record| match record.status {
                Status::Processing => record.lease_end() <= now,
                Status::Failed | Status::Waiting => true,
                Status::Done | Status::Rejected => false,
            };
            let stuck: Vec<JobName> = state
                .rows
                .iter()
                .filter(|(_, row)| stuck(&row.record))
                .filter_map(|(key, _)| world.catalogue.job(key))
                .collect();
            for job in stuck {
                let told = |message: &super::world::Message| {
                    message.place == Place::Queued && message.puts.contains(&(job, true))
                };
                if !state.messages.iter().any(told) {
                    state.saw("swept");
                    state.tell("sweeper", format_args!("sends {job} again"));
                    state.send(vec![(job, true)], Duration::ZERO);
                }
            }
        });
    }
}

/// What goes wrong, one after another.
async fn incidents(world: Arc<World>, slots: Vec<Slot>) {
    for _ in 0..world.plan.incidents {
        let pause = world.with(|state| {
            let longest = if state.chance(10) {
                world.plan.done_ttl()
            } else {
                world.plan.lease
            };
            state.up_to(longest)
        });
        tokio::time::sleep(pause).await;
        let slot = world.with(|state| state.rng.usize(..slots.len()));
        let worker = slots[slot].lock().ok().and_then(|slot| slot.clone());
        let kinds = if world.plan.short_memory { 2..9 } else { 0..13 };
        match world.with(|state| state.rng.u32(kinds)) {
            0..2 => {
                if let Some((process, _)) = worker {
                    note(&world, &process.name, "crash");
                    process.kill();
                }
            }
            2..4 => {
                if let Some((process, _)) = worker.filter(|(process, _)| process.is_running()) {
                    freeze(&world, &process);
                }
            }
            4 => {
                if let Some((process, gate)) = worker.filter(|(process, _)| process.is_running()) {
                    note(&world, &process.name, "stop");
                    gate.stop();
                }
            }
            5 => {
                if let Some((process, _)) = worker {
                    note(&world, &process.name, "clock jump");
                    process.jump(world.with(State::wall_offset));
                }
            }
            6 => world.with(|state| flip(&world, state)),
            7 => world.with(|state| expire(&world, state)),
            8..11 => world.with(|state| overwrite(&world, state)),
            11 => world.with(|state| remove(&world, state)),
            _ => world.with(|state| duplicate(&world, state)),
        }
    }
}

fn note(world: &World, who: &str, what: &'static str) {
    world.with(|state| {
        state.fault(what);
        state.tell(who, what);
    });
}

fn freeze(world: &World, process: &Process) {
    let lasts = world.with(|state| {
        let lasts = state.up_to(world.plan.lease * 3);
        state.fault("freeze");
        state.tell(&process.name, format_args!("frozen for {lasts:?}"));
        lasts
    });
    process.freeze(Instant::now() + lasts);
}

/// A program that knows nothing of claims sets a row to done.
fn flip(world: &World, state: &mut State) {
    let open = state
        .rows
        .iter()
        .filter(|(_, row)| !row.record.status.is_end());
    let keys: Vec<_> = open.map(|(key, _)| key.clone()).collect();
    let Some(key) = state.rng.choice(keys) else {
        return;
    };
    let Some(row) = state.rows.get(&key).cloned() else {
        return;
    };
    let job = world
        .catalogue
        .job(&key)
        .map(|job| job.to_string())
        .unwrap_or_default();
    state.fault("foreign done");
    state.tell("foreign", format_args!("sets {job} to done"));
    let record = Record {
        status: Status::Done,
        ..row.record
    };
    let counted = world.plan.control == Some(super::Control::CountedVersions);
    state.write(&key, record, counted.then_some(row.version));
    state.ledger.flipped(&key);
}

/// The store deletes the rows that have expired.
fn expire(world: &World, state: &mut State) {
    let now = world.now().seconds();
    let expired = state.rows.iter().filter(|(_, row)| {
        row.record.status == Status::Done && row.record.expires_at.is_some_and(|at| at < now)
    });
    let keys: Vec<_> = expired.map(|(key, _)| key.clone()).collect();
    for key in keys {
        state.fault("expired row deleted");
        let job = world
            .catalogue
            .job(&key)
            .map(|job| job.to_string())
            .unwrap_or_default();
        state.tell("store", format_args!("deletes {job}, which has expired"));
        state.rows.remove(&key);
        state.ledger.deleted(&key);
    }
}

/// An object is written anew, with or without an event.
fn overwrite(world: &World, state: &mut State) {
    let number = state.rng.usize(..world.plan.objects);
    let object = &mut state.objects[number];
    if object.newest + 1 >= MAX_VERSIONS {
        return;
    }
    object.newest += 1;
    object.current = Some(object.newest);
    let job = JobName {
        object: number,
        version: object.newest,
    };
    state.fault("object overwritten");
    state.tell("source", format_args!("writes {job}"));
    if state.chance(65) {
        let delay = state.up_to(world.plan.lease);
        send(state, &[job], delay);
    }
}

fn remove(world: &World, state: &mut State) {
    let number = state.rng.usize(..world.plan.objects);
    let object = &mut state.objects[number];
    (object.current, object.was_gone) = (None, true);
    state.fault("object removed");
    state.tell("source", format_args!("removes o{number}"));
}

/// The queue delivers twice, or two events come in one message.
fn duplicate(world: &World, state: &mut State) {
    let all = 0..state.messages.len();
    let (Some(one), Some(other)) = (state.rng.choice(all.clone()), state.rng.choice(all)) else {
        return;
    };
    let mut puts = state.messages[one].puts.clone();
    if state.chance(50) {
        puts.extend(state.messages[other].puts.clone());
    }
    let delay = state.up_to(world.plan.lease);
    state.fault("message duplicated");
    state.tell("queue", format_args!("delivers {one} once more"));
    state.send(puts, delay);
}
