//! What a gate tells people: warnings about duplicates, which part failed, and what was not wanted.

use std::{
    io,
    sync::{Arc, Mutex},
};

use tracing::subscriber::DefaultGuard;

use super::bench::{Bench, STRICT, item, put};
use crate::{
    claim::{ClaimError, StoreError},
    gate::{AllowList, NoJob, Outcome, outcome::Part, part_of},
};

/// The lines that are logged while the guard lives, by this thread.
#[derive(Debug, Clone, Default)]
pub(super) struct Log(Arc<Mutex<Vec<u8>>>);

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Log {
    pub(super) fn start() -> (Self, DefaultGuard) {
        let log = Self::default();
        let writer = log.clone();
        let subscriber = tracing_subscriber::fmt()
            .with_ansi(false)
            .with_writer(move || writer.clone())
            .finish();
        (log, tracing::subscriber::set_default(subscriber))
    }

    /// Those that say this, since the last look.
    pub(super) fn saying(&self, words: &str) -> Vec<String> {
        let text = std::mem::take(&mut *self.0.lock().unwrap());
        let text = String::from_utf8(text).unwrap();
        let lines = text.lines().filter(|line| line.contains(words));
        lines.map(str::to_owned).collect()
    }
}

const FOLDED: &str = "two spellings";
const CHANGED: &str = "contract changed";

#[tokio::test(start_paused = true)]
async fn two_spellings_of_one_job_are_told_with_both_and_a_plain_duplicate_is_not() {
    let (log, _guard) = Log::start();
    let bench = Bench {
        contract: "name = \"n\"\nversion = \"1\"\nscheme = \"reference\"\n",
        ..Bench::new(&[])
    };
    let gate = bench.gate();
    for _ in 0..2 {
        gate.settle(&put("a/b.shp", "e1")).await;
        assert_eq!(log.saying(FOLDED), Vec::<String>::new());
    }
    gate.settle(&put("a//b.shp", "e1")).await;
    let told = log.saying(FOLDED);
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(
        told[0].contains("s3://geo/a/b.shp") && told[0].contains("a//b.shp"),
        "{told:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_contract_that_changed_under_its_version_is_told_once_by_each_process() {
    let (log, _guard) = Log::start();
    let bench = Bench::new(&[]);
    let gate = bench.gate();
    for _ in 0..2 {
        gate.settle(&put("a.shp", "e1")).await;
    }
    assert_eq!(log.saying(CHANGED), Vec::<String>::new());
    let changed = Bench {
        contract: Box::leak(format!("{STRICT}# another job\n").into_boxed_str()),
        store: bench.store.clone(),
        entropy: bench.entropy.clone(),
        ..Bench::new(&[])
    };
    let gate = changed.gate();
    for told in [1, 0] {
        let settled = gate.settle(&put("a.shp", "e1")).await;
        assert_eq!(settled.outcome, Outcome::Duplicate);
        assert_eq!(log.saying(CHANGED).len(), told);
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_not_whole_yet_waits_only_if_it_could_become_a_job_here() {
    let bench = Bench {
        allow: AllowList::parse("acct/geo").unwrap(),
        ..Bench::new(&[])
    };
    let gate = bench.gate();
    let created = |container: &str, name: &str| {
        item(&format!(
            r#"{{"eventType":"Microsoft.Storage.BlobCreated","subject":"/blobServices/default/containers/{container}/blobs/{name}","data":{{"api":"CreateFile","contentLength":0,"eTag":"0x1","url":"https://acct.blob.core.windows.net/{container}/{name}"}}}}"#
        ))
    };
    for (container, name) in [("geo", "a.tmp"), ("other", "a.shp"), ("other", "a.tmp")] {
        let settled = gate.settle(&created(container, name)).await;
        assert_eq!(
            settled.outcome,
            Outcome::Ignored(NoJob::NotSelected),
            "{container} {name}"
        );
    }
    let settled = gate.settle(&created("geo", "a.shp")).await;
    assert!(
        matches!(settled.outcome, Outcome::Waiting { .. }),
        "{settled:?}"
    );
}

#[test]
fn the_part_that_failed_a_claim_is_told() {
    let unavailable = StoreError::Unavailable {
        store: "test".into(),
        doing: "asking",
        source: "connection refused".into(),
    };
    let invalid = StoreError::Invalid {
        store: "test".into(),
        what: "row".into(),
        expected: "a claim",
        got: "none".into(),
    };
    for (error, part) in [
        (ClaimError::Store(unavailable), Part::ClaimStore),
        (ClaimError::Store(invalid), Part::Claim),
        (ClaimError::Entropy(io::Error::other("none")), Part::Process),
    ] {
        assert_eq!(part_of(&error), part, "{error}");
    }
}
