//! `firstclaim vectors`: this build's answers against files of published ones.

use identity_core::identity::vectors;

use crate::{
    args::VectorsArgs,
    failure::{Ended, Failure},
    output,
};

pub(crate) fn vectors(args: &VectorsArgs) -> Result<Ended, Failure> {
    let (mut passed, mut failed) = (0, 0);
    for path in &args.files {
        let text = std::fs::read_to_string(path).map_err(|error| {
            Failure::failed(format!("{} cannot be read", path.display())).because(error)
        })?;
        let report = vectors::run(&text).map_err(|error| {
            Failure::failed(format!("{} cannot be used", path.display())).because(error)
        })?;
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
