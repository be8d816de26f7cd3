//! What an invocation did, in numbers: one line in CloudWatch's embedded metric format on standard output, for CloudWatch
//! makes metrics of such lines in a function's log.
//! <https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/CloudWatch_Embedded_Metric_Format_Specification.html>

use std::{
    collections::HashSet,
    io::Write as _,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use identity_core::{
    claim::{ClaimKey, Lease, Reason, UnixMillis},
    gate::{ItemAnswer, Outcome},
    host::Clock,
    job::{Job, JobContext, JobError, Output},
};
use serde_json::{Map, Value, json};

const NAMESPACE: &str = "firstclaim";
/// How many values of one metric a line may hold.
const MOST_VALUES: usize = 100;

/// How often each thing happened in one invocation.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) done: u64,
    pub(crate) duplicate: u64,
    pub(crate) held: u64,
    pub(crate) failed: u64,
    pub(crate) rejected: u64,
    pub(crate) collapsed: u64,
    pub(crate) ignored: u64,
    /// Not whole yet, and recorded as waiting.
    pub(crate) waiting: u64,
    pub(crate) unavailable: u64,
    /// Attempts that were won here.
    pub(crate) claimed: u64,
}

impl Counts {
    /// Counts what became of the events of a delivery, whose jobs ran so.
    pub(crate) fn of(answers: &[ItemAnswer], runs: &[Run]) -> Self {
        let mut counts = Self::default();
        // Equal events of one delivery share an attempt, and not every attempt comes to a run.
        let mut won: HashSet<_> = runs.iter().map(|run| (&run.key, run.attempt)).collect();
        for settled in answers.iter().flat_map(|answer| &answer.settled) {
            let count = match &settled.outcome {
                Outcome::Done { .. } => &mut counts.done,
                Outcome::Duplicate => &mut counts.duplicate,
                Outcome::Held { .. } => &mut counts.held,
                Outcome::Failed { .. } | Outcome::LeaseLost { .. } => &mut counts.failed,
                Outcome::Rejected {
                    reason: Reason::Collapsed,
                    ..
                } => &mut counts.collapsed,
                Outcome::Rejected { .. } => &mut counts.rejected,
                Outcome::Ignored(_) => &mut counts.ignored,
                Outcome::Waiting { .. } => &mut counts.waiting,
                Outcome::Unavailable { .. } => &mut counts.unavailable,
            };
            *count += 1;
            if let (Some(key), Some(attempt)) = (&settled.key, settled.outcome.attempt()) {
                won.insert((key, attempt));
            }
        }
        counts.claimed = u64::try_from(won.len()).unwrap_or(u64::MAX);
        counts
    }

    /// The counts by their names.
    pub(crate) fn named(&self) -> [(&'static str, u64); 10] {
        [
            ("done", self.done),
            ("duplicate", self.duplicate),
            ("held", self.held),
            ("failed", self.failed),
            ("rejected", self.rejected),
            ("collapsed", self.collapsed),
            ("ignored", self.ignored),
            ("waiting", self.waiting),
            ("unavailable", self.unavailable),
            ("claimed", self.claimed),
        ]
    }
}

/// What every line of this process says of itself.
#[derive(Debug)]
pub(crate) struct Metrics {
    /// The function's name, the one dimension.
    pub(crate) function: String,
    /// The pipeline, as a property: it can be searched for and costs no metric of its own.
    pub(crate) pipeline: String,
}

impl Metrics {
    /// The lines for one invocation: counts, and how long each job ran. A line holds so many values of a metric and no
    /// more; what is left has further lines.
    pub(crate) fn invocation(
        &self,
        request_id: &str,
        now: UnixMillis,
        counts: &Counts,
        runs: &[Run],
    ) -> Vec<String> {
        let mut metrics: Vec<(&str, &str, Value)> = counts
            .named()
            .into_iter()
            .map(|(name, count)| (name, "Count", count.into()))
            .collect();
        let mut lines = Vec::new();
        for runs in runs.chunks(MOST_VALUES) {
            let millis = runs
                .iter()
                .map(|run| u64::try_from(run.took.as_millis()).unwrap_or(u64::MAX));
            let millis = Value::from(millis.collect::<Vec<_>>());
            metrics.push(("job_milliseconds", "Milliseconds", millis));
            lines.push(self.line(request_id, now, std::mem::take(&mut metrics)));
        }
        if lines.is_empty() {
            lines.push(self.line(request_id, now, metrics));
        }
        lines
    }

    /// The line for one sweep: how many claims it found stuck.
    pub(crate) fn sweep(&self, request_id: &str, now: UnixMillis, stuck: u64) -> String {
        self.line(request_id, now, vec![("stuck", "Count", stuck.into())])
    }

    fn line(&self, request_id: &str, now: UnixMillis, metrics: Vec<(&str, &str, Value)>) -> String {
        let declared: Vec<Value> = metrics
            .iter()
            .map(|(name, unit, _)| json!({"Name": name, "Unit": unit}))
            .collect();
        let mut line = Map::new();
        line.insert(
            "_aws".to_owned(),
            json!({
                "Timestamp": now.0,
                "CloudWatchMetrics": [{
                    "Namespace": NAMESPACE,
                    "Dimensions": [["FunctionName"]],
                    "Metrics": declared,
                }],
            }),
        );
        line.insert("FunctionName".to_owned(), self.function.as_str().into());
        line.insert("pipeline".to_owned(), self.pipeline.as_str().into());
        line.insert("request_id".to_owned(), request_id.into());
        for (name, _, value) in metrics {
            line.insert(name.to_owned(), value);
        }
        Value::Object(line).to_string()
    }
}

/// Writes a line where CloudWatch finds it.
pub(crate) fn emit(line: &str) {
    // Without standard output there is no log to write to.
    let _ = writeln!(std::io::stdout().lock(), "{line}");
}

/// A job whose runs are timed, those that were stopped, too.
#[derive(Debug)]
pub(crate) struct TimedJob {
    job: Arc<dyn Job>,
    clock: Arc<dyn Clock>,
    runs: Mutex<Vec<Run>>,
}

/// A run that has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Run {
    pub(crate) key: ClaimKey,
    pub(crate) attempt: u32,
    pub(crate) took: Duration,
}

impl TimedJob {
    /// This job, timed.
    pub(crate) fn new(job: Arc<dyn Job>, clock: Arc<dyn Clock>) -> Self {
        Self {
            job,
            clock,
            runs: Mutex::default(),
        }
    }

    /// The runs that have ended since this was asked last.
    pub(crate) fn take(&self) -> Vec<Run> {
        std::mem::take(&mut self.runs.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Notes a run when it ends or is dropped.
struct Running<'a> {
    of: &'a TimedJob,
    lease: &'a Lease,
    started: Duration,
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        let run = Run {
            key: self.lease.key().clone(),
            attempt: self.lease.attempt(),
            took: self.of.clock.monotonic().saturating_sub(self.started),
        };
        let mut runs = self.of.runs.lock().unwrap_or_else(PoisonError::into_inner);
        runs.push(run);
    }
}

#[async_trait]
impl Job for TimedJob {
    fn reads_objects(&self) -> bool {
        self.job.reads_objects()
    }

    async fn run(&self, lease: &Lease, context: &JobContext) -> Result<Output, JobError> {
        let _running = Running {
            of: self,
            lease,
            started: self.clock.monotonic(),
        };
        self.job.run(lease, context).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_declares_each_metric_that_it_holds() {
        let metrics = Metrics {
            function: "handler".to_owned(),
            pipeline: "scenes 1.0.0".to_owned(),
        };
        let counts = Counts {
            duplicate: 3,
            claimed: 101,
            ..Counts::default()
        };
        let run = Run {
            key: ClaimKey::from_digest([7; 32]),
            attempt: 1,
            took: Duration::from_micros(1_999),
        };
        let jobs = vec![run; MOST_VALUES + 1];
        let lines = metrics.invocation("r1", UnixMillis(7), &counts, &jobs);
        assert!(lines.iter().all(|line| !line.contains('\n')));
        let [line, more] = lines.as_slice() else {
            panic!("{lines:?}")
        };
        let more: Value = serde_json::from_str(more).unwrap();
        assert_eq!(more["job_milliseconds"], json!([1]));
        assert_eq!(more["duplicate"], Value::Null, "counted once");
        let line: Value = serde_json::from_str(line).unwrap();
        let directive = &line["_aws"]["CloudWatchMetrics"][0];
        assert_eq!(line["_aws"]["Timestamp"], 7);
        assert_eq!(directive["Namespace"], "firstclaim");
        assert_eq!(line["FunctionName"], "handler");
        assert_eq!(line["duplicate"], 3);
        assert_eq!(line["claimed"], 101);
        assert_eq!(line["job_milliseconds"], json!(vec![1; MOST_VALUES]));
        let declared = directive["Metrics"].as_array().unwrap();
        assert_eq!(declared.len(), 11);
        for metric in declared {
            assert!(
                !line[metric["Name"].as_str().unwrap()].is_null(),
                "{metric}"
            );
        }
        for dimension in directive["Dimensions"][0].as_array().unwrap() {
            assert!(line[dimension.as_str().unwrap()].is_string(), "{dimension}");
        }
    }
}
