//! Finds the pipeline contract: `--pipeline`, else `pipeline.toml` in the working folder.

use std::{
    io::ErrorKind,
    path::{Path, PathBuf},
};

use identity_core::identity::Contract;

use crate::{args::PipelineArg, failure::Failure};

const DEFAULT: &str = "pipeline.toml";

/// The contract, or `None` if no file was named and there is none in the working folder.
pub(crate) fn find(arg: &PipelineArg) -> Result<Option<Contract>, Failure> {
    let named = arg.pipeline.is_some();
    let path = arg
        .pipeline
        .clone()
        .unwrap_or_else(|| PathBuf::from(DEFAULT));
    match std::fs::read(&path) {
        Ok(bytes) => parse(&path, bytes).map(Some),
        Err(error) if error.kind() == ErrorKind::NotFound && !named => Ok(None),
        Err(error) => Err(Failure::usage(format!(
            "the pipeline {} cannot be read",
            path.display()
        ))
        .because(error)),
    }
}

fn parse(path: &Path, bytes: Vec<u8>) -> Result<Contract, Failure> {
    let wrong = || Failure::usage(format!("the pipeline {} cannot be used", path.display()));
    let text = String::from_utf8(bytes).map_err(|error| wrong().because(error))?;
    Contract::parse(&text).map_err(|error| wrong().because(error))
}

/// The contract, which must be there.
pub(crate) fn require(arg: &PipelineArg) -> Result<Contract, Failure> {
    find(arg)?.ok_or_else(|| {
        Failure::usage(format!(
            "there is no {DEFAULT} here; name one with --pipeline FILE"
        ))
    })
}
