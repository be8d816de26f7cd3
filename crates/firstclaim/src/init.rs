//! As process 1 of a container: the program runs as a child, signals are handed on to it, and whatever dies is reaped.
//!
//! Process 1 is made the parent of every process that lost its own, here of what jobs leave behind, and if it does not ask how they
//! ended they stay as zombies for as long as the container lives
//! (<https://man7.org/linux/man-pages/man7/pid_namespaces.7.html>). The program cannot do that itself: it would take the
//! ends of its own jobs from those who wait for them.

use std::{
    env, io,
    io::IsTerminal as _,
    process::{Command, ExitCode, id},
};

use rustix::{
    io::Errno,
    process::{Pid, Signal, WaitOptions, WaitStatus, kill_process, wait},
};
use tokio::signal::unix::{SignalKind, signal};

use crate::failure::{Exit, Failure};

/// What is handed on. What a terminal sends goes to the child as well, without our help.
const HANDED_ON: [(SignalKind, Signal, bool); 6] = [
    (SignalKind::terminate(), Signal::TERM, false),
    (SignalKind::user_defined1(), Signal::USR1, false),
    (SignalKind::user_defined2(), Signal::USR2, false),
    (SignalKind::interrupt(), Signal::INT, true),
    (SignalKind::quit(), Signal::QUIT, true),
    (SignalKind::hangup(), Signal::HUP, true),
];

/// If this is process 1, runs the program as a child to its end, and returns how it ended.
pub(crate) fn as_first_process() -> Option<ExitCode> {
    (id() == 1).then(|| match program().and_then(run) {
        Ok(status) => code(status),
        Err(error) => {
            let failure = Failure::failed("the program cannot be run as a child of process 1");
            crate::output::complain(&failure.because(error).to_string());
            Exit::Failures.into()
        }
    })
}

/// This program, as it was called.
fn program() -> io::Result<Command> {
    let mut command = Command::new(env::current_exe()?);
    command.args(env::args_os().skip(1));
    Ok(command)
}

/// As a shell tells it: 128 and more for a signal.
fn code(status: WaitStatus) -> ExitCode {
    let code = status
        .exit_status()
        .or_else(|| status.terminating_signal().map(|signal| 128 + signal));
    let code = code.and_then(|code| u8::try_from(code).ok());
    code.map_or(Exit::Failures.into(), ExitCode::from)
}

/// Runs a command to its end, and reaps all children of this process meanwhile, whoever made them.
fn run(command: Command) -> io::Result<WaitStatus> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?
        .block_on(attend(command))
}

async fn attend(mut command: Command) -> io::Result<WaitStatus> {
    // Listening begins before the child does, so that its end cannot be missed.
    let mut ends = signal(SignalKind::child())?;
    let at_terminal = io::stdin().is_terminal();
    let (send, mut signals) = tokio::sync::mpsc::channel(HANDED_ON.len());
    for (kind, handed_on, by_terminal) in HANDED_ON {
        let mut stream = signal(kind)?;
        let send = send.clone();
        tokio::spawn(async move {
            while stream.recv().await.is_some() {
                if !(by_terminal && at_terminal) && send.send(handed_on).await.is_err() {
                    break;
                }
            }
        });
    }
    let child = command.spawn()?.id();
    let child = i32::try_from(child).ok().and_then(Pid::from_raw);
    let child = child.ok_or_else(|| io::Error::other("the child has no process ID"))?;
    loop {
        if let Some(status) = reap(child)? {
            return Ok(status);
        }
        tokio::select! {
            _ = ends.recv() => {}
            Some(signal) = signals.recv() => match kill_process(child, signal) {
                Ok(()) | Err(Errno::SRCH) => {}
                Err(error) => return Err(error.into()),
            },
        }
    }
}

/// Asks of all that have died how they ended. Returns the child's end, if it is among them.
fn reap(child: Pid) -> io::Result<Option<WaitStatus>> {
    let mut ended = None;
    loop {
        match wait(WaitOptions::NOHANG) {
            Ok(Some((pid, status))) if pid == child => ended = Some(status),
            Ok(Some(_)) | Err(Errno::INTR) => {}
            Ok(None) | Err(Errno::CHILD) => return Ok(ended),
            Err(error) => return Err(error.into()),
        }
    }
}

#[cfg(target_os = "linux")]
#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    /// Far more than any of these takes; only a test that fails waits so long.
    const LONG: Duration = Duration::from_secs(120);

    /// Runs the rest of this test in a process of its own, since it takes all children's ends; true in that process.
    fn is_alone(name: &str) -> bool {
        const ALONE: &str = "FIRSTCLAIM_TEST_ALONE";
        if env::var_os(ALONE).is_some() {
            return true;
        }
        let again = Command::new(env::current_exe().unwrap())
            .args(["--exact", name, "--nocapture"])
            .env(ALONE, "1")
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&again.stdout);
        assert!(again.status.success(), "{again:?}");
        assert!(said.contains("1 passed"), "{said}");
        false
    }

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    /// How many children of this process are dead and not reaped.
    fn zombies() -> usize {
        let processes = std::fs::read_dir("/proc").unwrap();
        let stats = processes
            .filter_map(|entry| std::fs::read_to_string(entry.ok()?.path().join("stat")).ok());
        let is_ours = |stat: &String| {
            let (_, rest) = stat.rsplit_once(") ").unwrap();
            rest.starts_with(&format!("Z {} ", id()))
        };
        stats.filter(is_ours).count()
    }

    #[test]
    fn what_a_child_leaves_behind_is_reaped_while_it_runs() {
        if !is_alone("init::tests::what_a_child_leaves_behind_is_reaped_while_it_runs") {
            return;
        }
        rustix::process::set_child_subreaper(Pid::from_raw(i32::try_from(id()).unwrap())).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let (left, go) = (folder.path().join("left"), folder.path().join("go"));
        let script = format!(
            "(setsid sh -c 'echo $$ > {0}.new; mv {0}.new {0}' &); until [ -e {1} ]; do sleep 0.05; done; exit 7",
            left.display(),
            go.display()
        );
        let running = std::thread::spawn(move || run(shell(&script)).unwrap());
        let began = Instant::now();
        let gone = || {
            let pid = std::fs::read_to_string(&left).unwrap_or_default();
            let pid = pid.trim();
            !pid.is_empty() && !std::path::Path::new("/proc").join(pid).exists()
        };
        while !gone() {
            assert!(began.elapsed() < LONG, "{} zombies", zombies());
            std::thread::sleep(Duration::from_millis(20));
        }
        std::fs::write(go, "").unwrap();
        assert_eq!(running.join().unwrap().exit_status(), Some(7));
        assert_eq!(zombies(), 0);
    }

    #[test]
    fn signals_are_handed_on() {
        if !is_alone("init::tests::signals_are_handed_on") {
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let ready = folder.path().join("ready");
        let script = format!(
            "trap 'exit 5' TERM; echo > {}; while :; do sleep 0.05; done",
            ready.display()
        );
        let running = std::thread::spawn(move || run(shell(&script)).unwrap());
        let began = Instant::now();
        while !ready.exists() {
            assert!(began.elapsed() < LONG);
            std::thread::sleep(Duration::from_millis(20));
        }
        let this = Pid::from_raw(i32::try_from(id()).unwrap()).unwrap();
        kill_process(this, Signal::TERM).unwrap();
        assert_eq!(running.join().unwrap().exit_status(), Some(5));
    }
}
