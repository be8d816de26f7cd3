//! How a claim looks: a row of a table, lines for one, JSON for programs.

use identity_core::claim::{
    ClaimKey, Record, RecordedObject, Release, Status, UnixMillis, UnixSeconds,
};
use serde::Serialize;

use crate::{failure::Failure, output::clipped};

/// A claim as JSON. Times are RFC 3339 in UTC.
#[derive(Debug, Serialize)]
struct Json<'a> {
    job_id: &'a str,
    status: &'static str,
    attempt: u32,
    /// How many attempts since the last release do not count.
    uncounted: u32,
    owner: Option<String>,
    claimed_at: String,
    lease_until: Option<String>,
    waiting_until: Option<String>,
    finished_at: Option<String>,
    expires_at: Option<String>,
    uri: Option<String>,
    provider: Option<&'static str>,
    account: Option<&'a str>,
    container: Option<&'a str>,
    key: Option<&'a str>,
    token: Option<String>,
    pipeline: &'a str,
    pipeline_version: &'a str,
    scheme: &'a str,
    redrives: u32,
    reason: Option<&'static str>,
    error: Option<&'a str>,
    result: Option<serde_json::Value>,
    /// An unreadable event's body, with U+FFFD for what is not UTF-8.
    body: Option<String>,
    released_at: Option<String>,
    released_from: Option<&'static str>,
}

/// One line of JSON.
pub(super) fn json(key: &ClaimKey, record: &Record) -> Result<String, Failure> {
    let object = record.object.as_ref();
    let view = Json {
        job_id: key.as_str(),
        status: record.status.as_str(),
        attempt: record.attempt,
        uncounted: record.uncounted,
        owner: record.owner.map(|owner| owner.to_string()),
        claimed_at: seconds(record.claimed_at),
        lease_until: (record.status == Status::Processing).then(|| millis(record.lease_end())),
        waiting_until: record.waiting_until.map(millis),
        finished_at: record.finished_at.map(seconds),
        expires_at: record.expires_at.map(seconds),
        uri: object.map(ToString::to_string),
        provider: object.map(|object| object.provider.as_str()),
        account: object.and_then(|object| object.account.as_deref()),
        container: object.map(|object| object.container.as_str()),
        key: object.map(|object| object.key.as_str()),
        token: object.and_then(token),
        pipeline: &record.pipeline.name,
        pipeline_version: &record.pipeline.version,
        scheme: &record.pipeline.scheme,
        redrives: record.redrives,
        reason: record.reason.map(|reason| reason.as_str()),
        error: record.error.as_deref(),
        result: record.result.as_deref().map(|text| {
            // Another program may have written what is no JSON: it is shown as the text that it is.
            serde_json::from_str(text)
                .unwrap_or_else(|_| serde_json::Value::String(text.to_owned()))
        }),
        body: record
            .body
            .as_deref()
            .map(|body| String::from_utf8_lossy(body).into_owned()),
        released_at: record.released.map(|release| seconds(release.at)),
        released_from: record.released.map(|release| release.from.as_str()),
    };
    serde_json::to_string(&view)
        .map_err(|error| Failure::failed("a claim cannot be written as JSON").because(error))
}

/// The head of a table of claims.
pub(super) const HEAD: [&str; 6] = ["ID", "STATUS", "ATTEMPT", "CLAIMED", "OBJECT", "WHY"];

/// The cells of a table's row, as [`HEAD`] names them.
pub(super) fn row(key: &ClaimKey, record: &Record) -> [String; 6] {
    let why = match (record.reason, &record.error) {
        (Some(reason), Some(error)) => format!("{}: {error}", reason.as_str()),
        (Some(reason), None) => reason.as_str().to_owned(),
        (None, error) => error.clone().unwrap_or_default(),
    };
    [
        key.to_string(),
        record.status.to_string(),
        record.attempt.to_string(),
        seconds(record.claimed_at),
        record
            .object
            .as_ref()
            .map_or_else(|| "-".to_owned(), ToString::to_string),
        clipped(&why, 80),
    ]
}

/// One claim, a line for each thing that is known of it.
pub(crate) fn lines(key: &ClaimKey, record: &Record) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = |name: &str, value: Option<String>| {
        lines.extend(value.map(|value| format!("{name:<10}{}", clipped(&value, 4_096))));
    };
    line("job", Some(key.to_string()));
    line("status", Some(record.status.to_string()));
    let uncounted = match record.uncounted {
        0 => String::new(),
        uncounted => format!(" ({uncounted} of them not counted)"),
    };
    line("attempt", Some(format!("{}{uncounted}", record.attempt)));
    line("object", record.object.as_ref().map(ToString::to_string));
    line("token", record.object.as_ref().and_then(token));
    let pipeline = &record.pipeline;
    line(
        "pipeline",
        Some(format!(
            "{} {} ({})",
            pipeline.name, pipeline.version, pipeline.scheme
        )),
    );
    line("claimed", Some(seconds(record.claimed_at)));
    line(
        "holder",
        record
            .owner
            .filter(|_| record.status == Status::Processing)
            .map(|owner| owner.to_string()),
    );
    line(
        "lease",
        (record.status == Status::Processing)
            .then(|| format!("until {}", millis(record.lease_end()))),
    );
    let again = if record.status == Status::Waiting {
        "waiting"
    } else {
        "not swept"
    };
    line(
        again,
        record
            .waiting_until
            .map(|until| format!("until {}", millis(until))),
    );
    line("ended", record.finished_at.map(seconds));
    line("expires", record.expires_at.map(seconds));
    line(
        "released",
        record
            .released
            .map(|Release { at, from, .. }| format!("{} (was {from})", seconds(at))),
    );
    line(
        "redrives",
        (record.redrives > 0).then(|| record.redrives.to_string()),
    );
    line(
        "reason",
        record.reason.map(|reason| reason.as_str().to_owned()),
    );
    line("error", record.error.clone());
    line("result", record.result.clone());
    line(
        "body",
        record
            .body
            .as_deref()
            .map(|body| String::from_utf8_lossy(body).into_owned()),
    );
    lines
}

fn token(object: &RecordedObject) -> Option<String> {
    object
        .token
        .as_ref()
        .map(|(kind, value)| format!("{}:{value}", kind.as_str()))
}

pub(super) fn seconds(at: UnixSeconds) -> String {
    jiff::Timestamp::from_second(at.0).map_or_else(|_| format!("{} s", at.0), |at| at.to_string())
}

pub(super) fn millis(at: UnixMillis) -> String {
    jiff::Timestamp::from_millisecond(at.0)
        .map_or_else(|_| format!("{} ms", at.0), |at| at.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_told_in_utc_and_impossible_ones_as_numbers() {
        assert_eq!(seconds(UnixSeconds(1_767_323_045)), "2026-01-02T03:04:05Z");
        assert_eq!(
            millis(UnixMillis(1_767_323_045_678)),
            "2026-01-02T03:04:05.678Z"
        );
        assert_eq!(seconds(UnixSeconds(i64::MAX)), format!("{} s", i64::MAX));
    }
}
