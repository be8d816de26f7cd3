//! moto behind one lock: S3, SQS, DynamoDB and the rest of Amazon's services, in memory.

use std::{path::PathBuf, process::Command};

use super::{Port, Ready, Server, folder};
use crate::{
    python,
    run::{Result, root},
};

pub(crate) fn start() -> Result<Server> {
    let python = python()?;
    let mut command = Command::new(&python);
    command.arg(root().join("tests/emulators/locked_moto.py"));
    let folder = folder()?;
    let mut server = Server::start(&folder, &command, "KILL", Port::Printed, Ready::Printed)?;
    server.exports = vec![
        ("TEST_MOTO_URL", server.url()),
        ("TEST_AWS_PYTHON", python.display().to_string()),
    ];
    let region = "eu-central-1";
    server.conventions = vec![
        ("AWS_ENDPOINT_URL", server.url()),
        ("AWS_REGION", region.to_owned()),
        ("AWS_DEFAULT_REGION", region.to_owned()),
        ("AWS_ACCESS_KEY_ID", "test".to_owned()),
        ("AWS_SECRET_ACCESS_KEY", "test".to_owned()),
    ];
    Ok(server)
}

/// The Python that moto runs in, which has boto3, too.
fn python() -> Result<PathBuf> {
    python::environment("emulators/python", "tests/emulators/requirements.txt")
}
