//! A folder to run the program in, with its pipeline and its store, and the processes that run there.

use std::{
    path::PathBuf,
    process::{Child, Command, Stdio},
};

use crate::{Ran, eventually, folder::Folder, kill, program};

/// A job that tells its attempt and its process, then waits for the file `go`, unless it is a later attempt.
pub const PATIENT: &str = r#"exec = ["sh", "-c", '''
echo "$FIRSTCLAIM_JOB_ATTEMPT $$" >> started
if [ "$FIRSTCLAIM_JOB_ATTEMPT" = 1 ]; then while ! [ -e go ]; do sleep 0.05; done; fi
echo "$FIRSTCLAIM_JOB_ATTEMPT" >> finished
''']"#;

/// A folder with a pipeline and a store, in which the program is run.
#[derive(Debug)]
pub struct Workbench {
    folder: Folder,
    store: String,
}

impl Workbench {
    /// A bench whose pipeline has this `[job]` and selects everything.
    pub fn new(job: &str) -> Self {
        Self::on(job, "sqlite:firstclaim.db")
    }

    /// The same on the store of this URL.
    pub fn on(job: &str, store: &str) -> Self {
        let bench = Self {
            folder: Folder::new(),
            store: store.to_owned(),
        };
        bench.write(
            "pipeline.toml",
            format!("name = 'tests'\nversion = '1'\nscheme = 'strict'\n[job]\n{job}\n"),
        );
        bench
    }

    /// A path in the folder.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path(name)
    }

    /// Writes a file, and the folders above it.
    pub fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        self.folder.write(name, bytes)
    }

    /// A file's text; empty if there is none.
    pub fn read(&self, name: &str) -> String {
        self.folder.read(name)
    }

    /// The program with these arguments, in the folder, without inherited settings.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(program());
        command
            .args(arguments)
            .current_dir(self.folder.root())
            .stdin(Stdio::null());
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("FIRSTCLAIM_") || name == "AZURE_STORAGE_ACCOUNT"
            {
                command.env_remove(name);
            }
        }
        command
    }

    /// `run` of these sources on the bench's store, or on another way to it.
    pub fn runner(&self, store: Option<&str>, sources: &[&str]) -> Command {
        let mut command = self.command(&["run", "--store", store.unwrap_or(&self.store)]);
        command.args(sources);
        command
    }

    /// Runs the program to its end.
    pub fn run(&self, arguments: &[&str]) -> Ran {
        Ran::from(self.command(arguments).output().unwrap())
    }

    /// Starts the program; its output goes to files called `NAME.out` and `NAME.err`.
    pub fn start(&self, name: &str, command: &mut Command) -> Worker {
        let out = std::fs::File::create(self.path(&format!("{name}.out"))).unwrap();
        self.start_writing_to(name, command, out.into())
    }

    /// The same with a standard output of the caller's.
    pub fn start_writing_to(&self, name: &str, command: &mut Command, out: Stdio) -> Worker {
        let err = std::fs::File::create(self.path(&format!("{name}.err"))).unwrap();
        let child = command.stdout(out).stderr(err).spawn().unwrap();
        Worker {
            child,
            name: name.to_owned(),
        }
    }

    /// The claims, as `claims list --json` tells them.
    pub fn claims(&self) -> Vec<serde_json::Value> {
        let mut arguments = vec!["claims", "list", "--json", "--store", &self.store];
        for status in ["processing", "done", "failed", "rejected", "waiting"] {
            arguments.extend(["--status", status]);
        }
        let listed = self.run(&arguments);
        assert_eq!(listed.code, 0, "{listed:?}");
        listed
            .out
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }

    /// The one claim.
    pub fn claim(&self) -> serde_json::Value {
        let mut claims = self.claims();
        assert_eq!(claims.len(), 1, "{claims:?}");
        claims.remove(0)
    }
}

/// A program that runs beside the test, and is killed with it.
#[derive(Debug)]
pub struct Worker {
    child: Child,
    name: String,
}

impl Worker {
    /// Sends it a signal, e.g. `STOP`.
    pub fn signal(&self, signal: &str) {
        kill(signal, &self.child.id().to_string());
    }

    /// Its process.
    pub fn process(&self) -> u32 {
        self.child.id()
    }

    /// Whether it still runs.
    pub fn runs(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    /// Waits for its end.
    pub fn end(mut self, bench: &Workbench) -> Ran {
        let mut status = None;
        eventually(&format!("{} ends", self.name), || {
            status = self.child.try_wait().unwrap();
            status.is_some()
        });
        Ran {
            code: status.unwrap().code().unwrap_or(-1),
            out: bench.read(&format!("{}.out", self.name)),
            err: bench.read(&format!("{}.err", self.name)),
        }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        // It may have ended already, and then there is nothing to kill.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
