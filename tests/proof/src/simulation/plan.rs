//! What one schedule may do, drawn from its seed; and the objects and jobs that all schedules are about.

use std::{collections::BTreeMap, time::Duration};

use fastrand::Rng;
use identity_core::{
    claim::ClaimKey,
    identity::{Contract, ObjectVersion},
};

const CONTRACT: &str = "name = \"simulated\"\nversion = \"1\"\nscheme = \"strict\"\n[select]\ninclude = [\"**/*.shp\"]\n";
pub(super) const MAX_OBJECTS: usize = 3;
pub(super) const MAX_VERSIONS: usize = 4;

/// A bug that is put beside the gate, to see that the simulation finds it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Control {
    /// The worker acknowledges a duplicate of a job that somebody else is at.
    AcknowledgeHeld,
    /// The store says that it wrote `failed`, and leaves the row as it was.
    LoseFailed,
    /// The store writes whatever the condition says.
    IgnorePreconditions,
    /// The store's versions count each row's writes from 1, and foreign writers do not count.
    CountedVersions,
}

impl Control {
    /// Every one, with its name.
    pub const ALL: [(Self, &'static str); 4] = [
        (Self::AcknowledgeHeld, "acknowledge-held"),
        (Self::LoseFailed, "lose-failed"),
        (Self::IgnorePreconditions, "ignore-preconditions"),
        (Self::CountedVersions, "counted-versions"),
    ];
}

/// One schedule's bounds and odds.
#[derive(Debug, Clone)]
pub(super) struct Plan {
    pub(super) control: Option<Control>,
    pub(super) rng: Rng,
    pub(super) lease: Duration,
    pub(super) workers: usize,
    pub(super) objects: usize,
    pub(super) max_attempts: u32,
    /// How often a message is delivered before it goes to the dead-letter queue.
    pub(super) max_receives: u32,
    pub(super) visibility: Duration,
    /// The store fails so many requests in a hundred.
    pub(super) store_faults: u32,
    /// Wall clocks differ by at most this.
    pub(super) skew: Duration,
    /// Whether wall clocks differ by less than what jobs stop before their lease ends, so that no two run at once.
    pub(super) clocks_agree: bool,
    /// How many things go wrong with workers, clocks, rows and objects.
    pub(super) incidents: u32,
    /// So many in a hundred runs succeed, once nothing else goes wrong.
    pub(super) success: u32,
    /// Whether `done` rows go before late workers have gone: attempts then count from 1 again, and only the owner tells
    /// two of them apart. A sink that remembers attempts alone cannot; that it does is not asked of it here.
    pub(super) short_memory: bool,
}

impl Plan {
    pub(super) fn new(seed: u64, control: Option<Control>) -> Self {
        let mut rng = Rng::with_seed(seed);
        let lease = Duration::from_secs([4, 8, 12][rng.usize(..3)]);
        let clocks_agree = rng.u32(..2) == 0;
        let skew = if clocks_agree {
            lease / 10 - Duration::from_millis(20)
        } else {
            lease * 3
        };
        Self {
            control,
            lease,
            workers: rng.usize(2..=4),
            objects: rng.usize(1..=MAX_OBJECTS),
            max_attempts: rng.u32(2..=6),
            max_receives: rng.u32(2..=10),
            visibility: lease * rng.u32(1..=6) / 2,
            store_faults: [0, 3, 10, 30][rng.usize(..4)],
            skew,
            clocks_agree,
            incidents: rng.u32(0..=14),
            success: [95, 75, 40][rng.usize(..3)],
            short_memory: rng.u32(..6) == 0,
            rng,
        }
    }

    /// A job is stopped after this.
    pub(super) fn max_run(&self) -> Duration {
        self.lease * 4
    }

    /// How long a `done` row is kept: longer than any worker is frozen, and than any write is late, unless memory is short.
    pub(super) fn done_ttl(&self) -> Duration {
        if self.short_memory {
            return self.lease / 4;
        }
        self.lease * 24
    }
}

/// A version of an object, by number: the job of one key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct JobName {
    pub(super) object: usize,
    pub(super) version: usize,
}

impl std::fmt::Display for JobName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "o{}v{}", self.object, self.version)
    }
}

/// All objects and versions, and the jobs they are.
#[derive(Debug)]
pub(super) struct Catalogue {
    pub(super) contract: Contract,
    jobs: BTreeMap<ClaimKey, JobName>,
    versions: Vec<(JobName, ClaimKey, ObjectVersion)>,
}

impl Catalogue {
    pub(super) fn new() -> Result<Self, String> {
        let contract = Contract::parse(CONTRACT).map_err(|error| error.to_string())?;
        let mut versions = Vec::new();
        for object in 0..MAX_OBJECTS {
            for version in 0..MAX_VERSIONS {
                let name = JobName { object, version };
                let body = notification(&[(name, true)]);
                let items = identity_core::event::read(&identity_core::event::Delivery::from_body(
                    body.as_bytes(),
                ));
                let item = items.first().map(|item| &item.reading);
                let Some(identity_core::event::Reading::Event(event)) = item else {
                    return Err(format!("no event was read from {body}"));
                };
                let object = event.object_version().ok_or("an event without a token")?;
                let id = contract
                    .deriver()
                    .job_id(&object)
                    .map_err(|refusal| refusal.to_string())?;
                versions.push((name, ClaimKey::from(id), object));
            }
        }
        let jobs = versions
            .iter()
            .map(|(name, key, _)| (key.clone(), *name))
            .collect();
        Ok(Self {
            contract,
            jobs,
            versions,
        })
    }

    pub(super) fn job(&self, key: &ClaimKey) -> Option<JobName> {
        self.jobs.get(key).copied()
    }

    pub(super) fn key(&self, job: JobName) -> &ClaimKey {
        &self.versions[job.object * MAX_VERSIONS + job.version].1
    }

    pub(super) fn version(&self, job: JobName) -> &ObjectVersion {
        &self.versions[job.object * MAX_VERSIONS + job.version].2
    }

    /// Which of the simulation's objects lies there.
    pub(super) fn object(&self, address: &identity_core::identity::ObjectAddress) -> Option<usize> {
        let found = self.versions.iter().find(|v| v.2.address == *address);
        found.map(|(name, ..)| name.object)
    }
}

/// The S3 notification of these puts, each with its ETag or without one.
pub(super) fn notification(puts: &[(JobName, bool)]) -> String {
    let record = |(job, told): &(JobName, bool)| {
        let etag = if *told {
            format!(r#","eTag":"e{}""#, job.version)
        } else {
            String::new()
        };
        format!(
            r#"{{"eventVersion":"2.1","eventSource":"aws:s3","eventName":"ObjectCreated:Put","s3":{{"bucket":{{"name":"geo"}},"object":{{"key":"o{}.shp"{etag}}}}}}}"#,
            job.object
        )
    };
    let records: Vec<String> = puts.iter().map(record).collect();
    format!(r#"{{"Records":[{}]}}"#, records.join(","))
}
