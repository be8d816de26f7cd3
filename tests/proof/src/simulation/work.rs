//! What a gate runs and reads: jobs that take their time and end in every way, and the objects they are about.

use std::{num::NonZeroU32, sync::Arc};

use async_trait::async_trait;
use identity_core::{
    claim::{ClaimKey, Lease},
    host::Clock as _,
    identity::{ObjectAddress, ObjectVersion, Provider},
    job::{Job, JobContext, JobError, Output},
    object::{Head, Listed, ObjectError, ObjectStore, ObjectStream},
};

use super::{plan::JobName, process::Process, world::World};

/// The object store, through one process's connection.
#[derive(Debug)]
pub(super) struct Objects(pub(super) Arc<Process>);

#[async_trait]
impl ObjectStore for Objects {
    fn reads(&self, provider: Provider) -> bool {
        provider == Provider::S3
    }

    async fn head(&self, address: &ObjectAddress) -> Result<Option<Head>, ObjectError> {
        self.0.pass().await;
        let world = &self.0.world;
        let latency = world.with(|state| state.millis(1, 60));
        tokio::time::sleep(latency).await;
        let object = world.catalogue.object(address);
        let current = world.with(|state| {
            if !state.calm && state.chance(world.plan.store_faults) {
                state.fault("object store away");
                return None;
            }
            let current = object.and_then(|object| state.objects.get(object)?.current);
            state.tell(&self.0.name, format_args!("head: {current:?}"));
            Some(current)
        });
        self.0.pass().await;
        let Some(current) = current else {
            return Err(ObjectError::unavailable(address, "503"));
        };
        Ok(object.zip(current).map(|(object, version)| {
            let token = world
                .catalogue
                .version(JobName { object, version })
                .token
                .clone();
            Head {
                etag: Some(token.clone()),
                token,
                size: 1,
            }
        }))
    }

    async fn read(&self, _: &ObjectVersion) -> Result<ObjectStream, ObjectError> {
        Err(ObjectError::Changed)
    }

    async fn list(
        &self,
        prefix: &ObjectAddress,
        _: NonZeroU32,
    ) -> Result<Vec<Listed>, ObjectError> {
        Err(ObjectError::unavailable(prefix, "nothing here lists"))
    }
}

/// The job, in one process.
#[derive(Debug)]
pub(super) struct Work(pub(super) Arc<Process>);

/// A run; ends when it is dropped, as the gate stops jobs.
struct Running<'a> {
    process: &'a Process,
    lease: &'a Lease,
    id: u64,
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        if self.process.is_dead() {
            return;
        }
        let confirmed_until = self.lease.confirmed_until();
        let left = confirmed_until.checked_sub(self.process.monotonic());
        self.process
            .world
            .run_stopped(self.lease.key(), self.id, left);
    }
}

/// How a run ends.
#[derive(Debug, Clone, Copy)]
enum Ending {
    Success,
    Failure,
    Rejection,
    Panic,
}

impl Work {
    fn name(&self, key: &ClaimKey) -> Option<JobName> {
        self.0.world.catalogue.job(key)
    }

    fn is_current(&self, name: Option<JobName>) -> bool {
        let current = |name: JobName| {
            let current = self
                .0
                .world
                .with(|state| state.objects[name.object].current);
            current == Some(name.version)
        };
        name.is_some_and(current)
    }
}

fn draw(world: &World) -> (std::time::Duration, Ending) {
    world.with(|state| {
        let lasts = match state.rng.u32(..20) {
            0..14 => state.millis(1, 400),
            14..18 => state.up_to(world.plan.lease * 3 / 2),
            _ => state.up_to(world.plan.lease * 5),
        };
        let ending = if state.chance(world.plan.success) {
            Ending::Success
        } else {
            match state.rng.u32(..8) {
                0 => Ending::Rejection,
                1 | 2 => Ending::Panic,
                _ => Ending::Failure,
            }
        };
        (lasts, ending)
    })
}

#[async_trait]
impl Job for Work {
    fn reads_objects(&self) -> bool {
        true
    }

    async fn run(&self, lease: &Lease, context: &JobContext) -> Result<Output, JobError> {
        self.0.pass().await;
        let (process, world) = (&self.0, &self.0.world);
        let (key, attempt) = (lease.key(), lease.attempt());
        let id = world.run_started(process, key, lease.owner(), attempt);
        let _running = Running { process, lease, id };
        let name = self.name(key);
        let named = name.is_some_and(|name| *world.catalogue.version(name) == context.object);
        let (lasts, ending) = draw(world);
        world.with(|state| {
            if !named {
                state.violated("a job runs for an object that is not its own".to_owned());
            }
            let job = name.map(|name| name.to_string()).unwrap_or_default();
            state.tell(
                &process.name,
                format_args!("run {job} attempt {attempt}: {ending:?} in {lasts:?}"),
            );
        });
        if !self.is_current(name) {
            return Err(JobError::SourceChanged);
        }
        tokio::time::sleep(lasts).await;
        process.pass().await;
        match ending {
            Ending::Success if !self.is_current(name) => Err(JobError::SourceChanged),
            Ending::Success => {
                world.effect(key, attempt, &process.name);
                let after = world.with(|state| state.millis(0, 50));
                tokio::time::sleep(after).await;
                process.pass().await;
                Ok(Output::default())
            }
            Ending::Failure => Err(JobError::retryable("exit code 1")),
            Ending::Rejection => Err(JobError::permanent("exit code 65")),
            // As a panic does, but without a message on the terminal.
            Ending::Panic => std::panic::resume_unwind(Box::new("out of luck")),
        }
    }
}
