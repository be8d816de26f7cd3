//! Vectors: requests with the ID, key or refusal that they must give, in JSON that any language's implementation can run.
//!
//! `tests/vectors/README.md` describes the format. A file without rows, a row of another shape and a row that expects
//! nothing do not pass.

mod request;
mod upload;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::{JobId, Scheme};

pub use request::{Answer, Request, RequestError};
pub use upload::{UploadAnswer, UploadRequest};

/// How a vectors file went.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    /// The number of rows that gave what they must.
    pub passed: usize,
    /// The others, in the file's order.
    pub failures: Vec<Failure>,
}

/// A row that gave something else than it must.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// The row's name, or `row N`, counted from 1.
    pub name: String,
    /// What it gave.
    pub got: String,
    /// What it must give.
    pub expected: String,
}

/// Why a text is no vectors file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum VectorsError {
    /// It is not JSON, or not of the shape `{"scheme", "source"?, "vectors"}`.
    #[error("the vectors file cannot be read")]
    Shape(#[source] serde_json::Error),
    /// It is of a scheme that does not exist.
    #[error("scheme: expected strict, reference or ingest, got {0:?}")]
    UnknownScheme(String),
    /// It has no rows, so that it would pass without any.
    #[error("the vectors file has no rows")]
    NoRows,
    /// It has rows of upload keys, and nothing was given that reads bundles.
    #[error("its rows name bundles of files, and no folder was given that they lie in")]
    NoBundles,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File<'a> {
    scheme: String,
    /// Where the answers come from, for people.
    #[serde(default, rename = "source")]
    _source: Option<String>,
    #[serde(borrow)]
    vectors: Vec<&'a RawValue>,
}

/// How the bundle that a row names is answered; if it cannot be, why, in words.
type Bundles<'a> = dyn FnMut(&UploadRequest) -> Result<UploadAnswer, String> + 'a;

/// Runs the rows of a vectors file of job IDs.
///
/// # Errors
///
/// A [`VectorsError`] if it is none, [`VectorsError::NoBundles`] if it is of upload keys; a row of another shape is a
/// [`Failure`].
pub fn run(json_text: &str) -> Result<Report, VectorsError> {
    run_rows(json_text, None)
}

/// Runs the rows of a vectors file of job IDs or upload keys. This crate reads no files, so `bundles` answers for the latter.
///
/// # Errors
///
/// A [`VectorsError`] if it is none; a row of another shape, and a bundle that is not answered, is a [`Failure`].
pub fn run_with_bundles(
    json_text: &str,
    mut bundles: impl FnMut(&UploadRequest) -> Result<UploadAnswer, String>,
) -> Result<Report, VectorsError> {
    run_rows(json_text, Some(&mut bundles))
}

fn run_rows(
    json_text: &str,
    mut bundles: Option<&mut Bundles<'_>>,
) -> Result<Report, VectorsError> {
    let file: File<'_> = serde_json::from_str(json_text).map_err(VectorsError::Shape)?;
    let scheme = Scheme::from_name(&file.scheme)
        .ok_or_else(|| VectorsError::UnknownScheme(file.scheme.clone()))?;
    if file.vectors.is_empty() {
        return Err(VectorsError::NoRows);
    }
    let mut report = Report::default();
    for (row, index) in file.vectors.iter().zip(1..) {
        let unnamed = || format!("row {index}");
        let (name, checked) = if upload::is_row(row.get()) {
            let bundles = bundles.as_deref_mut().ok_or(VectorsError::NoBundles)?;
            upload::check(row.get(), scheme, bundles)
        } else {
            match Request::parse(row.get()) {
                Ok(request) => (request.name.clone(), check(scheme, &request)),
                Err(error) => (None, Err((chain(&error), "a request".to_owned()))),
            }
        };
        match checked {
            Ok(()) => report.passed += 1,
            Err((got, expected)) => report.failures.push(Failure {
                name: name.unwrap_or_else(unnamed),
                got,
                expected,
            }),
        }
    }
    Ok(report)
}

/// Whether a row gives what it must; otherwise what it gives, and what it must give.
type Checked = Result<(), (String, String)>;

fn check(scheme: Scheme, row: &Request<'_>) -> Checked {
    let answer = row
        .scheme()
        .and_then(|own| row.answer(own.unwrap_or(scheme)))
        .map_err(|error| (chain(&error), "a request".to_owned()))?;
    if let (Some(expected), Some(got)) = (&row.canonical_params, &answer.canonical_params)
        && expected != got
    {
        return Err((got.clone(), expected.clone()));
    }
    let got = match &answer.job_id {
        Ok(id) => id.to_hex(),
        Err(refusal) => format!("refused: {refusal}"),
    };
    match (&row.job_id, &row.refused) {
        (Some(expected), None) if JobId::parse(expected).is_none() => {
            Err((expected.clone(), "a job ID in the row".to_owned()))
        }
        (Some(expected), None) if *expected == got => Ok(()),
        (Some(expected), None) => Err((got, expected.clone())),
        (None, Some(_)) if answer.job_id.is_err() => Ok(()),
        (None, Some(reason)) => Err((got, format!("refused: {reason}"))),
        (None, None) => Err((got, "job_id or refused in the row".to_owned())),
        (Some(_), Some(_)) => Err((got, "only one of job_id and refused in the row".to_owned())),
    }
}

/// An error and its causes in one line.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}

#[cfg(test)]
mod tests;
