//! Emulators of cloud services for tests, each on a free port, gone with this program however it ends; and
//! `cargo xtask emulators up`, which runs them all for a person to play with.

use std::{
    fs,
    io::{BufRead as _, BufReader},
    os::unix::process::CommandExt as _,
    path::{Path, PathBuf},
    process::{Child, ChildStdin, Command, Stdio},
};

use crate::{
    postgres::{Disk, Server, Tls},
    python,
    run::{Result, installed, root, run, say, target},
};

const FOLDER: &str = "tests/emulators";

/// What to say where Node.js does not do what it should.
const NODE: &str =
    "the checks need Node.js 18 or newer with npm (Debian: apt-get install nodejs npm)";

/// An emulator that runs as long as this value lives.
#[derive(Debug)]
pub(crate) struct Emulator {
    /// Where it listens, e.g. `http://127.0.0.1:40123`.
    pub(crate) url: String,
    process: Child,
    /// It ends when this does, so also when this program is killed.
    lifeline: Option<ChildStdin>,
}

impl Emulator {
    /// moto behind one lock: S3, SQS, DynamoDB and the rest of Amazon's services, in memory.
    pub(crate) fn moto() -> Result<Self> {
        let mut command = Command::new(Self::python()?);
        command.arg(root().join(FOLDER).join("locked_moto.py"));
        Self::start(command)
    }

    /// The Python that moto runs in, which has boto3, too.
    pub(crate) fn python() -> Result<PathBuf> {
        python::environment("emulators/python", "tests/emulators/requirements.txt")
    }

    /// dynalite: DynamoDB alone, atomic by itself, in memory.
    pub(crate) fn dynalite() -> Result<Self> {
        let packages = node_packages()?;
        let mut command = Command::new("node");
        command
            .arg(root().join(FOLDER).join("dynalite.js"))
            .current_dir(packages);
        Self::start(command).map_err(|what| format!("{what}\n{NODE}"))
    }

    /// Starts a program that says its port on its first line, and ends when its standard input does.
    fn start(mut command: Command) -> Result<Self> {
        let line = crate::run::describe(&command);
        let mut process = command
            // Ctrl-C stops this program, and so its standard input; it need not hear of it twice.
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| format!("{line}: cannot be started: {error}"))?;
        let lifeline = process.stdin.take();
        let mut first = String::new();
        if let Some(stdout) = process.stdout.take() {
            // A program that fails ends its output, so this ends, too.
            let _ = BufReader::new(stdout).read_line(&mut first);
        }
        let mut emulator = Self {
            url: String::new(),
            process,
            lifeline,
        };
        let port: u16 = first
            .trim()
            .parse()
            .map_err(|_| format!("{line}: expected a port, got {first:?}"))?;
        emulator.url = format!("http://127.0.0.1:{port}");
        say(&format!("\n$ {line} on port {port}"));
        Ok(emulator)
    }
}

impl Drop for Emulator {
    fn drop(&mut self) {
        drop(self.lifeline.take());
        // It ends by itself; what hangs is made to. Whether or not it can be waited for, it ends.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
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

/// Runs every emulator and says how to reach it, until this program is stopped: what it started then ends, too.
pub(crate) fn up() -> Result<()> {
    let postgres = Server::start(Tls::Off, Disk::Ignored)?;
    let moto = Emulator::moto()?;
    let dynalite = Emulator::dynalite()?;
    say(&format!(
        "
# Amazon's services (moto), for every program that uses an SDK:
export AWS_ENDPOINT_URL={moto} AWS_REGION=eu-central-1 AWS_DEFAULT_REGION=eu-central-1 AWS_ACCESS_KEY_ID=test AWS_SECRET_ACCESS_KEY=test
# What tests look for. PostgreSQL's is a --store of firstclaim, too.
export TEST_MOTO_URL={moto} TEST_DYNALITE_URL={dynalite}
export TEST_POSTGRES_URL={postgres}
export TEST_AWS_PYTHON={python}

Ctrl-C stops them all.",
        moto = moto.url,
        dynalite = dynalite.url,
        postgres = postgres.url,
        python = Emulator::python()?.display(),
    ));
    loop {
        std::thread::park();
    }
}
