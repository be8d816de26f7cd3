//! A handler's process: how it is started, what it logs, how it ends.

use std::{
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::Duration,
};

use crate::{eventually, folder::Folder, kill};

/// A handler's process, killed with this value; and how deliveries reach it, which is its cloud's.
#[derive(Debug)]
pub struct Handler<Api> {
    /// Hands it its deliveries.
    pub api: Api,
    /// How long it has for a delivery.
    pub time: Duration,
    process: Child,
    out: PathBuf,
    err: PathBuf,
}

impl<Api> Handler<Api> {
    /// Starts one, whose output goes to files in this folder.
    pub fn start(folder: &Folder, command: &mut Command, api: Api, time: Duration) -> Self {
        let name = format!("handler-{:08x}", fastrand::u32(..));
        let [out, err] = ["out", "err"].map(|kind| folder.path(&format!("{name}.{kind}")));
        let file = |path: &Path| std::fs::File::create(path).unwrap();
        let process = command
            .stdin(Stdio::null())
            .stdout(file(&out))
            .stderr(file(&err))
            .spawn()
            .unwrap();
        Self {
            api,
            time,
            process,
            out,
            err,
        }
    }

    /// Its process ID.
    pub fn id(&self) -> u32 {
        self.process.id()
    }

    /// Sends it a signal, e.g. `TERM`.
    pub fn signal(&self, signal: &str) {
        kill(signal, &self.id().to_string());
    }

    /// Waits for its end: its exit code, or -1 if a signal killed it.
    pub fn end(&mut self) -> i32 {
        let mut ended = None;
        eventually("the handler's process ends", || {
            ended = self.process.try_wait().unwrap();
            ended.is_some()
        });
        ended.unwrap().code().unwrap_or(-1)
    }

    /// What it wrote to its log.
    pub fn log(&self) -> String {
        std::fs::read_to_string(&self.err).unwrap()
    }

    /// What it wrote to standard output.
    pub fn output(&self) -> String {
        std::fs::read_to_string(&self.out).unwrap()
    }

    /// How many local copies of objects there are that it made.
    pub fn copies(&self) -> usize {
        let made = format!("firstclaim-{}-", self.id());
        std::fs::read_dir(std::env::temp_dir())
            .unwrap()
            .filter(|entry| {
                let name = entry.as_ref().unwrap().file_name();
                name.to_string_lossy().starts_with(&made)
            })
            .count()
    }
}

impl<Api> Drop for Handler<Api> {
    fn drop(&mut self) {
        // It may have ended already, and then there is nothing to kill.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
