//! Python environments of the checks' own, with the packages that a requirements file pins.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use crate::run::{Result, installed, root, run, target};

/// The Python of the environment `name`, with what `requirements` (a path from the workspace's root) pins. It is installed
/// once, and anew when the file changes.
pub(crate) fn environment(name: &str, requirements: &str) -> Result<PathBuf> {
    let environment = target().join(name);
    let python = environment.join("bin/python");
    let requirements = root().join(requirements);
    installed(&requirements, &environment.join("requirements.txt"), || {
        let venv = ["-m", "venv", "--clear"];
        run(Command::new("python3").args(venv).arg(&environment)).map_err(|what| {
            format!("{what}\nthe checks need Python 3.11 or newer with its venv module (Debian: apt-get install python3-venv)")
        })?;
        install(&python, &requirements)
    })?;
    Ok(python)
}

fn install(python: &Path, requirements: &Path) -> Result<()> {
    let install = [
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
        "--require-hashes",
        "-r",
    ];
    run(Command::new(python).args(install).arg(requirements))
}
