//! `firstclaim vectors`: this build's answers against files of published ones.

use std::path::Path;

use identity_core::{
    identity::vectors::{self, Report, UploadAnswer, UploadRequest, VectorsError},
    text::error_chain,
};

use crate::{
    args::VectorsArgs,
    failure::{Ended, Failure},
    output,
};

pub(crate) fn vectors(args: &VectorsArgs) -> Result<Ended, Failure> {
    let (mut passed, mut failed) = (0, 0);
    for path in &args.files {
        let report = run(path, args.data.as_deref())?;
        passed += report.passed;
        failed += report.failures.len();
        for failure in report.failures {
            let vectors::Failure {
                name,
                got,
                expected,
            } = failure;
            output::complain(&format!(
                "{}: {name}: expected {expected}, got {got}",
                path.display()
            ));
        }
    }
    output::line(&format!("{passed} passed, {failed} failed"))?;
    Ok(if failed == 0 {
        Ended::Well
    } else {
        Ended::WithFailures
    })
}

fn run(path: &Path, data: Option<&Path>) -> Result<Report, Failure> {
    let text = std::fs::read_to_string(path).map_err(|error| {
        Failure::failed(format!("{} cannot be read", path.display())).because(error)
    })?;
    let report = match data {
        Some(data) => vectors::run_with_bundles(&text, |request| answer(data, request)),
        None => vectors::run(&text),
    };
    report.map_err(|error| match error {
        VectorsError::NoBundles => Failure::usage(format!(
            "{}: its rows name shapefiles; say where they lie with --data DIR",
            path.display()
        )),
        _ => Failure::failed(format!("{} cannot be used", path.display())).because(error),
    })
}

fn answer(data: &Path, request: &UploadRequest) -> Result<UploadAnswer, String> {
    let path = data.join(&request.bundle);
    match shapefile::key_of_shapefile(&path, &request.options) {
        Ok(keyed) => Ok(UploadAnswer {
            key: keyed.key,
            components: keyed.members,
        }),
        Err(error) => Err(format!("{}: {}", path.display(), error_chain(&error))),
    }
}
