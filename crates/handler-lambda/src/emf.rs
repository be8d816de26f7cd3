//! What an invocation did, in numbers: one line in CloudWatch's embedded metric format on standard output, for CloudWatch
//! makes metrics of such lines in a function's log.
//! <https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/CloudWatch_Embedded_Metric_Format_Specification.html>

use std::io::Write as _;

use host::call::Settlement;
use identity_core::claim::UnixMillis;
use serde_json::{Map, Value, json};

const NAMESPACE: &str = "firstclaim";
/// How many values of one metric a line may hold.
const MOST_VALUES: usize = 100;

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
        settlement: &Settlement,
    ) -> Vec<String> {
        let counts = settlement.counted();
        let mut metrics: Vec<_> = counts
            .map(|(name, count)| (name, "Count", count.into()))
            .collect();
        let mut lines = Vec::new();
        for runs in settlement.runs.chunks(MOST_VALUES) {
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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use host::call::Run;
    use identity_core::{claim::ClaimKey, gate::Counts};

    use super::*;

    #[test]
    fn a_line_declares_each_metric_that_it_holds() {
        let metrics = Metrics {
            function: "handler".to_owned(),
            pipeline: "scenes 1.0.0".to_owned(),
        };
        let run = Run {
            key: ClaimKey::from_digest([7; 32]),
            attempt: 1,
            took: Duration::from_micros(1_999),
        };
        let settlement = Settlement {
            answers: Vec::new(),
            runs: vec![run; MOST_VALUES + 1],
            counts: Counts {
                duplicate: 3,
                ..Counts::default()
            },
            claimed: 101,
        };
        let lines = metrics.invocation("r1", UnixMillis(7), &settlement);
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
