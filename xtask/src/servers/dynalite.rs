//! dynalite: DynamoDB alone, atomic by itself, in memory.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use super::{Port, Ready, Server, folder, free_port};
use crate::run::{Result, installed, root, run, target};

const FOLDER: &str = "tests/emulators";

/// What to say where Node.js does not do what it should.
const NODE: &str =
    "the checks need Node.js 20 or newer with npm (Debian: apt-get install nodejs npm)";

pub(crate) fn start() -> Result<Server> {
    let packages = node_packages()?;
    let port = free_port()?;
    let mut command = Command::new("node");
    command
        .arg(packages.join("node_modules/dynalite/cli.js"))
        .args(["--host", "127.0.0.1", "--port", &port.to_string()]);
    // Tables are there at once.
    for delay in ["--createTableMs", "--deleteTableMs", "--updateTableMs"] {
        command.args([delay, "0"]);
    }
    let (port, ready) = (Port::Given(port), Ready::Http("/", 200));
    let mut server = Server::start(&folder()?, &command, "KILL", port, ready)
        .map_err(|what| format!("{what}\n{NODE}"))?;
    server.exports = vec![("TEST_DYNALITE_URL", server.url())];
    Ok(server)
}

/// The folder with the packages that the lock file names, under `target`. They are installed once, and anew when it changes.
fn node_packages() -> Result<PathBuf> {
    let folder = target().join("emulators/node");
    let lock = root().join(FOLDER).join("package-lock.json");
    installed(&lock, &folder.join("installed.json"), || install(&folder))?;
    Ok(folder)
}

fn install(folder: &Path) -> Result<()> {
    let copied = fs::create_dir_all(folder).and_then(|()| {
        for name in ["package.json", "package-lock.json"] {
            fs::copy(root().join(FOLDER).join(name), folder.join(name))?;
        }
        Ok(())
    });
    copied.map_err(|error| format!("{}: {error}", folder.display()))?;
    // No package needs to run a program of its own to be installed: the store is in memory.
    let arguments = [
        "ci",
        "--ignore-scripts",
        "--no-audit",
        "--no-fund",
        "--omit-lockfile-registry-resolved=true",
        "--prefix",
    ];
    run(Command::new("npm").args(arguments).arg(folder)).map_err(|what| format!("{what}\n{NODE}"))
}
